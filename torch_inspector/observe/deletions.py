"""Where the text of a cell lets go of something: `del x`, `x = None`, and what else the cell does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import is_one_of

# Calls by which somebody asks for memory back.
_COLLECTS = frozenset(("collect", "empty_cache", "ipc_collect", "malloc_trim"))
# Calls that make no tensor.
_IDLE = frozenset(
    (
        *("print", "len", "display", "round", "format", "sleep", "getrefcount", "synchronize"),
        *("memory_allocated", "memory_reserved", "memory_summary", "mem_get_info"),
        *("Process", "memory_info", "virtual_memory"),
        *("no_grad", "inference_mode", "device"),
        *("is_available", "is_built", "device_count", "current_device", "reset_peak_memory_stats"),
    )
)
_MAKERS = (ast.BinOp, ast.UnaryOp, ast.AugAssign, ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Await)
_PLACES = (ast.Name, ast.Attribute, ast.Subscript)
_BLOCKS = (ast.If, ast.With, ast.Try)
_SIMPLE = (ast.Delete, ast.Assign, ast.Expr, ast.Import, ast.ImportFrom, ast.Pass)


class Deletion(NamedTuple):
    """A variable, an attribute or an element that is let go of."""

    parts: tuple[str | int, ...]
    """`("trainer", ".model")` for `trainer.model`, `("runs", 3)` for `runs[3]`, `("runs", "=a")` for `runs['a']`."""
    line: int
    settled: bool = False
    """True if the cell has not set the variable to anything else, and makes nothing from there on: what lives then at
    an address that was known before is what was there before."""


class Deletions(NamedTuple):
    """All of them, and what the cell is after."""

    found: tuple[Deletion, ...]
    wants_memory: bool
    """True if the cell collects garbage or empties a cache."""
    alone: bool
    """True if the cell makes nothing else."""


def deletions(code: str) -> Deletions | None:
    """What a cell lets go of outside functions and loops; None if it is nothing."""
    tree = syntax.parse(code) if "del " in code or "None" in code else None
    if tree is None:
        return None
    deleted = [one for statement in _statements(tree.body) for one in _deleted(statement)]
    if not deleted:
        return None
    nodes = [node for node in syntax.walk(tree) if hasattr(node, "lineno")]
    assigned, made = _assigned(tree), max((node.lineno for node in nodes if _makes(node)), default=0)
    found = tuple(one._replace(settled=made < one.line and one.parts[0] not in assigned) for one in deleted)
    return Deletions(found, any(_name_of(node) in _COLLECTS for node in nodes), _is_alone(tree))


@lru_cache(maxsize=32)
def assigned(code: str) -> list[str]:
    """Variables to which the cell gives a value by statements `x = …` of its own, in order."""
    tree = syntax.parse(code) if "=" in code else None
    statements = _statements(tree.body) if tree is not None else ()
    targets = (target for one in statements if isinstance(one, ast.Assign) for target in one.targets)
    return list(dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name)))


def _name_of(node: ast.AST) -> str:
    """The last name of what is called; empty for anything else."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _makes(node: ast.AST) -> bool:
    """True for what may make a tensor."""
    if isinstance(node, ast.Call):
        return _name_of(node) not in _IDLE | _COLLECTS
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return any(isinstance(operand, _PLACES) for operand in syntax.children(node)) and not _is_measured(node)
    return isinstance(node, _MAKERS)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those that run once, in order."""
    for statement in body:
        if isinstance(statement, _BLOCKS):
            yield from _statements(statement.body)
        else:
            yield statement


def _deleted(statement: ast.stmt) -> Iterator[Deletion]:
    for target in _targets(statement):
        parts = _parts(target)
        if parts is not None:
            yield Deletion(parts, target.lineno)


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(statement, ast.Delete):
        for target in statement.targets:
            yield from _flat(target)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _set_to_none(target, statement.value)


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
        yield from _flat(part) if part is not target else (part,)


def _set_to_none(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.Constant) and value.value is None:
        yield target
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, what in zip(target.elts, value.elts, strict=True):
            yield from _set_to_none(one, what)


def _parts(node: ast.expr) -> tuple[str | int, ...] | None:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        owner = _parts(node.value)
        return (*owner, f".{node.attr}") if owner is not None else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner, key = _parts(node.value), node.slice.value
        if owner is not None and is_one_of(key, (str, int)):
            return (*owner, f"={key}" if type(key) is str else key)  # type: ignore[arg-type]
    return None


def _is_measured(node: ast.AST) -> bool:
    """True for `process.memory_info().rss / 2**20`."""
    return (
        isinstance(node, ast.BinOp) and isinstance(node.left, ast.Attribute) and isinstance(node.left.value, ast.Call)
    )


def _is_alone(tree: ast.Module) -> bool:
    plain = all(isinstance(statement, _SIMPLE) for statement in _statements(tree.body))
    sets = any(isinstance(one, ast.Assign) and not any(_targets(one)) for one in _statements(tree.body))
    return plain and not sets and not any(map(_makes, syntax.walk(tree)))


def _assigned(tree: ast.Module) -> frozenset[str]:
    """Variables that the cell sets to something, or of which it sets an attribute or an element."""
    none = {id(target) for one in syntax.walk(tree) if isinstance(one, ast.Assign) for target in _targets(one)}
    stored = (node for node in syntax.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store))
    parts = (_parts(node) for node in stored if id(node) not in none and isinstance(node, _PLACES))
    return frozenset(str(one[0]) for one in parts if one is not None)
