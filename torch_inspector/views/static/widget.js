// What the widget does beside drawing its card: it follows the card, and puts into it what can be done. One module with
// `card.js` and `actions.js`, which stand above it; see `widget.py`.

/** Puts the buttons into the findings that can be opened: the k-th is the k-th that the kernel names. */
function withActions(el, model) {
  const named = model.get("findings");
  const found = Array.isArray(named) && named.length <= COUNT && !isAlone(model) ? named : [];
  const drawnOnes = found.length ? [...el.querySelectorAll(".ti-finding")] : [];
  return found.flatMap((one, index) => {
    const inside = drawnOnes[index]?.querySelector(":scope > .ti-inside");
    if (!isFound(one) || inside?.getAttribute("data-ti-slug") !== one.slug) return [];
    const made = actions(one, model);
    inside.append(made.node);
    return [made];
  });
}

function render({ model, el }) {
  let shown = [];
  const update = () => {
    // The extension of JupyterLab says there that it opens pages.
    const pages = "tiPages" in document.body.dataset;
    draw(el, model.get("card"), { copy: true, marks: true, pages });
    shown = withActions(el, model);
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
