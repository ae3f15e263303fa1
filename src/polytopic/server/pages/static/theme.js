// Before anything is drawn: the theme that the reader chose, if he chose one.
try {
  const chosen = localStorage.getItem("polytopic-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch (error) {
  console.info("The theme is the browser's own, since nothing can be remembered.", error);
}
