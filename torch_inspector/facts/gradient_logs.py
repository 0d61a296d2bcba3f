"""Gradients that are only looked at: printed, asserted, or a norm of them kept in a list that is only shown."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import called, syntax
from torch_inspector.facts.mentions import reads_in

_SHOWS = frozenset(["print", "display"])
_KEEPS = frozenset(["append", "add_scalar", "log", "log_metric"])
# What draws or counts the numbers of a list.
_DRAWS = frozenset(["plot", "semilogy", "hist", "scatter", "bar", "len", "max", "min", "Series", "DataFrame", "clear"])
# `n = p.grad.norm()`, `m = n.item()`, `norms.append(m)`.
_NAMES = 3


def is_shown(node: ast.AST, parents: dict[int, ast.AST], shows: frozenset[str] = _SHOWS) -> bool:
    """True for what is only printed, or asserted: that says that somebody looks for a mistake."""
    above = list(_above(node, parents))
    shown = any(isinstance(one, ast.Call) and called(one) in shows for one in above)
    return shown or (bool(above) and isinstance(above[-1], ast.Assert))


class Logs:
    """Tells which gradients are only logged; each collection, and each variable on the way, is judged once.

    Args:
        trees: All texts.
    """

    def __init__(self, trees: list[ast.Module]) -> None:
        self._trees = trees
        self._unused: dict[str, bool] = {}
        self._handed_on: dict[tuple[int, str, int], bool] = {}

    def is_logged(self, read: ast.AST, tree: ast.Module, *, names: int = _NAMES) -> bool:
        """True for a gradient whose norm is kept in a collection that the texts only fill, draw or show.

        Args:
            read: The gradient, or a variable that has the norm.
            tree: The text that it is in.
            names: How many variables it may be handed on to.
        """
        above = list(_above(read, syntax.parents(tree)))
        norm = names < _NAMES or any("norm" in called(one) for one in above if isinstance(one, ast.Call))
        kept = next((one.func for one in above if isinstance(one, ast.Call) and called(one) in _KEEPS), None)
        statement = above[-1] if above else None
        if not norm:
            return False
        if isinstance(kept, ast.Attribute):
            return self._is_never_used(kept.value)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(target, ast.Subscript):
            return self._is_never_used(target.value)
        return isinstance(target, ast.Name) and bool(names) and self._is_handed_on(tree, target.id, names - 1)

    def _is_handed_on(self, tree: ast.Module, name: str, names: int) -> bool:
        """True if a variable that has the norm is only shown, or logged."""
        key = (id(tree), name, names)
        if key not in self._handed_on:
            parents, reads = syntax.parents(tree), reads_in(tree).get(name, [])
            self._handed_on[key] = bool(reads) and all(
                is_shown(one, parents) or self.is_logged(one, tree, names=names) for one in reads
            )
        return self._handed_on[key]

    def _is_never_used(self, collection: ast.expr) -> bool:
        """True if the texts only fill a collection, draw it, or show it."""
        name = ast.unparse(collection).partition("[")[0].rpartition(".")[2]
        if name not in self._unused:
            self._unused[name] = name.isidentifier() and all(_only_fills(tree, name) for tree in self._trees)
        return self._unused[name]


def _only_fills(tree: ast.Module, name: str) -> bool:
    reads = reads_in(tree).get(name, [])
    parents = syntax.parents(tree) if reads else {}
    return all(_is_filled(one, parents) or is_shown(one, parents, _SHOWS | _DRAWS) for one in reads)


def _above(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    """All that is around a node, up to its statement."""
    above = parents.get(id(node))
    while above is not None:
        yield above
        above = parents.get(id(above)) if not isinstance(above, ast.stmt) else None


def _is_filled(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """True for the collection of `norms.append(n)`, of `norms["a"].append(n)`, and of `norms["a"] = n`; or alone."""
    above = parents.get(id(node))
    while isinstance(above, ast.Subscript):
        if isinstance(above.ctx, ast.Store):
            return True
        above = parents.get(id(above))
    return isinstance(above, ast.Expr) or (isinstance(above, ast.Attribute) and above.attr in (*_KEEPS, *_DRAWS))
