// Draws a card, which is plain data, into an element, as `card.html.j2` does. Texts only ever become text nodes: nothing
// in a card is markup. The widget and the extension of JupyterLab share this file; it imports nothing. `actions.js` and
// `widget.js` are read as the end of it.

const SHAPES = { error: "■", warning: "▲", hint: "●", calm: "" };
// A card has at most this many levels and parts; whatever has more was not made by torch_inspector.
const DEPTH = 8;
const COUNT = 1000;
// Letters of a cell that may be broken inside words.
const LONG = 20;
// With more columns than this, a table is stacked where it is narrow.
const WIDE = 4;
const FULL = 1000;
const SLUG = /^[a-z0-9-]{1,80}$/;
const ADDRESS = /^https?:\/\/[\w.~:/@!$&()*+,;=%-]{1,400}$/;

const isText = (x) => typeof x === "string";
const isTexts = (x) => Array.isArray(x) && x.length <= COUNT && x.every(isText);
const isTone = (x) => isText(x) && Object.hasOwn(SHAPES, x);
const isFlag = (x) => typeof x === "boolean";
const isCount = (x) => Number.isSafeInteger(x) && x >= 0;
const isPart1000 = (x) => isCount(x) && x <= FULL;
const isRows = (x) => Array.isArray(x) && x.length <= COUNT && x.every(isTexts);
const listOf = (check, size) => (x) =>
  Array.isArray(x) && x.length <= COUNT && x.every((one) => Array.isArray(one) && one.length === size && one.every(check));
const isParts = (x, depth) => Array.isArray(x) && x.length <= COUNT && x.every((part) => isPart(part, depth + 1));

// Of each kind its fields: the check, and what stands for one that is left out; those without must be there.
const KINDS = {
  line: { text: [isText], tone: [isTone, "calm"], strong: [isFlag, false], slug: [isText, ""], address: [isText, ""] },
  code: { text: [isText], caption: [isText, ""], first: [isCount, 0], guilty: [isCount, 0] },
  prose: { text: [isText] },
  table: {
    rows: [isRows],
    columns: [isTexts, []],
    caption: [isText, ""],
    figures: [(x) => Array.isArray(x) && x.length <= COUNT && x.every(isCount), []],
    boxes: [listOf(isPart1000, 4), []],
    curve: [listOf(isPart1000, 2), []],
  },
  bars: {
    rows: [listOf(isText, 2)],
    lengths: [(x) => Array.isArray(x) && x.length <= COUNT && x.every(isPart1000)],
    caption: [isText, ""],
  },
  details: {
    summary: [isText],
    parts: [isParts],
    more: [isText, ""],
    tone: [isTone, "calm"],
    open: [isFlag, false],
    slug: [isText, ""],
    lead: [isText, ""],
  },
  card: { title: [isText], tone: [isTone], parts: [isParts], slug: [isText, ""] },
};
const TOGETHER = {
  table: (x) => !Object.hasOwn(x, "boxes") || x.boxes.length === x.rows.length,
  bars: (x) => x.lengths.length === x.rows.length,
};

function isPart(x, depth) {
  if (typeof x !== "object" || x === null || depth > DEPTH) return false;
  if (!Object.hasOwn(x, "kind") || !isText(x.kind) || !Object.hasOwn(KINDS, x.kind)) return false;
  const fields = Object.entries(KINDS[x.kind]);
  const good = fields.every(([name, [check, other]]) => (Object.hasOwn(x, name) ? check(x[name], depth) : other !== undefined));
  return good && (TOGETHER[x.kind] ?? (() => true))(x);
}

/** True if `x` is a card that `draw` can draw. */
export function isCard(x) {
  return isPart(x, 0) && x.kind === "card";
}

/** The part as an object of its known fields and no prototype. */
function read(part) {
  const made = Object.create(null);
  for (const [name, [, other]] of Object.entries(KINDS[part.kind])) made[name] = Object.hasOwn(part, name) ? part[name] : other;
  return made;
}

function node(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function withAttributes(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

// A shape of two and more axes is not broken at the end of a line.
const whole = (text) =>
  text
    .split(/(\((?:[0-9]{1,15}, ){1,7}[0-9]{1,15}\))/)
    .flatMap((piece, index) => (index % 2 ? [node("span", "ti-whole", piece)] : piece ? [piece] : []));

// What stands between backticks is code; one backtick without a partner is a letter.
export function inline(text, plain = whole) {
  const pieces = text.split("`");
  if (pieces.length % 2 === 0) return plain(text);
  return pieces.flatMap((piece, index) => (index % 2 ? [node("code", "", piece)] : plain(piece)));
}

// In pages, stars set words off.
const starred = (text) =>
  text.split(/\*([^*\s][^*]*)\*/).flatMap((piece, index) => (index % 2 ? [node("em", "", piece)] : piece ? [piece] : []));

function shape(tone) {
  return SHAPES[tone] ? [withAttributes(node("span", "ti-shape", SHAPES[tone]), { "aria-hidden": "true" }), " "] : [];
}

const toned = (tone, text) => [...shape(tone), ...inline(text)];

// Addresses of pictures are made of whole numbers only, as in `picture.py`.
function picture(className, alt, width, height, view, inside) {
  const src = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='${view}'%3E${inside}%3C/svg%3E`;
  return withAttributes(node("img", className), { alt, width, height, src });
}

function bar(length) {
  const src = "data:image/gif;base64,R0lGODdhAQABAIAAAEyL9QAAACwAAAAAAQABAAACAkQBADs=";
  return withAttributes(node("img", ""), { alt: "", width: Math.ceil((length * 140) / FULL), height: 10, style: "height:10px", src });
}

function box([width, height, wholeWidth, wholeHeight]) {
  const whole = `%3Crect width='${wholeWidth}' height='${wholeHeight}' fill='none' stroke='%234c8bf5' stroke-dasharray='3 2'/%3E`;
  const own = `%3Crect width='${width}' height='${height}' fill='%234c8bf5'/%3E`;
  const view = `-1 -1 ${wholeWidth + 2} ${wholeHeight + 2}`;
  return picture("", "", wholeWidth + 2, wholeHeight + 2, view, whole + own);
}

function curve(points) {
  const placed = points.map(([x, y]) => `${4 + Math.floor((x * 232) / FULL)},${56 - Math.floor((y * 52) / FULL)}`);
  const line = `%3Cpolyline points='${placed.join(" ")}' fill='none' stroke='%234c8bf5' stroke-width='2'/%3E`;
  return picture("ti-curve", "drawn as a line", 240, 60, "0 0 240 60", line);
}

function line({ text, tone, strong, slug, address }, { places = true, pages = false }) {
  const className = strong ? "ti-strong" : tone === "calm" ? "" : `ti-${tone}`;
  if (!SLUG.test(slug)) return [node("p", className, ...toned(tone, text))];
  const place = places && ADDRESS.test(address) ? address : "";
  // What leads nowhere says what to type.
  if (!place && !pages) return [node("p", "", node("code", "", text))];
  return [node("p", "", withAttributes(node("a", "ti-doc-link", text), { href: `${place}#torch-inspector-${slug}` }))];
}

function numbered({ text, first, guilty }) {
  const lines = text.split("\n");
  const width = String(first + lines.length - 1).length;
  return lines.flatMap((one, index) => {
    const number = first + index;
    const head = node("span", "ti-number", `${number === guilty ? "→" : " "} ${String(number).padStart(width)}  `);
    const shown = number === guilty ? [node("strong", "ti-guilty", head, one)] : [head, one];
    return [...shown, ...(index < lines.length - 1 ? ["\n"] : [])];
  });
}

// Code that somebody may want elsewhere has a caption; lines around a finding are there to be read.
function code(part, options) {
  if (part.first) return [...caption(part), node("pre", "", node("code", "", ...numbered(part)))];
  const block = node("pre", "", node("code", "", part.text));
  const head = part.caption && options.copy ? [node("p", "ti-caption", part.caption, ...copier(part.text, part.caption))] : caption(part);
  return [...head, block];
}

const caption = (part) => (part.caption ? [node("p", "ti-caption", part.caption)] : []);

/** A button that copies, and the place where it says so. */
function copier(text, what) {
  const button = withAttributes(node("button", "ti-copy", "copy"), { type: "button", "aria-label": `copy: ${what}` });
  const said = withAttributes(node("span", "ti-said"), { role: "status" });
  button.addEventListener("click", () => {
    said.replaceChildren();
    copied(text, button).then((done) => said.replaceChildren(done ? "copied" : "the browser does not let this page copy"));
  });
  return [" ", button, " ", said];
}

/** True when the text is on the clipboard; pages that are not served safely have only the old way. */
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = node("textarea", "");
    field.value = text;
    button.after(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    button.focus();
    return done;
  }
}

function cell(tag, text, isFigure) {
  const isLong = [...text].length > LONG;
  return node(tag, isFigure ? "ti-figure" : isLong ? "ti-long" : "", ...inline(text));
}

function table(part) {
  const isFigure = (index) => part.figures.includes(index);
  const made = node("table", part.columns.length > WIDE ? "ti-wide" : "");
  if (part.caption || part.curve.length) {
    const drawn = part.curve.length ? [curve(part.curve)] : [];
    made.append(node("caption", "", ...(part.caption ? [part.caption] : []), ...drawn));
  }
  if (part.columns.length) {
    const names = part.columns.map((text, index) => node("th", isFigure(index) ? "ti-figure" : "", ...(text ? [text] : [])));
    made.append(node("thead", "", node("tr", "", ...names)));
  }
  const row = ([first, ...rest], index) => {
    const cells = rest.map((text, at) => cell("td", text, isFigure(at + 1)));
    const sizes = part.boxes[index];
    const boxes = sizes ? [node("td", "", ...(sizes.every(Boolean) ? [box(sizes)] : []))] : [];
    return node("tr", "", ...(first === undefined ? [] : [cell("th", first, false)]), ...cells, ...boxes);
  };
  made.append(node("tbody", "", ...part.rows.map(row)));
  return [made];
}

function bars(part) {
  const row = ([label, amount], index) => {
    const drawn = part.lengths[index] ? [bar(part.lengths[index])] : [];
    return node("tr", "", cell("th", label, false), node("td", "ti-figure", amount), node("td", "", ...drawn));
  };
  const made = node("table", "ti-bars");
  if (part.caption) made.append(node("caption", "", part.caption));
  made.append(node("tbody", "", ...part.rows.map(row)));
  return [made];
}

function paragraph(text) {
  const head = /^#+ (.*)$/.exec(text);
  return head ? node("p", "ti-head", ...inline(head[1], starred)) : node("p", "", ...inline(text, starred));
}

// Pages are Markdown; here only its paragraphs, headings and code are drawn as such.
function prose({ text }) {
  const paragraphs = (piece) => piece.split(/\n\s*\n/).filter((one) => one.trim()).map((one) => paragraph(one.trim()));
  const blocks = text
    .split(/^```.*\n?/m)
    .flatMap((piece, index) => (index % 2 ? [node("pre", "", node("code", "", piece.trimEnd()))] : paragraphs(piece)));
  return [node("div", "", ...blocks)];
}

function details(part, options) {
  if (part.tone !== "calm") return [finding(part, options)];
  const last = part.parts.at(-1);
  const isLink = last?.kind === "line" && SLUG.test(last.slug ?? "");
  const more = part.more && !isLink ? [node("p", "", node("code", "", part.more))] : [];
  return [node("details", "", node("summary", "", part.summary), ...drawn(part.parts, options), ...more)];
}

/** The line of a finding, and under it what is known. */
function finding(part, options) {
  const lead = part.summary.startsWith(part.lead) ? part.lead : "";
  const said = [...shape(part.tone), node("strong", "", ...(lead ? [lead] : [])), ...inline(part.summary.slice(lead.length))];
  const className = `ti-finding ti-${part.tone}`;
  if (!part.parts.length) return node("p", className, ...said);
  const inside = node("div", "ti-inside", ...drawn(part.parts, options));
  if (options.marks) inside.setAttribute("data-ti-slug", part.slug);
  const made = node("details", className, node("summary", "", ...said), inside);
  if (part.open) made.setAttribute("open", "");
  return made;
}

const DRAWN = {
  line,
  code,
  table,
  bars,
  prose,
  details,
  card: (part, options) => [node("div", `ti-section ti-${part.tone}`, ...body(part, options))],
};

const drawn = (parts, options) => parts.flatMap((part) => DRAWN[part.kind](read(part), options));
const body = (card, options) => [node("p", "ti-title", ...toned(card.tone, card.title)), ...drawn(card.parts, options)];

/**
 * Replaces what is in `el` by the card, or by a sentence if `card` is none.
 *
 * Options: `copy` gives code that has a caption a button; `places: false` has links lead nowhere else; `pages` draws links
 * without a place, too, where something opens the page that their address names; `marks` names the pitfall at the inside
 * of each finding, for the extension of JupyterLab, which puts there what can be done.
 */
export function draw(el, card, options = {}) {
  if (!isCard(card)) {
    el.replaceChildren(node("p", "", "This card cannot be drawn."));
    return;
  }
  const made = node("div", `ti-card ti-${card.tone}`, ...body(read(card), options));
  el.replaceChildren(withAttributes(made, { role: "region", "aria-label": card.title }));
}
