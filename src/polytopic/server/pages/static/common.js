// On every page: switch the theme, fetch slow parts, and sign in with a token from the URL.

import { byId } from "./dom.js";
import { _ } from "./i18n.js";

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("polytopic-theme", root.dataset.theme);
  } catch (error) {
    console.info("Cannot store the theme.", error);
  }
});

for (const place of document.querySelectorAll("[data-part]")) fetchPart(place);

async function fetchPart(place) {
  place.setAttribute("aria-busy", "true");
  place.textContent = _("Loading …");
  try {
    const response = await fetch(place.dataset.part);
    if (response.redirected) return location.reload(); // the session has ended
    if (!response.ok) throw new Error(response.statusText);
    // rendered by the service, which escapes all content of texts
    const part = new DOMParser().parseFromString(await response.text(), "text/html");
    place.replaceChildren(...part.body.childNodes);
  } catch (error) {
    place.textContent = _("Something went wrong: {reason}", { reason: error.message });
  }
  place.removeAttribute("aria-busy");
}

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  const here = location.pathname + location.search;
  history.replaceState(null, "", here);
  const next = new URLSearchParams(location.search).get("next") ?? here;
  const body = new URLSearchParams({ token, next });
  const response = await fetch("/sign-in", { method: "POST", body });
  location.replace(response.ok ? response.url : `/sign-in?${new URLSearchParams({ next })}`);
}
