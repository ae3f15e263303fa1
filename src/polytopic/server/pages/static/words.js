// Draws a text with its words marked by topic.

import { el } from "./dom.js";
import { _, percent } from "./i18n.js";

const MIN_STRENGTH = 0.12; // weaker evidence is not marked
const MAX_CHARACTERS = 100_000;
const UNDERLINES = 5; // underline styles in style.css

/** Return the CSS classes of a topic: its colour and underline. */
export function markClass(place, colours) {
  return `l${place % colours} u${place % UNDERLINES}`;
}

/** A drawn text whose words can be inspected one at a time, with the pointer or the arrow keys. */
export class Words {
  /** @param text the element to draw in, @param details the element that describes the current word. */
  constructor(text, details, colours) {
    Object.assign(this, { text, details, colours, places: [], marks: [], current: -1 });
    text.addEventListener("mouseover", (event) => this.select(this.marks.indexOf(event.target)));
    text.addEventListener("click", (event) => this.select(this.marks.indexOf(event.target)));
    text.addEventListener("keydown", (event) => this.move(event));
  }

  /**
   * Draw a text, with the words of an explanation marked.
   * @param strings maps field names to texts; a plain text has the field "".
   * @param labels the topics in order, @param only the one topic to mark, or null for all.
   */
  draw(strings, explanation, labels, only, name) {
    Object.assign(this, { labels, name, current: -1, places: [], marks: [] });
    const places = explanation?.places ?? [];
    const part = (place, label) => (place.shares[label] ?? 0) * place.evidence;
    let strongest = 0;
    for (const place of places) for (const label of labels) strongest = Math.max(strongest, part(place, label));
    const drawn = Object.entries(strings).flatMap(([field, string]) => {
      const own = places.filter((place) => (place.field ?? "") === field);
      const heading = field ? [el("h3", {}, field)] : [];
      return [...heading, ...this.pieces(string, own, (place) => {
        const label = only ?? labels.reduce((a, b) => (part(place, b) > part(place, a) ? b : a), labels[0]);
        const strength = strongest > 0 ? part(place, label) / strongest : 0;
        return [label, strength >= MIN_STRENGTH ? strength : 0];
      })];
    });
    this.text.removeAttribute("dir"); // otherwise the browser recomputes it for every piece, which takes seconds
    this.text.replaceChildren(...drawn);
    this.text.dir = "auto";
  }

  pieces(string, places, strongestTopic) {
    const points = Array.from(string.slice(0, MAX_CHARACTERS)); // places count code points, not UTF-16 units
    const pieces = [];
    let end = 0;
    for (const place of places) {
      if (place.end > points.length) break;
      const [label, strength] = strongestTopic(place);
      const start = Math.max(place.start, end); // terms without spaces between them may overlap
      pieces.push(points.slice(end, start).join(""));
      const word = points.slice(start, place.end).join("");
      const title = this.describe(place);
      const classes = markClass(this.labels.indexOf(label), this.colours);
      const mark = strength ? el("mark", { class: classes, title }, word) : el("span", { title }, word);
      if (strength) mark.style.setProperty("--a", (0.25 + 0.75 * strength).toFixed(2));
      this.marks.push(mark);
      this.places.push(place);
      pieces.push(mark);
      end = place.end;
    }
    pieces.push(points.slice(end).join(""));
    if (string.length > MAX_CHARACTERS) pieces.push(el("p", { class: "soft" }, _("… only the beginning of this long text is shown.")));
    return pieces;
  }

  /** Describe a word. */
  select(place) {
    if (place < 0) return;
    this.marks[this.current]?.classList.remove("current");
    this.current = place;
    this.marks[place].classList.add("current");
    this.details.textContent = this.describe(this.places[place]);
  }

  describe(place) {
    const shares = Object.entries(place.shares).sort((a, b) => b[1] - a[1]);
    const parts = shares.map(([label, share]) => `${this.name(label)} ${percent(share)}`).join(", ");
    return `${place.term}: ${parts}; ${_("evidence {x}", { x: place.evidence.toFixed(1) })}`;
  }

  move(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const last = this.marks.length - 1;
    if (last < 0) return;
    let next;
    if (event.key in steps) next = Math.min(last, Math.max(0, this.current + steps[event.key]));
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else return;
    event.preventDefault();
    this.select(next);
    this.marks[next].scrollIntoView({ block: "nearest" });
  }
}
