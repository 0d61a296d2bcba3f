"""Arithmetic between tensors of small whole numbers whose results do not fit: differences below zero, squares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.arrays import as_tensors, copied, is_small, part_of, taken_over
from torch_inspector.observe.batch_rows import batch_rows
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.meant import becomes_tensor, is_meant, is_undone
from torch_inspector.observe.reached import is_reached
from torch_inspector.observe.read_numbers import is_read_as_number, reads_of
from torch_inspector.observe.shapes import UNKNOWN, is_array, is_tensor, shape_of
from torch_inspector.observe.source import dotted

_SMALL = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-(1 << 15), (1 << 15) - 1)}
# About half a millisecond on a laptop.
_LARGEST = 1 << 20
# Methods that show the same numbers in other sizes.
_VIEWS = frozenset(
    ["unfold", "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "t", "narrow",
     "select", "detach", "contiguous", "flip", "roll", "fliplr", "flipud"]
)  # fmt: skip
# Those that show the same numbers at another place.
_SAME = frozenset(["copy", "clone"])
_DEPTH = 4
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
# A checksum or a wheel of 256 steps says so.
_WRITTEN = re.compile(r"% *(256|65536)|& *(255|65535)")
# What only looks at what it is given.
_LOOKS = frozenset(["print", "display", "float", "int", "bool", "str", "repr", "len", "type", "id", "round"])
# What undoes them: modulo 256, too.
_BACK: dict[type[ast.operator | None], str] = {ast.Add: "sub", ast.Sub: "add"}
_SIGNS: dict[type[ast.operator | None], str] = {ast.Sub: "sub", ast.Add: "add", ast.Mult: "mul", ast.Pow: "pow"}
_SPACES = frozenset(["torch", "np", "numpy"])
_METHODS = {
    "sub": "sub",
    "subtract": "sub",
    "add": "add",
    "mul": "mul",
    "multiply": "mul",
    "pow": "pow",
    "square": "pow",
}


def wraps(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """An operation on live tensors of 8 or 16 bits for some of whose elements the result is another number."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)):
        yield from _in_place(scope, node, statement)
        return
    operation, sides = _operation(node)
    if not operation or not sides or _WRITTEN.search(ast.unparse(statement)) or _both_ways(sides, statement):
        return
    live = [_live(scope, side) for side in sides]
    if not is_tensor(live[0]) and all(type(one) is int for one in live[1:]):
        live[0] = _of_batch(scope, sides[0], statement, live[0])
    values = as_tensors(live)
    if not is_tensor(values[0]) or _dtype_of(values[0]) not in _SMALL:
        return
    dtype = _dtype_of(values[0])
    if any(not _fits(value, dtype) for value in values):
        return
    share = _share(operation, values, dtype)
    if share and (is_meant(scope, node, statement, sides) or _stays_array(scope, node, statement, values, live)):
        return
    if share and (not scope.function or is_reached(scope.node, statement, node, scope.names.value)):
        names, name = tuple(ast.unparse(side) for side in sides), str(dtype).removeprefix("torch.")
        name = name if values is live else f"numpy.{name}"
        shapes = tuple(shape for value in values if (shape := shape_of(value)) is not None)
        sure = is_read_as_number(scope, node, statement, reads_of(operation))
        if sure or not is_undone(scope, node, statement, sides):
            more = {"names": names, "shapes": shapes, "detail": name, "share": share, "sure": sure}
            yield scope.fact("wrapped", node, statement, **more)


def _stays_array(scope: Scope, node: ast.AST, statement: ast.stmt, values: list[Any], live: list[Any]) -> bool:
    return values is not live and not becomes_tensor(scope, node, statement)


def _both_ways(sides: list[ast.expr], statement: ast.stmt) -> bool:
    """True for `where(a > b, a - b, b - a)`, which takes of each the one that fits."""
    one, two = (ast.unparse(side) for side in sides)
    text = ast.unparse(statement)
    return one != two and all(f"{a} - {b}" in text for a, b in ((one, two), (two, one)))


def _in_place(scope: Scope, node: ast.AugAssign | ast.Assign, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`a += b` and `a = a + b`: what `a` was is worked out from what it is now, where nothing changed it since."""
    name, sign, side = _changed(node)
    back = _BACK.get(type(sign), "")
    # Only what surely ran: a statement of the cell itself.
    if not name or not back or side is None or statement not in getattr(scope.node, "body", ()) or scope.function:
        return
    late = [one for one in syntax.walk(scope.node) if getattr(one, "lineno", 0) >= statement.lineno]
    late = [one for one in late if _writes(one, name) and one not in {statement, *syntax.walk(statement)}]
    now, other = scope.reading.names.get(name), scope.names.value(side)
    if late or _WRITTEN.search(ast.unparse(statement)) or not is_tensor(now) or _dtype_of(now) not in _SMALL:
        return
    dtype = _dtype_of(now)
    if other is now or not _fits(now, dtype) or not _fits(other, dtype):
        return
    try:
        before = getattr(torch, back)(now, other)
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return
    share = _share(_SIGNS[type(sign)], [before, other], dtype)
    if share and not is_meant(scope, node, statement, [ast.Name(name, ast.Load()), side]):
        names, shape, kind = (name, ast.unparse(side)), shape_of(now), str(dtype).removeprefix("torch.")
        shapes = (shape,) if shape is not None else ()
        sure = is_read_as_number(scope, statement, statement, reads_of(_SIGNS[type(sign)]))
        more = {"names": names, "shapes": shapes, "detail": kind, "share": share, "sure": sure}
        yield scope.fact("wrapped", statement, statement, **more)


def _changed(node: ast.AugAssign | ast.Assign) -> tuple[str, ast.operator | None, ast.expr | None]:
    """The name, the sign and the other operand of `a += b` and of `a = a + b`."""
    if isinstance(node, ast.AugAssign):
        return (node.target.id if isinstance(node.target, ast.Name) else ""), node.op, node.value
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(target, ast.Name) or len(node.targets) > 1:
        return "", None, None
    same = isinstance(value.left, ast.Name) and value.left.id == target.id
    return (target.id if same else ""), value.op, value.right


def _writes(node: ast.AST, name: str) -> bool:
    """True for what gives the name another value or changes it in place."""
    if isinstance(node, ast.Name) and node.id == name:
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and node.value.id == name
    # Whoever is given it, or calls a method of a part of it, may change it.
    looks = isinstance(node, ast.Call) and dotted(node.func) in _LOOKS
    given = [*node.args, *(one.value for one in node.keywords)] if isinstance(node, ast.Call) and not looks else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        given.append(node.func.value)
    return any(isinstance(one, ast.Name) and one.id == name for whole in given for one in syntax.walk(whole))


def _live(scope: Scope, side: ast.expr, depth: int = 0) -> Any:
    """What an operand is now; a part of a plain tensor or array is looked at through a view of its own."""
    value = scope.names.value(side)
    if is_tensor(value) or is_array(value) or depth > _DEPTH:
        return UNKNOWN if _is_given_anew(scope, side) else value
    if isinstance(side, ast.Name):
        given = scope.names.given.get(side.id) or scope.names.given_before(side.id)
        if given is None or _is_written(scope.node, side.id):
            return value
        return _live(scope, given, depth + 1)
    array = copied(scope.names, side)
    if array is not None:
        return taken_over(scope.names, side, _live(scope, array, depth + 1), value)
    return _part(scope, side, value, depth)


def _of_batch(scope: Scope, side: ast.expr, statement: ast.stmt, otherwise: Any) -> Any:
    """Rows of the loader whose batches a variable stands for."""
    rows = batch_rows(scope, side.id, statement, _LARGEST) if isinstance(side, ast.Name) else None
    return otherwise if rows is None else rows


def _part(scope: Scope, side: ast.expr, value: Any, depth: int) -> Any:
    """A part, or other sizes, of a live tensor or array; what is known already where there is none."""
    func = side.func if isinstance(side, ast.Call) else None
    if isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _SAME:
        return value if side.args or side.keywords else _live(scope, func.value, depth + 1)
    if isinstance(side, ast.Subscript):
        owner, parts = side.value, side.slice.elts if isinstance(side.slice, ast.Tuple) else [side.slice]
    elif isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _VIEWS and not side.keywords:
        owner, parts = func.value, side.args
    else:
        return value
    of, index = _live(scope, owner, depth + 1), tuple(_index(scope, part) for part in parts)
    if is_small(of) and None not in index and isinstance(side, ast.Subscript):
        return part_of(of, index, value)
    if (
        type(of) is not torch.Tensor
        or not of.is_cpu
        or _dtype_of(of) not in _SMALL
        or None in index
        or of.numel() > _LARGEST
    ):
        return value
    try:
        return getattr(of, func.attr)(*index) if isinstance(func, ast.Attribute) else of[index]
    except Exception:  # noqa: BLE001  (the tensor may be another one by now)
        return value


def _is_written(scope: ast.AST, name: str) -> bool:
    """True if a scope changes elements of a variable, by an index or by a method like `clamp_`."""
    for node in syntax.own_expressions(scope):
        owner = node.value if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) else None
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr.endswith("_"):
            owner = func.value
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id == name:
            return True
    return False


def _is_given_anew(scope: Scope, side: ast.expr) -> bool:
    """True for an attribute that the function itself gives another value: what it was is not known."""
    if not scope.function or not isinstance(side, ast.Attribute):
        return False
    stored = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.Attribute))
    return any(one.attr == side.attr and not isinstance(one.ctx, ast.Load) for one in stored)


def _index(scope: Scope, part: ast.expr) -> Any:
    """A number, a slice or `...`; None for anything else."""
    if isinstance(part, ast.Constant) and part.value is ...:
        return ...
    if not isinstance(part, ast.Slice):
        value = scope.names.value(part)
        return value if type(value) is int else None
    bounds = [scope.names.value(one) if one is not None else None for one in (part.lower, part.upper, part.step)]
    return slice(*bounds) if all(one is None or type(one) is int for one in bounds) else None


def _operation(node: ast.AST) -> tuple[str, list[ast.expr]]:
    if isinstance(node, ast.BinOp):
        return _SIGNS.get(type(node.op), ""), [node.left, node.right]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return "", []
    operation = _METHODS.get(node.func.attr, "")
    root = node.func.value
    sides = list(node.args) if isinstance(root, ast.Name) and root.id in _SPACES else [root, *node.args]
    if node.func.attr == "square":
        sides = [*sides, ast.Constant(value=2)]
    return operation, sides if len(sides) == 2 else []  # noqa: PLR2004


def _fits(value: Any, dtype: torch.dtype) -> bool:
    """True for a whole number, or a tensor of the same kind on the CPU whose elements can be read."""
    if type(value) is int:
        return True
    if type(value) is not torch.Tensor or _dtype_of(value) is not dtype:
        return False
    return is_in_memory(value) and 0 < value.numel() <= _LARGEST


def _share(operation: str, values: list[Any], dtype: torch.dtype) -> float:
    """Part of the elements whose result lies outside of what the kind can hold, worked out with 32 bits."""
    low, high = _SMALL[dtype]
    one, two = (value.to(torch.int32) if type(value) is torch.Tensor else value for value in values)
    if operation == "pow" and (type(two) is not int or not 1 < two <= 3):  # noqa: PLR2004
        return 0.0
    try:
        result = getattr(torch, operation)(one, two)
        outside = (result < low) | (result > high)
        return float(outside.sum().item()) / max(int(outside.numel()), 1)
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return 0.0
