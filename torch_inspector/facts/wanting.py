"""The few parameters of a mostly frozen model that want a gradient, and the lines of a block that they go through."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

# More of them are no help as names.
_FEW, _LONGEST = 3, 110


class Wanting(NamedTuple):
    """Parameters of a model, as its own code calls them, and as the user may type them."""

    labels: tuple[str, ...]
    paths: tuple[str, ...]

    def said(self) -> str:
        """The words `, of which only `net.ctx` wants a gradient`; empty if there are none."""
        if not self.paths:
            return ""
        names = " and ".join(f"`{one}`" for one in self.paths)
        return f", of which only {names} want{'s' * (len(self.paths) == 1)} a gradient"


def wanting(run: Run, calls: list[ForwardFact]) -> Wanting:
    """Those of the only model that was called, if others of it are frozen."""
    keys = {call.module for call in calls}
    fact = next((one for one in run.after.modules if keys == {one.key} and one.path), None)
    own = [name for key, name in fact.parameter_names if key not in fact.frozen_keys] if fact is not None else []
    if fact is None or not fact.frozen_keys or not 0 < len(own) <= _FEW:
        return Wanting((), ())
    return Wanting(tuple(own), tuple(f"{fact.path}.{one}" for one in own))


def outside(run: Run, cut: CutFact | None, labels: tuple[str, ...]) -> str:
    """The one statement of a `no_grad` block that such parameters go into, to be moved out of it; empty for others."""
    tree = syntax.parse(run.source_of(cut.place.cell)) if cut is not None and cut.kind == "no_grad" else None
    if cut is None or tree is None:
        return ""
    block = next((n for n in syntax.walk(tree) if isinstance(n, ast.With) and n.lineno == cut.place.line), None)
    parts = {f"self.{one.partition('.')[0]}" for one in labels}
    found = [one for one in block.body if _reads(one, parts)] if block is not None else []
    text = ast.unparse(found[0]) if len(found) == 1 and isinstance(found[0], (ast.Assign, ast.Return)) else ""
    return f"{text}  # outside of {cut.text}" if text and len(text) <= _LONGEST else ""


def _reads(node: ast.stmt, parts: set[str]) -> bool:
    return any(isinstance(one, ast.Attribute) and ast.unparse(one) in parts for one in syntax.walk(node))
