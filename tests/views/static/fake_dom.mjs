// A document of a few lines, and a program that draws cards into it: `node fake_dom.mjs card.mjs < cards.json`.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

function createElement(tag) {
  const attributes = {};
  const listeners = {};
  let children = [];
  const made = {
    tag,
    className: "",
    attributes,
    listeners,
    get children() {
      return children;
    },
    append: (...more) => void children.push(...more),
    replaceChildren: (...others) => void (children = others),
    setAttribute: (name, value) => void (attributes[name] = value),
    getAttribute: (name) => attributes[name] ?? null,
    focus: () => void (document.activeElement = made),
    getRootNode: () => document,
    contains: (one) => all(made).includes(one),
    addEventListener: (name, call) => void (listeners[name] = call),
    // As much of selectors as is asked for.
    querySelectorAll: () => children.flatMap(all).filter((one) => /^ti-finding/.test(one.className ?? "")),
    querySelector: (selector) =>
      (selector === "button" ? children.flatMap(all).find((one) => one.tag === "button") : children.find((child) => child.className === "ti-inside")) ??
      null,
  };
  return made;
}

function outline(x) {
  if (typeof x === "string") return [x];
  const named = { ...(x.className ? { class: x.className } : {}), ...x.attributes };
  const words = Object.entries(named).map(([name, value]) => `${name}=${value}`).sort();
  return [`${[`<${x.tag}`, ...words].join(" ")}>`, ...x.children.flatMap(outline)];
}

const all = (x) => (typeof x === "string" ? [] : [x, ...x.children.flatMap(all)]);

// What is named at the inside of a finding; null if it cannot be opened.
const slugInside = (one) => one.children.find((child) => child.className === "ti-inside")?.attributes["data-ti-slug"] ?? null;

globalThis.document = { createElement, activeElement: null, body: { dataset: {} } };

// Whoever waits for long waits until it is said that the time is over.
const soon = globalThis.setTimeout;
const waiting = new Map();
globalThis.setTimeout = (call, duration) => (duration ? waiting.set(waiting.size + 1, call).size : soon(call));
globalThis.clearTimeout = (number) => void (waiting.has(number) && waiting.set(number, () => undefined));
const timeIsOver = () => waiting.forEach((call) => call());

const { default: widget, draw, isCard } = await import(pathToFileURL(process.argv[2]).href);

function drawn(card) {
  const el = createElement("main");
  draw(el, card, { marks: true });
  const found = el.children.flatMap(all).filter((one) => /^ti-finding/.test(one.className)).map(slugInside);
  draw(el, card, { pages: true });
  const linked = el.children.flatMap(outline);
  draw(el, card);
  const there = el.children.flatMap(all);
  const tags = there.map((one) => outline(one)[0]);
  const names = [...new Set(there.flatMap((one) => Object.keys(one.attributes)))];
  return { isCard: isCard(card), seen: el.children.flatMap(outline), tags, names, found, linked };
}

function followed(first, second) {
  const el = createElement("main");
  const listeners = new Map();
  let card = first;
  const model = { get: (name) => (name === "card" ? card : []), on: (name, call) => listeners.set(name, call), off: (name) => listeners.delete(name) };
  const stop = widget.render({ model, el });
  card = second;
  listeners.get("change:card")();
  stop();
  return { seen: el.children.flatMap(outline), left: listeners.size };
}

// What every button that copies has copied, and what stands beside it before and after.
async function copied(card) {
  const el = createElement("main");
  const texts = [];
  Object.defineProperty(globalThis, "navigator", {
    value: { clipboard: { writeText: async (text) => void texts.push(text) } },
    configurable: true,
  });
  draw(el, card, { copy: true });
  const there = el.children.flatMap(all);
  const buttons = there.filter((one) => one.tag === "button");
  const places = there.filter((one) => one.attributes.role === "status");
  for (const button of buttons) button.listeners.click();
  const before = places.map((one) => one.children.length);
  await new Promise((resolve) => setTimeout(resolve));
  const names = buttons.map((one) => [one.attributes.type, one.attributes["aria-label"]]);
  return { texts, names, before, said: places.flatMap((one) => one.children) };
}

const isActing = (one) => one.className === "ti-acts";
const texts = (x) => (typeof x === "string" ? [x] : x.children.flatMap(texts));

// What a widget sends when each of its buttons is clicked, and what it says: asked, answered, answered for another finding,
// and without a kernel.
function muted(card, findings) {
  const el = createElement("main");
  const sent = [];
  let hear = null;
  let isGone = false;
  const send = (data) => {
    if (isGone) throw new Error("no kernel");
    sent.push(data);
  };
  const on = (name, call) => void (hear = name === "msg:custom" ? call : hear);
  const model = { get: (name) => (name === "card" ? card : findings), on, off: () => undefined, send };
  widget.render({ model, el });
  const groups = el.children.flatMap(all).filter(isActing);
  const said = [];
  const focused = [];
  for (const group of groups) {
    const place = group.children.at(-1);
    const pressing = (button) => {
      button.focus();
      button.listeners.click();
    };
    const noteFocus = () => void focused.push(place === document.activeElement ? "answer" : texts(document.activeElement).join(""));
    const note = () => void said.push(texts(place).join("").trim());
    for (const button of group.children.filter((one) => one.tag === "button").slice(0, 3)) {
      isGone = false;
      pressing(button);
      note();
      const { v, ask, ...asked } = sent.at(-1);
      for (const other of [null, { op: "muted" }, { op: "muted", ...asked, slug: "another" }]) hear(other);
      note();
      hear({ op: "muted", ...asked, path: "a file", error: "" });
      note();
      noteFocus();
      pressing(place.children.find((one) => one.tag === "button"));
      noteFocus();
      hear({ op: "muted", ...asked, on: false, path: "", error: "" });
      noteFocus();
      note();
      hear({ op: "muted", ...asked, path: "", error: "no such line" });
      note();
      isGone = true;
      button.listeners.click();
      note();
    }
  }
  return { sent, said, focused, groups: groups.length };
}

// What a widget says and sends when its buttons about memory are clicked, with each answer twice where only one counts.
function remembered(card, findings) {
  const el = createElement("main");
  const sent = [];
  let hear = null;
  const on = (name, call) => void (hear = name === "msg:custom" ? call : hear);
  const model = { get: (name) => (name === "card" ? card : findings), on, off: () => undefined, send: (data) => void sent.push(data) };
  widget.render({ model, el });
  const group = el.children.flatMap(all).find(isActing);
  const place = group?.children.at(-1);
  const named = (text) => (group?.children ?? []).flatMap(all).find((one) => one.tag === "button" && texts(one).join("") === text);
  const said = [];
  const step = (text, ...answers) => {
    named(text).listeners.click();
    answers.forEach((answer) => hear(answer));
    said.push(texts(place).join("").trim());
  };
  const offered = (group?.children ?? []).filter((one) => one.tag === "button").map((one) => texts(one).join(""));
  if (offered.includes("Show holders")) {
    const rows = [{ path: "a[0]", kind: "tensor", fix: "del a" }, { path: "<b>", kind: "frame", fix: "" }, null];
    step("Show holders", { op: "holders", path: "another", rows }, { op: "account", free: [] });
    timeIsOver();
    said.push(texts(place).join(""));
    step("Show holders", { op: "holders", path: "losses", rows, gone: false });
    timeIsOver();
    step("Show holders", { op: "holders", path: "losses", rows: [], gone: true });
    step("Show holders", { op: "holders", path: "losses", rows: [], gone: false, unknown: true });
    step("Show holders", { op: "holders", path: "losses", rows: [], gone: false });
    step("Show holders", { op: "refused", ask: "account" }, { op: "refused", ask: "holders" });
  }
  if (offered.includes("Free memory …")) {
    const free = ["outputs", "constructor"].map((item) => ({ item, what: "old outputs", bytes: 4 << 20, why: "`Out` holds them" }));
    step("Free memory …", { op: "account", free: [] });
    step("Free memory …", { op: "account", free });
    step("free …");
    step("Cancel", { op: "account", free });
    step("free …");
    step("Free", { op: "account", free: [] }, { op: "freed", item: "outputs", bytes: 1536 }, { op: "account", free: [] });
    step("Free memory …", { op: "account", free });
    step("free …");
    step("Free", { op: "freed", item: "outputs", bytes: 0 });
  }
  return { offered, sent, said };
}

// How many groups of buttons a widget has that no kernel is behind, and what one says whose kernel has ended since.
function alone(card, findings) {
  const layout = { comm_live: false };
  const kept = { card, findings, layout };
  const model = { get: (name) => kept[name], on: () => undefined, off: () => undefined, send: () => undefined };
  const groups = () => {
    const el = createElement("main");
    widget.render({ model, el });
    return el.children.flatMap(all).filter((one) => one.attributes.role === "group");
  };
  const saved = groups().length;
  layout.comm_live = true;
  const live = groups();
  layout.comm_live = false;
  live[0]?.children.find((one) => one.tag === "button").listeners.click();
  return { saved, live: live.length, said: live.flatMap((one) => texts(one.children.at(-1))).join("") };
}

const { cards, findings } = JSON.parse(readFileSync(0, "utf8"));
const result = { muted: muted(cards[0], findings), alone: alone(cards[0], findings), remembered: remembered(cards[0], findings), cards: cards.map(drawn), followed: followed(cards[0], cards[1]), copied: await copied(cards[0]) };
console.log(JSON.stringify({ ...result, polluted: {}.title ?? null }));
