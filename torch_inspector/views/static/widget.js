// What the widget puts into the card beside what `card.js` draws: a way to be silent about a finding. In JupyterLab our
// extension does that, and hides these. It is one module with `card.js`, which stands above it; see `widget.py`.

const ASKED = "Waiting for the kernel, which answers when no cell runs.";
const LOST = "Not done: the kernel has ended.";
const SILENT = {
  line: "Silent at this line, until it is edited or the kernel restarts.",
  cell: "Silent in this cell, until the kernel restarts.",
};

const isFound = (x) => typeof x === "object" && x !== null && isText(x.slug) && SLUG.test(x.slug);
const isSame = (one, other) => ["slug", "scope", "cell", "line"].every((name) => one[name] === other[name]);

function saidOf({ scope, on, path, error }) {
  if (isText(error) && error) return `Not done: ${error}.`;
  if (on !== true) return "It is reported again.";
  return Object.hasOwn(SILENT, scope) ? SILENT[scope] : `Silent in every notebook: ${isText(path) ? path : ""} says so.`;
}

function pressed(text, title, call) {
  const button = withAttributes(node("button", "", text), { type: "button", title });
  button.addEventListener("click", call);
  return [button, " "];
}

/** The buttons of one finding, and how they hear what the kernel answers. */
function muting({ slug, cell, line, run }, model) {
  const said = withAttributes(node("span", "ti-said"), { role: "status" });
  let awaited = null;
  const ask = (scope, on) => () => {
    awaited = { slug, scope, cell: scope === "cell" ? run : cell, line };
    said.replaceChildren(ASKED);
    try {
      model.send({ v: 1, ask: "mute", ...awaited, on });
    } catch {
      said.replaceChildren(LOST);
    }
  };
  const take = (answer) => {
    if (!awaited || answer?.op !== "muted" || !isSame(answer, awaited)) return;
    const isSilent = answer.on === true && !answer.error;
    const undo = isSilent ? [" ", ...pressed("Undo", "Report it again", ask(awaited.scope, false))] : [];
    said.replaceChildren(saidOf(answer), ...undo);
  };
  const buttons = [
    ...pressed("I meant this", "Be silent about it here; nothing is written into your code", ask(line === null ? "cell" : "line", true)),
    ...pressed("Mute in this cell", `Be silent about ${slug} in this cell`, ask("cell", true)),
    ...pressed("Mute always", `Be silent about ${slug} in every notebook`, ask("always", true)),
  ];
  const made = withAttributes(node("div", "ti-mute", ...buttons, said), { role: "group", "aria-label": `mute: ${slug}` });
  return { node: made, take };
}

/** Puts the buttons into the findings that can be opened: the k-th is the k-th that the kernel names. */
function withMuting(el, model) {
  const named = model.get("findings");
  const found = Array.isArray(named) && named.length <= COUNT ? named : [];
  const drawnOnes = found.length ? [...el.querySelectorAll(".ti-finding")] : [];
  return found.flatMap((one, index) => {
    const inside = drawnOnes[index]?.querySelector(":scope > .ti-inside");
    if (!isFound(one) || inside?.getAttribute("data-ti-slug") !== one.slug) return [];
    const made = muting(one, model);
    inside.append(made.node);
    return [made];
  });
}

function render({ model, el }) {
  let shown = [];
  const update = () => {
    draw(el, model.get("card"), { copy: true, marks: true });
    shown = withMuting(el, model);
  };
  const take = (answer) => shown.forEach((one) => one.take(answer));
  model.on("change:card", update);
  model.on("msg:custom", take);
  update();
  return () => {
    model.off("change:card", update);
    model.off("msg:custom", take);
  };
}

export default { render };
