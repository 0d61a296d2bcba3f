"""Variables that one statement gives their values: `users, items = model.propagate()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# A longer statement is no help as a correction.
_LONGEST = 90


class Made(NamedTuple):
    """What a line makes, and the text that makes it."""

    names: tuple[str, ...]
    text: str

    def said(self) -> str:
        """The words `users` and `items`, in backquotes."""
        quoted = [f"`{one}`" for one in self.names]
        return " and ".join(part for part in (", ".join(quoted[:-1]), quoted[-1]) if part)

    def detached(self) -> str:
        """The words `users.detach(), items.detach()`."""
        return ", ".join(f"{one}.detach()" for one in self.names)


def made_together(run: Run, made: Place | None, name: str) -> Made:
    """The variables that a line makes beside one, with its statement; that one and `name = ...` for other lines."""
    alone = Made((name,), f"{name} = ...")
    tree = syntax.parse(run.source_of(made.cell)) if made is not None else None
    if made is None or tree is None:
        return alone
    for node in syntax.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and node.lineno == made.line else None
        parts = (
            target.elts if isinstance(target, ast.Tuple) and isinstance(getattr(node, "value", None), ast.Call) else []
        )
        names = tuple(one.id for one in parts if isinstance(one, ast.Name))
        if name in names and len(names) == len(parts) and len(ast.unparse(node)) <= _LONGEST:
            used = tuple(one for one in names if one != "_")
            return Made(used, ast.unparse(node))
    return alone
