"""What the texts do about NaN in a result: they take another number in its place, or leave it out."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_REPLACES = frozenset(
    ["where", "nan_to_num", "nan_to_num_", "masked_fill", "masked_fill_", "masked_select", "index_select", "nanmean",
     "nansum", "nanmedian", "nanquantile"]
)  # fmt: skip
_COPIES = frozenset(["clone", "detach", "float", "cpu"])


def is_dealt_with(run: Run, name: str, line: int) -> bool:
    """True if a later line takes of a variable only what is a number: `torch.where(n > 0, out, 0)`, `z[~z.isnan()]`.

    A function of the texts that does so with what it is given counts too.
    """
    tree = syntax.parse(run.cell.source)
    nodes = [one for one in syntax.walk(tree) if getattr(one, "lineno", 0) > line] if tree is not None else []
    helpers = _REPLACES.union(*(_helpers(past.cell.source) for past in (run, *run.earlier)))
    names = (name, *(copy for one in nodes for copy in _copies(one, name)))
    return any(_deals(one, each, helpers) for one in nodes for each in names)


def _copies(node: ast.AST, name: str) -> list[str]:
    """`out` of `out = raw.clone()`."""
    value = node.value if isinstance(node, ast.Assign) else None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _COPIES:
        value = value.func.value
    targets = node.targets if isinstance(node, ast.Assign) and value is not None and _is(value, name) else []
    return [one.id for one in targets if isinstance(one, ast.Name)]


@lru_cache(maxsize=64)
def _helpers(source: str) -> frozenset[str]:
    """Functions that take only what is a number of something that they are given."""
    tree = syntax.parse(source)
    functions = (one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)) if tree is not None else ()
    return frozenset(one.name for one in functions if _guards_given(one))


def _guards_given(function: ast.FunctionDef) -> bool:
    given = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    return any(_deals(node, name, _REPLACES) for node in syntax.walk(function) for name in _named(node) & given)


def _named(node: ast.AST) -> set[str]:
    """The variables that a call or an index is about."""
    parts = [node.value] if isinstance(node, ast.Subscript) else _given(node)
    return {one.id for one in parts if isinstance(one, ast.Name)}


def _deals(node: ast.AST, name: str, calls: frozenset[str]) -> bool:
    return _replaces(node, name, calls) or _picks(node, name)


def _replaces(node: ast.AST, name: str, calls: frozenset[str]) -> bool:
    function = getattr(node, "func", None)
    called = getattr(function, "attr", "") or getattr(function, "id", "")
    return called in calls and any(_is(one, name) for one in _given(node))


def _given(node: ast.AST) -> list[ast.expr]:
    """What a call is given, with what its method belongs to."""
    if not isinstance(node, ast.Call):
        return []
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*owner, *node.args, *(one.value for one in node.keywords)]


def _picks(node: ast.AST, name: str) -> bool:
    """True for `z[~z.isnan()]`, `z[n > 0]`, `z[kept]`, and where something is written in such places of it."""
    if not isinstance(node, ast.Subscript) or not _is(node.value, name):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return isinstance(node.slice, (ast.Name, ast.List)) or any(map(_is_mask, parts))


def _is_mask(node: ast.expr) -> bool:
    return any(isinstance(one, (ast.Compare, ast.Call, ast.Invert)) for one in syntax.walk(node))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
