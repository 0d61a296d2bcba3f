"""What the models of a cell do last, by the text of their `forward`: `return torch.softmax(self.fc(x), 1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.sole import Written, called

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_LONGEST = 80


def returned(run: Run, function: str) -> Written | None:
    """The call of a function whose result the `forward` of the only model that was called gives back.

    None where several classes were called, or `forward` has more than one `return`.
    """
    kinds = {call.kind for call in run.trace.forwards if call.parameter_keys}
    if len(kinds) != 1:
        return None
    classes = dict(_classes(run, kinds.pop()))
    cell, node = max(classes.items(), default=(0, None), key=lambda one: one[0] or 0)
    forwards = [one for one in (node.body if node is not None else ()) if _is_forward(one)]
    returns = [one for part in forwards for one in syntax.walk(part) if isinstance(one, ast.Return)]
    value = returns[0].value if len(returns) == 1 else None
    if value is None or called(value) != function:
        return None
    text = ast.unparse(value)
    return Written(text, Place(cell, value.lineno), inside=True) if len(text) <= _LONGEST else None


def _classes(run: Run, kind: str) -> Iterator[tuple[int | None, ast.ClassDef]]:
    for past in (*run.earlier, run):
        tree = syntax.parse(past.cell.source)
        nodes = syntax.walk(tree) if tree is not None else ()
        yield from ((past.cell.number, one) for one in nodes if isinstance(one, ast.ClassDef) and one.name == kind)


def _is_forward(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "forward"
