// The text with its words marked by topic.

import { el } from "./dom.js";
import { _, percent } from "./sentences.js";

const FAINT = 0.12; // strength below which a word says too little to be marked
const MOST = 100_000; // characters that are drawn
const UNDERLINES = 5;

/** Return the classes of a topic's colour and underline. */
export function signOf(place, colours) {
  return `l${place % colours} u${place % UNDERLINES}`;
}

/** The drawn text: one word at a time can be looked at, with the pointer or by arrow keys. */
export class Words {
  /** @param text where it is drawn, @param told where a word's shares are told. */
  constructor(text, told, colours) {
    Object.assign(this, { text, told, colours, places: [], marks: [], current: -1 });
    text.addEventListener("mouseover", (event) => this.lookAt(this.marks.indexOf(event.target)));
    text.addEventListener("click", (event) => this.lookAt(this.marks.indexOf(event.target)));
    text.addEventListener("keydown", (event) => this.move(event));
  }

  /**
   * Draw strings with the places of an explanation.
   * @param strings maps fields to strings, "" being the field of a plain text.
   * @param labels the topics in order, @param only a topic whose words alone are marked.
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
        return [label, strength >= FAINT ? strength : 0];
      })];
    });
    this.text.removeAttribute("dir"); // else it is judged again with each piece, which takes seconds
    this.text.replaceChildren(...drawn);
    this.text.dir = "auto";
  }

  pieces(string, places, judge) {
    const points = Array.from(string.slice(0, MOST)); // places count characters, not halves of them
    const pieces = [];
    let end = 0;
    for (const place of places) {
      if (place.end > points.length) break;
      const [label, strength] = judge(place);
      pieces.push(points.slice(end, place.start).join(""));
      const word = points.slice(place.start, place.end).join("");
      const title = this.sentence(place);
      const sign = signOf(this.labels.indexOf(label), this.colours);
      const mark = strength ? el("mark", { class: sign, title }, word) : el("span", { title }, word);
      if (strength) mark.style.setProperty("--a", (0.25 + 0.75 * strength).toFixed(2));
      this.marks.push(mark);
      this.places.push(place);
      pieces.push(mark);
      end = place.end;
    }
    pieces.push(points.slice(end).join(""));
    if (string.length > MOST) pieces.push(el("p", { class: "soft" }, _("… only the beginning of this long text is drawn.")));
    return pieces;
  }

  /** Tell the shares of a word. */
  lookAt(place) {
    if (place < 0) return;
    this.marks[this.current]?.classList.remove("current");
    this.current = place;
    this.marks[place].classList.add("current");
    this.told.textContent = this.sentence(this.places[place]);
  }

  sentence(place) {
    const shares = Object.entries(place.shares).sort((a, b) => b[1] - a[1]);
    const told = shares.map(([label, share]) => `${this.name(label)} ${percent(share)}`).join(", ");
    return `${place.term}: ${told}; ${_("evidence {x}", { x: place.evidence.toFixed(1) })}`;
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
    this.lookAt(next);
    this.marks[next].scrollIntoView({ block: "nearest" });
  }
}
