// Runs before the first paint: apply the theme that the reader has chosen, if any.
try {
  const chosen = localStorage.getItem("polytopic-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch (error) {
  console.info("Cannot read the stored theme; using the browser's.", error);
}
