// What can be done about a finding where the widget is all there is: in VS Code, in Colab, in a widget of the user's own.
// In JupyterLab our extension does these things, and hides what stands here. One module with `card.js`, which stands
// above it, and `widget.js`, which stands below; see `widget.py`.

const ASKED = "Waiting for the kernel, which answers when no cell runs.";
const NO_ANSWER = "No answer yet: a cell is running, or the kernel has ended.";
const PATIENCE_MS = 10_000;
const LOST = "Not done: the kernel has ended.";
const SILENT = {
  line: "Silent at this line, until it is edited or the kernel restarts.",
  cell: "Silent in this cell, until the kernel restarts.",
};
const FREED = {
  outputs: "`Out` and `_` forget them. No variable of yours changes.",
  cycles: "Nothing of yours leads to them. A garbage collection runs.",
  cache: "torch gives back blocks that no tensor uses.",
  exception: "The last exception is dropped: %debug has nothing to look at then.",
};
const UNITS = ["B", "KB", "MB", "GB", "TB"];

const isFound = (x) => typeof x === "object" && x !== null && isText(x.slug) && SLUG.test(x.slug);
const isSame = (one, other) => ["slug", "scope", "cell", "line"].every((name) => one[name] === other[name]);
const rowsOf = (x) => (Array.isArray(x) && x.length <= COUNT ? x.filter((row) => typeof row === "object" && row !== null) : []);
const textOf = (x) => (isText(x) ? x : "");

/** Bytes to three digits, as `quantity.py` writes them. */
function size(bytes) {
  let [value, unit] = [isCount(bytes) ? bytes : 0, 0];
  for (; value >= 1024 && unit < UNITS.length - 1; unit += 1) value /= 1024;
  const places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${unit ? value.toFixed(places) : value} ${UNITS[unit]}`;
}

/**
 * True where no kernel is behind the widget: in a notebook that was opened with what it had saved, or when the kernel has
 * ended. anywidget does not tell it, the layout of the same widget does.
 */
const isAlone = (model) => model.get("layout")?.comm_live === false;

function saidOf({ scope, on, path, error }) {
  if (isText(error) && error) return `Not done: ${error}.`;
  if (on !== true) return "It is reported again.";
  return Object.hasOwn(SILENT, scope) ? SILENT[scope] : `Silent in every notebook: ${textOf(path)} says so.`;
}

function pressed(text, title, call) {
  const button = withAttributes(node("button", "", text), { type: "button", title });
  button.addEventListener("click", call);
  return [button, " "];
}

/** What keeps it alive, each with the line that lets go of it there. */
function kept({ path, gone, unknown, rows }) {
  if (gone === true) return ["Nothing is called ", node("code", "", textOf(path)), " any more."];
  if (unknown === true) return ["It cannot be looked up by its name."];
  const found = rowsOf(rows).map(({ path, kind, fix }) => {
    const line = textOf(fix) ? [node("p", "", node("code", "", fix), ...copier(fix, "this line"))] : [];
    return node("li", "", node("code", "", textOf(path)), ` ${textOf(kind)}`, ...line);
  });
  return found.length ? [node("ul", "", ...found)] : ["Nothing that Python can see holds it."];
}

/** The buttons of one finding, and how they hear what the kernel answers. */
function actions({ slug, cell, line, run, held, memory }, model) {
  const told = withAttributes(node("div", "ti-told"), { role: "status", tabindex: -1 });
  let awaited = null;
  let late = 0;
  // Whoever pressed what stood there goes on in the answer to that.
  const say = (...parts) => {
    const had = told.contains(told.getRootNode().activeElement);
    clearTimeout(late);
    told.replaceChildren(...parts);
    if (had) (told.querySelector("button") ?? told).focus();
  };
  const ask = (request) => {
    awaited = request;
    say(isAlone(model) ? LOST : ASKED);
    if (!isAlone(model)) late = setTimeout(() => say(NO_ANSWER), PATIENCE_MS);
    try {
      model.send({ v: 1, ...request });
    } catch {
      say(LOST);
    }
  };
  const mute = (scope, on) => () => ask({ ask: "mute", slug, scope, cell: scope === "cell" ? run : cell, line, on });

  // Nothing is let go of before it was asked for twice.
  const free = ({ item, what, bytes, why }) => {
    const made = withAttributes(node("p", "", ...inline(`${textOf(what)}: ${size(bytes)}. ${textOf(why)}. `)), { "data-ti-item": item });
    const sure = () => {
      const [yes, , no] = [...pressed("Free", "Let go of it", () => ask({ ask: "free", item, path: "" })), ...pressed("Cancel", "Keep it", look)];
      made.replaceChildren(...inline(FREED[item]), " ", yes, " ", no);
      no.focus();
    };
    made.append(...pressed("free …", "Asks first", sure));
    return made;
  };
  const look = () => ask({ ask: "account" });
  const heard = {
    muted: (answer) => {
      const isSilent = answer.on === true && !answer.error;
      const undo = isSilent ? [" ", ...pressed("Undo", "Report it again", mute(awaited.scope, false))] : [];
      say(saidOf(answer), ...undo);
    },
    holders: (answer) => say(...kept(answer)),
    account: (answer) => {
      const rows = rowsOf(answer.free).filter(({ item }) => Object.hasOwn(FREED, item));
      say(...(rows.length ? rows.map(free) : ["The notebook itself holds no memory: your own variables do."]));
    },
    freed: ({ bytes }) => say(bytes > 0 ? `${size(bytes)} came free.` : "Nothing came free: something else holds it still."),
    refused: () => say("A cell is running: ask again when it has ended."),
  };
  const answers = {
    mute: (answer) => answer.op === "muted" && isSame(answer, awaited),
    holders: (answer) => answer.op === "holders" && answer.path === awaited.path,
    account: (answer) => answer.op === "account",
    free: (answer) => answer.op === "freed",
  };
  const take = (answer) => {
    if (!awaited || typeof answer !== "object" || answer === null) return;
    if (answers[awaited.ask](answer)) heard[answer.op](answer);
    else if (answer.op === "refused" && answer.ask === awaited.ask) heard.refused();
  };

  const buttons = [
    ...pressed("I meant this", "Be silent about it here; nothing is written into your code", mute(line === null ? "cell" : "line", true)),
    ...pressed("Mute in this cell", `Be silent about ${slug} in this cell`, mute("cell", true)),
    ...pressed("Mute always", `Be silent about ${slug} in every notebook`, mute("always", true)),
    ...(textOf(held) ? pressed("Show holders", `What keeps ${held} alive now`, () => ask({ ask: "holders", path: held })) : []),
    ...(memory === true ? pressed("Free memory …", "Look for what the notebook itself holds; asks before it lets go", look) : []),
  ];
  const where = line === null ? slug : `${slug}, line ${line}`;
  const made = withAttributes(node("div", "ti-acts", ...buttons, told), { role: "group", "aria-label": `actions: ${where}` });
  return { node: made, take };
}
