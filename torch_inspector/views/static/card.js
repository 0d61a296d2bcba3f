// Draws a card, which is plain data, into an element. Texts only ever become text nodes: nothing in a card is markup.

const SHAPES = { error: "■", warning: "▲", hint: "●", calm: "" };
// A card has at most this many levels and parts; whatever has more was not made by torch_inspector.
const DEPTH = 8;
const COUNT = 1000;
// Letters of a cell that is not broken inside words.
const SHORT = 20;

const isText = (x) => typeof x === "string";
const isTexts = (x) => Array.isArray(x) && x.length <= COUNT && x.every(isText);
const isTone = (x) => isText(x) && Object.hasOwn(SHAPES, x);
const isParts = (x, depth) => Array.isArray(x) && x.length <= COUNT && x.every((part) => isPart(part, depth + 1));

const CHECKS = {
  line: (x) => isText(x.text) && isTone(x.tone),
  code: (x) => isText(x.text) && isText(x.caption),
  prose: (x) => isText(x.text),
  table: (x) =>
    Array.isArray(x.rows) &&
    x.rows.length <= COUNT &&
    x.rows.every(isTexts) &&
    isTexts(x.columns) &&
    isText(x.caption) &&
    Array.isArray(x.figures),
  bars: (x) =>
    Array.isArray(x.rows) &&
    x.rows.length <= COUNT &&
    x.rows.every((row) => isTexts(row) && row.length === 2) &&
    Array.isArray(x.lengths) &&
    x.lengths.length === x.rows.length &&
    x.lengths.every((length) => Number.isInteger(length) && length >= 0 && length <= 1000) &&
    isText(x.caption),
  details: (x, depth) => isText(x.summary) && isText(x.more) && isParts(x.parts, depth),
  card: (x, depth) => isText(x.title) && isTone(x.tone) && isParts(x.parts, depth),
};

function isPart(x, depth) {
  if (typeof x !== "object" || x === null || depth > DEPTH) return false;
  return isText(x.kind) && Object.hasOwn(CHECKS, x.kind) && CHECKS[x.kind](x, depth);
}

/** True if `x` is a card that `draw` can draw. */
export function isCard(x) {
  return isPart(x, 0) && x.kind === "card";
}

function node(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// What stands between backticks is code; one backtick without a partner is a letter.
function inline(text) {
  const pieces = text.split("`");
  if (pieces.length % 2 === 0) return [text];
  return pieces.map((piece, index) => (index % 2 ? node("code", "", piece) : piece));
}

function toned(tone, text) {
  if (!SHAPES[tone]) return inline(text);
  const shape = node("span", "ti-shape", SHAPES[tone]);
  shape.setAttribute("aria-hidden", "true");
  return [shape, " ", ...inline(text)];
}

function cell(tag, scope, text, isFigure) {
  const short = scope !== "col" && [...text].length <= SHORT;
  const made = node(tag, isFigure ? "ti-figure" : short ? "ti-short" : "", ...inline(text));
  if (scope) made.setAttribute("scope", scope);
  return made;
}

function table(part) {
  const made = node("table", "ti-table");
  if (part.caption) made.append(node("caption", "", part.caption));
  const isFigure = (index) => part.figures.includes(index);
  if (part.columns.length) {
    const names = part.columns.map((text, index) => cell("th", "col", text, isFigure(index)));
    made.append(node("thead", "", node("tr", "", ...names)));
  }
  const row = ([first, ...rest]) =>
    node("tr", "", cell("th", "row", first ?? ""), ...rest.map((text, index) => cell("td", "", text, isFigure(index + 1))));
  made.append(node("tbody", "", ...part.rows.map(row)));
  return made;
}

// A bar as the address of a picture, as in the HTML; `length` is a whole number.
function bar(length) {
  const svg =
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1000 50' preserveAspectRatio='none'%3E" +
    `%3Crect width='${length}' height='50' fill='%234c8bf5'/%3E%3C/svg%3E`;
  const made = node("img", "");
  for (const [name, value] of Object.entries({ alt: "", width: 200, height: 10, src: svg })) made.setAttribute(name, value);
  return made;
}

function bars(part) {
  const row = ([label, amount], index) =>
    node("tr", "", cell("th", "row", label), cell("td", "", amount, true), node("td", "", bar(part.lengths[index])));
  const made = node("table", "ti-table ti-bars");
  if (part.caption) made.append(node("caption", "", part.caption));
  made.append(node("tbody", "", ...part.rows.map(row)));
  return made;
}

function paragraph(text) {
  const head = /^#+ (.*)$/.exec(text);
  return head ? node("p", "ti-head", ...inline(head[1])) : node("p", "", ...inline(text));
}

// Pages are Markdown; here only its paragraphs, headings and code are drawn as such.
function prose(text) {
  const blocks = text.split(/^```.*\n?/m).flatMap((piece, index) =>
    index % 2 ? [node("pre", "ti-code", node("code", "", piece.trimEnd()))] : piece.split(/\n\s*\n/).filter((p) => p.trim()).map((p) => paragraph(p.trim())),
  );
  return node("div", "ti-prose", ...blocks);
}

const DRAWN = {
  line: (part) => [node("p", part.strong ? "ti-line ti-strong" : "ti-line", ...toned(part.tone, part.text))],
  code: (part) => [
    ...(part.caption ? [node("p", "ti-caption", part.caption)] : []),
    node("pre", "ti-code", node("code", "", part.text)),
  ],
  table: (part) => [table(part)],
  bars: (part) => [bars(part)],
  prose: (part) => [prose(part.text)],
  details: (part) => {
    const more = part.more ? [node("p", "ti-line", node("code", "", part.more))] : [];
    return [node("details", "ti-details", node("summary", "", part.summary), ...drawn(part.parts), ...more)];
  },
  card: (part) => [node("div", `ti-section ti-${part.tone}`, ...body(part))],
};

const drawn = (parts) => parts.flatMap((part) => DRAWN[part.kind](part));
const body = (card) => [node("p", "ti-title", ...toned(card.tone, card.title)), ...drawn(card.parts)];

/** Replaces what is in `el` by the card, or by a sentence if `card` is none. */
export function draw(el, card) {
  if (!isCard(card)) {
    el.replaceChildren(node("p", "", "This card cannot be drawn."));
    return;
  }
  const made = node("div", `ti-card ti-${card.tone}`, ...body(card));
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", card.title);
  el.replaceChildren(made);
}

function render({ model, el }) {
  const update = () => draw(el, model.get("card"));
  model.on("change:card", update);
  update();
  return () => model.off("change:card", update);
}

export default { render };
