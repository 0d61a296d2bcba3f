// A document of a few lines, and a program that draws cards into it: `node fake_dom.mjs card.mjs < cards.json`.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

function createElement(tag) {
  const attributes = {};
  let children = [];
  return {
    tag,
    className: "",
    attributes,
    get children() {
      return children;
    },
    append: (...more) => void children.push(...more),
    replaceChildren: (...others) => void (children = others),
    setAttribute: (name, value) => void (attributes[name] = value),
  };
}

const outline = (x) => (typeof x === "string" ? [x] : [`<${x.tag} ${x.className}>`, ...x.children.flatMap(outline)]);

globalThis.document = { createElement };
const { default: widget, draw, isCard } = await import(pathToFileURL(process.argv[2]).href);

function drawn(card) {
  const el = createElement("main");
  draw(el, card);
  return { isCard: isCard(card), seen: el.children.flatMap(outline), attributes: el.children[0].attributes };
}

function followed(first, second) {
  const el = createElement("main");
  const listeners = new Map();
  let card = first;
  const model = { get: () => card, on: (name, call) => listeners.set(name, call), off: (name) => listeners.delete(name) };
  const stop = widget.render({ model, el });
  card = second;
  listeners.get("change:card")();
  stop();
  return { seen: el.children.flatMap(outline), left: listeners.size };
}

const cards = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ cards: cards.map(drawn), followed: followed(cards[0], cards[1]) }));
