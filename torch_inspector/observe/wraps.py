"""Arithmetic between tensors of small whole numbers whose results do not fit: differences below zero, squares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import ExpressionFact, Shape, syntax
from torch_inspector.observe.arrays import as_tensors
from torch_inspector.observe.batch_rows import batch_rows
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.fitting import LARGEST, OPERATORS, fits, kind_of, outside_of, share_outside
from torch_inspector.observe.live_operands import Look, live_operand
from torch_inspector.observe.meant import becomes_tensor, is_meant
from torch_inspector.observe.picked import Result, is_picked
from torch_inspector.observe.ran import surely_ran
from torch_inspector.observe.read_numbers import is_read_as_number, reads_of
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.statements import target_of
from torch_inspector.observe.still_same import Seen
from torch_inspector.observe.undone import is_by_a_key, is_undone
from torch_inspector.observe.written import alike, may_change

# A checksum or a wheel of 256 steps says so.
_WRITTEN = re.compile(r"% *(256|65536)|& *(255|65535)")
# What undoes them: modulo 256, too.
_BACK: dict[type[ast.operator | None], str] = {ast.Add: "sub", ast.Sub: "add"}
_OPPOSITE = {"add": "sub", "sub": "add"}
_SIGNS: dict[type[ast.operator | None], str] = {ast.Sub: "sub", ast.Add: "add", ast.Mult: "mul", ast.Pow: "pow"}
# Numbers of all values of 8 and of 16 bits.
_WHOLE_TURNS = frozenset([1 << 8, 1 << 16])
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


class _Work(NamedTuple):
    """An operation with what it was given."""

    operation: str
    sides: list[ast.expr]
    values: list[Any]
    kind: torch.dtype
    of_arrays: bool = False
    left_out: int = 0
    """Rows of the tensor that it may not have been given."""
    seen: Sequence[Seen] = ()
    """Names that the sides were made of."""

    def share(self) -> float:
        """Part of the results that do not fit; 0 if they may all be of rows that were left out."""
        share = share_outside(self.operation, self.values, self.kind)
        rows = next(value for value in self.values if is_tensor(value))
        return share if not self.left_out or share * len(rows) > self.left_out else 0.0

    def names(self) -> tuple[str, ...]:
        """Both sides as they are written, a number last."""
        texts = [ast.unparse(side) for side in self.sides]
        return tuple(texts if is_tensor(self.values[0]) else texts[::-1])

    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the tensors among them."""
        return tuple(shape for value in self.values if (shape := shape_of(value)) is not None)

    def name(self) -> str:
        """`uint8`; `numpy.uint8` of arrays."""
        return ("numpy." if self.of_arrays else "") + str(self.kind).removeprefix("torch.")


def wraps(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """An operation on live tensors of 8 or 16 bits for some of whose elements the result is another number."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)):
        yield from _in_place(scope, node, statement)
        return
    operation, sides = _operation(node)
    if not operation or not sides or _WRITTEN.search(ast.unparse(statement)) or _both_ways(sides, statement):
        return
    work = _work(scope, operation, sides, statement)
    share = work.share() if work is not None else 0.0
    if work is None or not share or is_meant(scope, node, statement, sides) or _is_picked(scope, node, statement, work):
        return
    if work.of_arrays and not becomes_tensor(scope, node, statement):
        return
    if _is_run(scope, node, statement, work):
        yield from _fact(scope, node, statement, work, share)


def _fact(scope: Scope, node: ast.AST, statement: ast.stmt, work: _Work, share: float) -> Iterator[ExpressionFact]:
    """The fact; sure only if the text reads an amount, and nowhere takes it back; none without time for that."""
    shapes, names = work.shapes(), work.names()
    is_read = is_read_as_number(scope, node, statement, reads_of(work.operation, shapes))
    undone = is_undone(scope, node, statement, work.sides)
    if undone is not None and (is_read or not undone):
        more = {"names": names, "shapes": shapes, "detail": work.name(), "share": share}
        sure = is_read and not undone and not is_by_a_key(scope, node, statement, work.sides)
        yield scope.fact("wrapped", node, statement, **more, sure=sure)


def _is_picked(scope: Scope, node: ast.AST, statement: ast.stmt, work: _Work) -> bool:
    """True if only those results are taken that fit."""
    outside = outside_of(work.operation, work.values, work.kind)
    if outside is None:
        return False
    numbers = OPERATORS[work.operation](*work.values).to(torch.int32)
    return is_picked(Result(scope, node, statement, work.sides, work.values, numbers, outside))


def _work(scope: Scope, operation: str, sides: list[ast.expr], statement: ast.stmt) -> _Work | None:
    """Both operands as tensors of one kind and whole numbers, by what is still there of them."""
    seen: list[Seen] = []
    live, left_out = [live_operand(Look(scope, seen), side) for side in sides], 0
    for at, side in enumerate(sides):
        if isinstance(side, ast.Name) and not is_tensor(live[at]) and type(live[1 - at]) is int:
            rows = batch_rows(scope, side.id, statement, LARGEST)
            live[at], left_out = (rows.tensor, rows.left_out) if rows is not None else (live[at], 0)
    values = as_tensors(live)
    kind = next((kind for value in values if (kind := kind_of(value)) is not None), None)
    if kind is None or any(not fits(value, kind) for value in values) or _is_turn_of_bytes(operation, values[0]):
        return None
    return _Work(operation, sides, values, kind, values is not live, left_out, seen)


def _is_turn_of_bytes(operation: str, first: Any) -> bool:
    """True for `256 - x`, the rest of the way round."""
    return operation == "sub" and type(first) is int and first in _WHOLE_TURNS


def _is_run(scope: Scope, node: ast.AST, statement: ast.stmt, work: _Work) -> bool:
    """True if what a line gave a name is there and is the result, or it surely ran on the numbers of now."""
    given = isinstance(statement, ast.Assign) and statement.value is node and not scope.function
    result = scope.reading.names.get(target_of(statement)) if given else None
    if type(result) is torch.Tensor and fits(result, work.kind) and _is_result(result, work):
        return True
    return surely_ran(scope, node, statement) and not any(one.may_be_another() for one in work.seen)


def _is_result(result: torch.Tensor, work: _Work) -> bool:
    try:
        return bool(torch.equal(OPERATORS[work.operation](*work.values), result))
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return False


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
    if _is_written_below(scope.node, name, statement) or _WRITTEN.search(ast.unparse(statement)):
        return
    now, other = scope.reading.names.get(name), scope.names.value(side)
    sides: list[ast.expr] = [ast.Name(name, ast.Load()), side]
    work = _before(back, now, other, sides) if other is not now else None
    share = work.share() if work is not None else 0.0
    if work is None or not share or is_meant(scope, node, statement, sides):
        return
    if not _is_picked(scope, node, statement, work):
        yield from _fact(scope, statement, statement, work, share)


def _before(back: str, now: Any, other: Any, sides: list[ast.expr]) -> _Work | None:
    """What changed a tensor in place, by what this is now."""
    kind = kind_of(now)
    if kind is None or not fits(now, kind) or not fits(other, kind):
        return None
    try:
        return _Work(_OPPOSITE[back], sides, [getattr(torch, back)(now, other), other], kind)
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return None


def _changed(node: ast.AugAssign | ast.Assign) -> tuple[str, ast.operator | None, ast.expr | None]:
    """The name, the sign and the other operand of `a += b` and of `a = a + b`."""
    if isinstance(node, ast.AugAssign):
        return (node.target.id if isinstance(node.target, ast.Name) else ""), node.op, node.value
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(target, ast.Name) or len(node.targets) > 1:
        return "", None, None
    sides = [value.right, value.left] if isinstance(value.op, ast.Add) else [value.right]
    other = next((one for one in sides if _is_other(one, value, target.id)), None)
    return (target.id if other is not None else ""), value.op, other


def _is_other(side: ast.expr, whole: ast.BinOp, name: str) -> bool:
    """True if the opposite side is the name itself."""
    opposite = whole.left if side is whole.right else whole.right
    return isinstance(opposite, ast.Name) and opposite.id == name


def _is_written_below(tree: ast.AST, name: str, statement: ast.stmt) -> bool:
    """True if another line, from the statement's on, gives the name another value or may change it in place."""
    own = {statement, *syntax.walk(statement)}
    late = [one for one in syntax.walk(tree) if getattr(one, "lineno", 0) >= statement.lineno and one not in own]
    names = alike(tree, frozenset([name]))
    return any(_gives_anew(one, name) or may_change(one, names) for one in late)


def _gives_anew(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


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
