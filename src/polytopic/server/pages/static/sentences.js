// Sentences in the reader's language, and numbers as people read them.

const known = JSON.parse(document.getElementById("sentences").textContent);

/** Return a sentence in the reader's language, with values in the place of {names}. */
export function _(sentence, values = {}) {
  return (known[sentence] ?? sentence).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Return a part in percent; only nothing is 0 %, and only all is 100 %. */
export function percent(part) {
  if (part === null || part === undefined) return "–";
  const shown = Math.round(100 * part);
  if (shown === 0 && part > 0) return "<1%";
  return shown === 100 && part < 1 ? ">99%" : `${shown}%`;
}

/** Return a number with its sign. */
export function signed(number, digits) {
  return (number < 0 ? "−" : "+") + Math.abs(number).toFixed(digits);
}
