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
# Calls that give no tensor, and methods of tensors that change nothing: what is made on the way is gone at once.
_SAYS, _READS = frozenset(("print", "float", "int", "bool", "len", "round")), frozenset(("item", "tolist"))
_MEASURES = frozenset(
    (
        *("abs", "all", "any", "argmax", "argmin", "count_nonzero", "detach", "isfinite", "isnan", "item", "max"),
        *("mean", "median", "min", "norm", "numel", "size", "std", "sum", "tolist", "var"),
    )
)
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
    """True if the cell makes nothing else, but what it prints and copies of parts of what it deletes."""


def deletions(code: str) -> Deletions | None:
    """What a cell lets go of outside functions and loops; None if it is nothing."""
    tree = syntax.parse(code) if "del " in code or "None" in code else None
    if tree is None:
        return None
    deleted = [one for statement in _statements(tree.body) for one in _deleted(statement)]
    if not deleted:
        return None
    nodes, read, copies = (
        [one for one in syntax.walk(tree) if hasattr(one, "lineno")],
        _read(tree),
        _copies(tree, deleted),
    )
    # A copy is made while its source lives.
    makers = [node for node in nodes if _makes(node) and id(node) not in read | copies]
    assigned, made = _assigned(tree), max((node.lineno for node in makers), default=0)
    found = tuple(one._replace(settled=made < one.line and one.parts[0] not in assigned) for one in deleted)
    wants = any(_name_of(node) in _COLLECTS for node in nodes)
    return Deletions(found, wants, _is_alone(tree, read if wants else read | copies))


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


def _is_alone(tree: ast.Module, passing: set[int]) -> bool:
    """True if the cell makes nothing but what is in `passing`, by the identities of nodes."""
    statements = [one for one in _statements(tree.body) if id(one) not in passing]
    plain = all(isinstance(statement, _SIMPLE) for statement in statements)
    sets = any(isinstance(one, ast.Assign) and not any(_targets(one)) for one in statements)
    made = (node for node in syntax.walk(tree) if id(node) not in passing)
    return plain and not sets and not any(map(_makes, made))


def _read(tree: ast.Module) -> set[int]:
    """What statements are made of that only say a number, as `print(x.std().item())`."""
    said = [one.value for one in _statements(tree.body) if isinstance(one, ast.Expr) and _says(one.value)]
    return {id(node) for one in said for node in syntax.walk(one)}


def _says(node: ast.expr) -> bool:
    last = _name_of(node)
    method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    calls = [one for one in syntax.walk(node) if isinstance(one, ast.Call)]
    known = all(_name_of(one) in (_MEASURES if isinstance(one.func, ast.Attribute) else _SAYS) for one in calls)
    looping = any(isinstance(one, (ast.comprehension, ast.Await, ast.NamedExpr)) for one in syntax.walk(node))
    return last in (_READS if method else _SAYS) and known and not looping


def _copies(tree: ast.Module, deleted: list[Deletion]) -> set[int]:
    """Statements like `few = rows[:4].clone()` for what is deleted further down, and all that is in them."""
    found = (one for one in _statements(tree.body) if isinstance(one, ast.Assign) and _is_name(one.targets))
    gone = {one.parts[0]: one.line for one in deleted if len(one.parts) == 1}
    copied = (one for one in found if one.lineno <= gone.get(_part_copied(one.value), 0))
    return {id(node) for one in copied for node in syntax.walk(one)}


def _is_name(targets: list[ast.expr]) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name)


def _part_copied(node: ast.expr) -> str:
    """`rows` for `rows[:4].detach().clone()`; empty for anything else."""
    is_copy = _name_of(node) in ("clone", "copy")
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        if node.func.attr not in ("clone", "copy", "detach", "contiguous", "cpu"):
            return ""
        node = node.func.value
    part = node.value if isinstance(node, ast.Subscript) and is_copy else None
    plain = part is not None and not any(isinstance(one, ast.Call) for one in syntax.walk(node))
    return part.id if plain and isinstance(part, ast.Name) else ""


def _assigned(tree: ast.Module) -> frozenset[str]:
    """Variables that the cell sets to something, or of which it sets an attribute or an element."""
    none = {id(target) for one in syntax.walk(tree) if isinstance(one, ast.Assign) for target in _targets(one)}
    stored = (node for node in syntax.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store))
    parts = (_parts(node) for node in stored if id(node) not in none and isinstance(node, _PLACES))
    return frozenset(str(one[0]) for one in parts if one is not None)
