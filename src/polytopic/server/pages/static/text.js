// The text page: label a text, explain its topics, correct them, save and undo.

import { get, randomId, post } from "./api.js";
import { bar, byId, el } from "./dom.js";
import { _, percent, signed } from "./i18n.js";
import { Words, markClass } from "./words.js";

const page = JSON.parse(byId("page").textContent);
const words = new Words(byId("words"), byId("word"), page.colours);
const text = byId("text");

// What the page shows.
const state = {
  content: null, // {text}, {fields} or {counts}
  topics: [], // labels, largest share first
  suggested: [], // suggestions from the API
  names: new Map(),
  unknown: new Set(), // topics that are new to the model
  warning: null, // why they may be of little use
  explanation: null,
  only: null, // the one topic whose words are marked, or null for all
  open: new Set(), // topics with visible reasons
  whyNot: null, // the explanation of a rejected topic
  saved: null, // how to undo the last change
};
let latestRequest = 0; // responses to earlier requests are ignored

const MAX_OTHERS = 8; // other topics to show
const digitsOf = (unit) => (unit === "nats" ? 1 : 2); // of evidence
const nameOf = (label) => state.names.get(label) ?? label;

// Requests

/** Run `request`, then the function it returns, unless a newer request has started meanwhile. */
async function run(request) {
  const number = ++latestRequest;
  byId("result").setAttribute("aria-busy", "true");
  try {
    const update = await request();
    if (number !== latestRequest) return;
    update?.();
  } catch (error) {
    if (number === latestRequest) reportError(error);
  } finally {
    if (number === latestRequest) byId("result").removeAttribute("aria-busy");
  }
}

function label(content, topics = null) {
  return run(async () => {
    const answer = await suggest(content);
    const chosen = answer.documents[0].suggestions.filter((one) => one.chosen);
    const labels = topics ?? chosen.map((one) => one.label);
    const { known, explanation } = await explainKnown(content, labels, answer);
    return () => {
      Object.assign(state, { content, topics: labels, explanation, only: null, whyNot: null, saved: null });
      state.suggested = answer.documents[0].suggestions;
      state.warning = answer.documents[0].warning ?? null;
      state.unknown = new Set(labels.filter((one) => !known.includes(one)));
      state.open.clear();
      showModel(answer.model);
      byId("receipt").replaceChildren();
      sortTopics();
      const wasWriting = byId("form").contains(document.activeElement);
      show();
      if (wasWriting) byId("topics-heading").focus();
      const share = (one) => (explanation?.known ? ` ${percent(reasonOf(one)?.share)}` : "");
      const parts = state.topics.map((one) => nameOf(one) + share(one));
      report(parts.length ? _("Topics: {topics}", { topics: parts.join(", ") }) : _("No topic fits this text."));
    };
  });
}

async function suggest(content) {
  try {
    const answer = await post("/v1/suggest", { ...content, k: 12, language: page.language });
    for (const one of answer.documents[0].suggestions) state.names.set(one.label, one.name);
    return answer;
  } catch (error) {
    if (error.status !== 409) throw error; // nothing has been learned yet
    return { model: null, documents: [{ suggestions: [] }] };
  }
}

async function explain(content, labels, why_not = []) {
  if (!labels.length) return null;
  const answer = await post("/v1/explain", { ...content, labels, why_not, shares: page.shares });
  for (const [label, name] of Object.entries(answer.names)) {
    if (!state.names.has(label)) state.names.set(label, name);
  }
  return answer;
}

/** Explain the labels that the model knows; if it has changed since the answer, ask which it knows. */
async function explainKnown(content, labels, answer) {
  const known = await knownLabels(labels, answer.documents[0].suggestions);
  try {
    return { known, explanation: await explain(content, known) };
  } catch (error) {
    if (error.status !== 422) throw error;
    const present = await knownLabels(labels, []);
    return { known: present, explanation: await explain(content, present) };
  }
}

/** Return the labels that the model knows, among them those that it has suggested. */
async function knownLabels(labels, suggestions) {
  const suggested = new Set(suggestions.map((one) => one.label));
  const known = await Promise.all(labels.map(async (label) => suggested.has(label) || (await isKnown(label))));
  return labels.filter((_label, k) => known[k]);
}

async function isKnown(label) {
  return Boolean(await find(label));
}

/** Return the label with an id or name, or null. */
async function find(name) {
  try {
    const { labels } = await get(`/v1/labels?q=${encodeURIComponent(name)}&k=1000&language=${page.language}`);
    const wanted = name.toLowerCase();
    const found = labels.find((one) => one.label === name) ?? labels.find((one) => one.name.toLowerCase() === wanted);
    if (found) state.names.set(found.label, found.name);
    return found ?? null;
  } catch (error) {
    if (error.status === 409) return null; // nothing has been learned yet
    throw error;
  }
}

function change(topics, message) {
  state.topics = topics; // now, because the next change may come before the response
  return run(async () => {
    const known = topics.filter((one) => !state.unknown.has(one));
    const explanation = await explain(state.content, known);
    return () => {
      Object.assign(state, { explanation, whyNot: null });
      if (!topics.includes(state.only)) state.only = null;
      sortTopics();
      show();
      report(message);
    };
  });
}

async function add(name) {
  let found;
  try {
    found = await find(name);
  } catch (error) {
    return reportError(error);
  }
  const label = found?.label ?? name;
  if (state.topics.includes(label)) return report(_("{topic} has already been added.", { topic: nameOf(label) }));
  if (!found) state.unknown.add(label);
  return change([...state.topics, label], _("{topic} added.", { topic: nameOf(label) }));
}

function remove(label) {
  state.unknown.delete(label);
  const topics = state.topics.filter((one) => one !== label);
  return change(topics, _("{topic} removed.", { topic: nameOf(label) }));
}

async function toggleWhyNot(label) {
  if (state.whyNot?.label === label) {
    state.whyNot = null;
    show();
  } else await askWhyNot(label);
  document.querySelector(`#others button[data-why-not="${CSS.escape(label)}"]`)?.focus();
}

function askWhyNot(label) {
  return run(async () => {
    const known = state.topics.filter((one) => !state.unknown.has(one));
    const answer = await explain(state.content, known, [label]);
    return () => {
      state.whyNot = { unit: answer.unit, ...answer.why_not[0] };
      show();
      report(whyNotSentence(state.whyNot));
    };
  });
}

// Display

const reasonOf = (label) => state.explanation?.labels.find((one) => one.label === label);

function sortTopics() {
  state.topics.sort((a, b) => (reasonOf(b)?.share ?? -1) - (reasonOf(a)?.share ?? -1));
}

function report(message, isError = false) {
  const status = byId("status");
  status.textContent = message;
  status.classList.toggle("warning", isError);
}

const reportError = (error) => report(_("Something went wrong: {reason}", { reason: error.message }), true);

/** Show the form, or the labelled text. */
function showForm(isVisible) {
  byId("form").hidden = !isVisible;
  for (const id of ["tools", "result", "reading", "rest"]) byId(id).hidden = isVisible;
}

function show() {
  showForm(false);
  byId("all").hidden = state.only === null;
  words.draw(stringsOf(state.content), state.explanation, state.topics, state.only, nameOf);
  const unknown = state.explanation?.unknown ?? [];
  byId("unknown").textContent = unknown.length
    ? _("Unknown words: {words}", { words: unknown.slice(0, 20).join(", ") + (unknown.length > 20 ? ", …" : "") })
    : "";
  byId("warning").textContent = state.warning ?? "";
  byId("warning").hidden = !state.warning;
  byId("topics").replaceChildren(...state.topics.map(topicItem));
  const others = state.suggested.filter((one) => !state.topics.includes(one.label)).slice(0, MAX_OTHERS);
  byId("others").replaceChildren(...others.map(otherItem));
  const keywords = state.explanation?.keywords ?? [];
  byId("keywords").textContent = keywords.slice(0, 12).map((one) => one.term).join(", ") || "–";
  showBreakdown();
  byId("save")?.toggleAttribute("disabled", state.topics.length === 0);
}

function stringsOf(content) {
  if (content.text !== undefined) return { "": content.text };
  if (content.fields) return content.fields;
  const bag = Object.entries(content.counts).sort((a, b) => b[1] - a[1]);
  return { "": bag.map(([term, n]) => (n === 1 ? term : `${term} ×${n}`)).join(", ") };
}

function topicItem(label, place) {
  const reason = reasonOf(label);
  const name = nameOf(label);
  const colour = place % page.colours;
  const isOpen = state.open.has(label);
  const isOnly = state.only === label;
  const only = el("button", {
    type: "button",
    class: "name",
    "aria-pressed": String(isOnly),
    title: _("Show only words of this topic"),
    disabled: !reason,
    onclick: () => {
      state.only = isOnly ? null : label;
      show();
      byId("topics").children[place].querySelector(".name").focus();
    },
  }, el("span", { class: `swatch ${markClass(place, page.colours)}`, "aria-hidden": "true" }, String(place + 1)), name);
  const why = el("button", {
    type: "button",
    "aria-expanded": String(isOpen),
    disabled: !reason,
    "aria-label": _("Why {topic}?", { topic: name }),
    onclick: () => {
      if (isOpen) state.open.delete(label);
      else state.open.add(label);
      show();
      byId("topics").children[place].querySelector("[aria-expanded]").focus();
    },
  }, _("Why?"));
  const removal = el("button", {
    type: "button",
    "aria-label": _("Remove {topic}", { topic: name }),
    onclick: async () => {
      await remove(label);
      byId("add").focus();
    },
  }, "×");
  const summary = reason
    ? el("span", { class: "summary" },
        ...(state.explanation.known ? [_("{share} of the known words", { share: percent(reason.share) }), " · "] : []),
        el("span", { class: "soft" }, _("confidence {part}", { part: percent(reason.probability) })))
    : el("span", { class: "summary soft" }, _("new, learned when you save"));
  return el("li", {}, el("div", { class: "head" }, only, el("span", { class: "buttons" }, why, removal)), summary,
    bar(state.explanation?.known ? reason?.share ?? 0 : 0, colour), isOpen && reason ? reasonTable(reason, name, colour) : null);
}

function reasonTable(reason, name, colour) {
  const digits = digitsOf(state.explanation.unit);
  const shown = reason.words.filter((one) => one.evidence >= 0.5 * 10 ** -digits).slice(0, 10);
  if (!shown.length) return el("p", { class: "soft" }, _("No word is evidence for this topic."));
  const head = el("tr", {}, ...[_("word"), _("share"), _("evidence")].map((title, k) => el("th", { scope: "col", class: k && "n" }, title)), el("td", { class: "wide" }));
  const rows = shown.map((one) => el("tr", {},
    el("td", {}, one.count === 1 ? one.term : `${one.term} ×${one.count}`),
    el("td", { class: "n" }, percent(one.share)),
    el("td", { class: "n" }, signed(one.evidence, digits)),
    el("td", { class: "wide" }, bar(one.evidence / shown[0].evidence, colour))));
  return el("table", { class: "reasons" }, el("caption", { class: "soft" }, _("Why {topic}?", { topic: name })), el("thead", {}, head), el("tbody", {}, ...rows));
}

function otherItem(one) {
  const name = nameOf(one.label);
  const focus = () => byId("add").focus();
  const isOpen = state.whyNot?.label === one.label;
  const buttons = [
    el("button", { type: "button", "aria-label": _("Add {topic}", { topic: name }), onclick: () => add(one.label).then(focus) }, _("Add")),
    el("button", { type: "button", "data-why-not": one.label, "aria-label": _("Why not {topic}?", { topic: name }), "aria-expanded": String(isOpen), disabled: !state.explanation, onclick: () => toggleWhyNot(one.label) }, _("Why not?")),
  ];
  return el("li", {}, el("div", { class: "head" },
    el("span", {}, el("span", { class: "name" }, name), " ", el("span", { class: "soft" }, _("confidence {part}", { part: percent(one.probability) }))),
    el("span", { class: "buttons" }, ...buttons)),
    isOpen ? whyNotCard(state.whyNot) : null);
}

function whyNotSentence(reason) {
  const best = reason.labels.map(nameOf).join(", ");
  const values = { best, x: Math.abs(reason.difference).toFixed(digitsOf(reason.unit)) };
  return reason.difference >= 0
    ? _("The best set with this topic is {best}. Its score is {x} lower.", values)
    : _("The best set with this topic is {best}. Its score is {x} higher.", values);
}

function whyNotCard(reason) {
  const digits = digitsOf(reason.unit);
  const least = 0.5 * 10 ** -digits;
  const joinWords = (words) => words.map((one) => `${one.term} (${Math.abs(one.amount).toFixed(digits)})`).join(", ") || _("none");
  const against = reason.words.filter((one) => one.amount >= least).slice(0, 10);
  const support = reason.words.filter((one) => -one.amount >= least).slice(-10).reverse();
  return el("div", { class: "card" },
    el("p", {}, whyNotSentence(reason)),
    el("p", {}, _("Evidence against: {words}", { words: joinWords(against) })),
    el("p", {}, _("Evidence for: {words}", { words: joinWords(support) })));
}

function showBreakdown() {
  const breakdown = state.explanation?.breakdown;
  const rows = !breakdown ? [] : state.explanation.unit === "score"
    ? [[_("evidence of the words"), breakdown.words]]
    : [
      [_("probability of the words in all documents"), breakdown.corpus],
      [_("evidence of the words for the topics"), breakdown.words],
      [_("cost of mixing topics"), breakdown.mixing],
      [_("temperature: log-likelihood divided by {x}", { x: breakdown.temperature.toPrecision(3) }), breakdown.log_likelihood / breakdown.temperature - breakdown.log_likelihood],
      [_("prior probability of these topics"), breakdown.log_prior],
    ];
  if (breakdown) rows.push([_("score of these topics"), breakdown.score]);
  byId("breakdown").tBodies[0].replaceChildren(...rows.filter(([, value]) => value).map(([name, value]) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "n" }, signed(value, 2)))));
}

function showModel(model) {
  if (!model) return;
  byId("nothing")?.remove();
  const parts = [_("Model: {name}", { name: model.name })];
  if (model.number) parts.push(_("number {n}", { n: model.number }));
  if (model.revision !== null) parts.push(_("revision {n}", { n: model.revision }));
  byId("model").textContent = parts.join(" · ");
}

// Save and undo

async function save() {
  const stored = page.document?.id;
  const before = page.document?.labels ?? [];
  const id = stored ?? state.saved?.id ?? `page-${randomId()}`;
  await submitChange(async (key) => {
    const receipt = stored
      ? await post("/v1/relabel", { labels: { [stored]: state.topics } }, key)
      : await post("/v1/learn", { documents: [{ id, ...state.content, labels: state.topics }] }, key);
    state.saved = { id, undo: stored ? ["/v1/relabel", { labels: { [stored]: before } }] : ["/v1/forget", { ids: [id] }] };
    return [_("Saved."), receipt, true];
  });
}

async function undo() {
  const [path, body] = state.saved.undo;
  await submitChange(async (key) => {
    const receipt = await post(path, body, key);
    state.saved = null;
    return [_("Undone, as if it had never been saved."), receipt, false];
  });
}

async function submitChange(act) {
  const place = byId("receipt");
  byId("save").disabled = true;
  try {
    const [message, receipt, canUndo] = await act({ "Idempotency-Key": randomId() });
    place.replaceChildren(receiptCard(message, receipt, canUndo));
  } catch (error) {
    place.replaceChildren(el("p", { class: "warning" }, _("Something went wrong: {reason}", { reason: error.message })));
  }
  byId("save").disabled = state.topics.length === 0;
}

function receiptCard(message, receipt, canUndo) {
  const facts = [
    [_("revision"), `${receipt.revision_before} → ${receipt.revision_after}`],
    [_("time"), receipt.time],
    [_("learned"), receipt.learned],
    [_("corrected"), receipt.corrected],
    [_("forgotten"), receipt.forgotten],
    [_("new labels"), receipt.new_labels.join(", ")],
    [_("removed labels"), receipt.gone_labels.join(", ")],
    [_("digest"), receipt.digest_after],
  ].filter(([, value]) => value !== 0 && value !== "");
  const rows = facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]);
  return el("div", {},
    el("p", { class: "row" }, el("strong", {}, message), canUndo ? el("button", { type: "button", id: "undo", onclick: undo }, _("Undo")) : null,
      page.document ? el("a", { href: "/check" }, _("Texts to review")) : null),
    el("details", {}, el("summary", {}, _("Receipt")), el("dl", {}, ...rows)));
}

// Events

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (text.value.trim()) {
    page.document = null;
    label({ text: text.value });
  } else text.focus();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
text.addEventListener("paste", (event) => {
  const isWhole = text.selectionStart === 0 && text.selectionEnd === text.value.length;
  const pasted = event.clipboardData.getData("text");
  if (!isWhole || !pasted) return;
  event.preventDefault(); // browsers insert long texts slowly
  text.value = pasted;
  byId("form").requestSubmit();
});
byId("edit").addEventListener("click", () => {
  if (state.content.text === undefined) text.value = Object.values(stringsOf(state.content)).join("\n\n");
  else text.value = state.content.text;
  edit();
});
byId("fresh").addEventListener("click", () => {
  text.value = "";
  page.document = null;
  state.saved = null;
  history.replaceState(null, "", "/");
  edit();
});
byId("all").addEventListener("click", () => {
  state.only = null;
  show();
  byId("words").focus();
});
byId("adding").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = byId("add").value.trim();
  byId("add").value = "";
  if (name) await add(name);
});
byId("add").addEventListener("input", async () => {
  const wanted = byId("add").value.trim();
  if (!wanted) return;
  try {
    const { labels } = await get(`/v1/labels?q=${encodeURIComponent(wanted)}&k=20&language=${page.language}`);
    if (byId("add").value.trim() !== wanted) return;
    byId("known").replaceChildren(...labels.map((one) => el("option", { value: one.name === one.label ? one.label : one.name }, one.label)));
  } catch (error) {
    if (error.status !== 409) reportError(error);
  }
});
byId("save")?.addEventListener("click", save);

function edit() {
  showForm(true);
  report("");
  text.focus();
}

for (const name of ["dragenter", "dragover"]) {
  byId("work").addEventListener(name, (event) => {
    event.preventDefault();
    byId("work").classList.add("dropping");
  });
}
byId("work").addEventListener("dragleave", () => byId("work").classList.remove("dropping"));
byId("work").addEventListener("drop", async (event) => {
  event.preventDefault();
  byId("work").classList.remove("dropping");
  const [file] = event.dataTransfer.files;
  text.value = file ? await file.text() : event.dataTransfer.getData("text");
  edit();
  byId("form").requestSubmit();
});

if (page.document) {
  const { text: own, fields, counts, labels } = page.document;
  const content = own !== undefined ? { text: own } : fields ? { fields } : { counts };
  label(content, labels.length ? labels : null);
}
