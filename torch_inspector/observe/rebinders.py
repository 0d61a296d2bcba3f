"""What functions of a session may do to the user's names and tensors that no line of the cell shows."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.source import dotted
from torch_inspector.observe.written import writes

# Cells whose text is searched for the words; only those that have one are parsed.
_CELLS = 1_000
_WORDS = ("global", "exec(", "vars(", "locals(", "__defaults__", ".data", "'data'", '"data"')
_SPACES = frozenset(["globals", "exec", "vars", "locals"])
# `%run` and the like give names values in ways of their own.
_MAGICS = frozenset(["run_line_magic", "run_cell_magic"])


class Rebinders(NamedTuple):
    """What the texts do, at any time."""

    names: frozenset[str] = frozenset()
    """Given anew by some function, as `global`."""
    any_name: bool = False
    """True where a text gets at all names, or at the defaults of a function: `globals()`, `exec(…)`."""
    uncounted: bool = False
    """True where a text writes through `x.data`, which torch does not count as a change."""


def rebinders(file: CodeFile, places: Places) -> Rebinders:
    """Those of a cell, and of all before it."""
    trees = [one.tree for one in (file, *places.latest(_CELLS)) if any(word in one.code for word in _WORDS)]
    found = [_rebinders_in(tree) for tree in trees if tree is not None]
    magics = file.tree is not None and "get_ipython" in file.code and _runs_magics(file.tree)
    return Rebinders(
        frozenset[str]().union(*(one.names for one in found)),
        magics or any(one.any_name for one in found),
        any(one.uncounted for one in found),
    )


@lru_cache(maxsize=256)
def _rebinders_in(tree: ast.Module) -> Rebinders:
    nodes = list(syntax.walk(tree))
    names = frozenset(name for one in nodes if isinstance(one, ast.Global) for name in one.names)
    called = {dotted(one.func) for one in nodes if isinstance(one, ast.Call)}
    fields = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    reaches = not called.isdisjoint(_SPACES) or "__defaults__" in fields
    return Rebinders(names, reaches, any(map(_is_uncounted, nodes)))


def _is_uncounted(node: ast.AST) -> bool:
    """True for `x.data = y`, `x.data.mul_(2)`, `x.data[0] = 1` and `setattr(x, "data", y)`; `self` is no tensor."""
    if isinstance(node, ast.Call) and dotted(node.func) == "setattr":
        return any(isinstance(one, ast.Constant) and one.value == "data" for one in node.args)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return _is_data(node)
    return any(_is_data(part) for written in writes(node) for part in syntax.walk(written))


def _is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data" and dotted(node.value) != "self"


def _runs_magics(tree: ast.Module) -> bool:
    calls = (one for one in syntax.walk(tree) if isinstance(one, ast.Call))
    return any(isinstance(one.func, ast.Attribute) and one.func.attr in _MAGICS for one in calls)
