// Creates elements. Strings become text nodes; nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Create an element. Attributes that start with `on` are listeners; undefined and false are skipped. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Create a bar that is filled to a fraction of its width. */
export function bar(part, colour) {
  const rect = (attributes) => fill(document.createElementNS(SVG, "rect"), attributes, []);
  const width = `${(100 * Math.min(1, Math.max(0, part))).toFixed(1)}%`;
  return fill(
    document.createElementNS(SVG, "svg"),
    { class: `bar l${colour}`, "aria-hidden": "true" },
    [
      rect({ class: "ground", width: "100%", height: "100%", rx: 3 }),
      rect({ width, height: "100%", rx: 3 }),
    ],
  );
}

/** Return the element with an id. */
export const byId = (id) => document.getElementById(id);
