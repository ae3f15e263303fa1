// Translations, and numbers formatted for people.

const translations = JSON.parse(document.getElementById("translations").textContent);

/** Return the translation of a sentence, with its {placeholders} filled in. */
export function _(sentence, values = {}) {
  return (translations[sentence] ?? sentence).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Format a fraction as a percentage; only 0 is 0%, and only 1 is 100%. */
export function percent(part) {
  if (part === null || part === undefined) return "–";
  const shown = Math.round(100 * part);
  if (shown === 0 && part > 0) return "<1%";
  return shown === 100 && part < 1 ? ">99%" : `${shown}%`;
}

/** Format a number with its sign. */
export function signed(number, digits) {
  return (number < 0 ? "−" : "+") + Math.abs(number).toFixed(digits);
}
