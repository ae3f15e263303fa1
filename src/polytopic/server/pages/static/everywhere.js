// What every page does: change the theme, fetch parts that take a while, take a token from the address.

import { byId } from "./dom.js";
import { _ } from "./sentences.js";

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("polytopic-theme", root.dataset.theme);
  } catch (error) {
    console.info("The theme cannot be remembered.", error);
  }
});

for (const place of document.querySelectorAll("[data-part]")) fetchPart(place);

async function fetchPart(place) {
  place.setAttribute("aria-busy", "true");
  place.textContent = _("This takes a moment …");
  try {
    const response = await fetch(place.dataset.part);
    if (response.redirected) return location.reload(); // to sign in again
    if (!response.ok) throw new Error(response.statusText);
    // written by the service, which escapes whatever comes from a text
    const part = new DOMParser().parseFromString(await response.text(), "text/html");
    place.replaceChildren(...part.body.childNodes);
  } catch (error) {
    place.textContent = _("That did not work: {reason}", { reason: error.message });
  }
  place.removeAttribute("aria-busy");
}

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  const here = location.pathname + location.search;
  history.replaceState(null, "", here);
  const next = new URLSearchParams(location.search).get("next") ?? here;
  const body = new URLSearchParams({ token: given, next });
  const response = await fetch("/sign-in", { method: "POST", body });
  location.replace(response.ok ? response.url : `/sign-in?${new URLSearchParams({ next })}`);
}
