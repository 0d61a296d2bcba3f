"""Arithmetic between tensors of small whole numbers whose results do not fit: differences below zero, squares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import ExpressionFact, Shape, syntax
from torch_inspector.observe.arrays import as_tensors
from torch_inspector.observe.batch_rows import Rows, batch_rows
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.fitting import LARGEST, OPERATORS, fits, kind_of, outside_of, share_outside
from torch_inspector.observe.grounds import Grounds, Read
from torch_inspector.observe.later import may_have_changed
from torch_inspector.observe.live_operands import Look, live_operand
from torch_inspector.observe.meant import becomes_tensor, is_meant
from torch_inspector.observe.picked import Result, is_picked
from torch_inspector.observe.proven_run import is_proven_to_run
from torch_inspector.observe.ran import surely_ran
from torch_inspector.observe.read_numbers import is_read_as_number, reads_of
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.statements import target_of
from torch_inspector.observe.undone import is_by_a_key, is_undone
from torch_inspector.observe.versions import stays_counted
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
    of_loader: Rows | None = None
    """The rows that one side is, if a loader handed them out."""
    is_proven: bool = False
    """True if it surely ran on these."""

    def share(self) -> float:
        """Part of the results that do not fit; 0 if they may all be of rows that were left out."""
        share = share_outside(self.operation, self.values, self.kind)
        rows = next(value for value in self.values if is_tensor(value))
        left_out = self.of_loader.left_out if self.of_loader is not None else 0
        return share if not left_out or share * len(rows) > left_out else 0.0

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
    proof = _proof(scope, node, statement, work)
    if proof is not None:
        yield from _fact(scope, node, statement, work._replace(is_proven=proof), share)


def _fact(scope: Scope, node: ast.AST, statement: ast.stmt, work: _Work, share: float) -> Iterator[ExpressionFact]:
    """The fact; sure only if the text reads an amount, and nowhere takes it back; none without time for that."""
    shapes, names = work.shapes(), work.names()
    is_read = is_read_as_number(scope, node, statement, reads_of(work.operation, shapes))
    undone = is_undone(scope, node, statement, work.sides)
    if undone is not None and (is_read or not undone):
        more = {"names": names, "shapes": shapes, "detail": work.name(), "share": share}
        sure = work.is_proven and is_read and not undone and not is_by_a_key(scope, node, statement, work.sides)
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
    live, of_loader = [live_operand(Look(scope), side) for side in sides], None
    for at, side in enumerate(sides):
        if isinstance(side, ast.Name) and not is_tensor(live[at]) and type(live[1 - at]) is int:
            of_loader = batch_rows(scope, side.id, statement, LARGEST)
            live[at] = of_loader.tensor if of_loader is not None else live[at]
    values = as_tensors(live)
    kind = next((kind for value in values if (kind := kind_of(value)) is not None), None)
    if kind is None or any(not fits(value, kind) for value in values) or _is_turn_of_bytes(operation, values[0]):
        return None
    return _Work(operation, sides, values, kind, values is not live, of_loader)


def _is_turn_of_bytes(operation: str, first: Any) -> bool:
    """True for `256 - x`, the rest of the way round."""
    return operation == "sub" and type(first) is int and first in _WHOLE_TURNS


def _proof(scope: Scope, node: ast.AST, statement: ast.stmt, work: _Work) -> bool | None:
    """True if a line surely ran on the numbers of now, or its result is there; None if it did not, or may not have."""
    given = isinstance(statement, ast.Assign) and statement.value is node and not scope.function
    result = scope.reading.names.get(target_of(statement)) if given else None
    if type(result) is torch.Tensor and fits(result, work.kind) and _is_result(result, work):
        return True
    if not surely_ran(scope, node, statement):
        return None
    grounds = _grounds(scope, work, statement)
    if is_proven_to_run(scope, node, statement, grounds) and grounds.is_sure and not grounds.is_another:
        return True
    return None if grounds.is_another or may_have_changed(grounds, scope, statement) else False


def _grounds(scope: Scope, work: _Work, statement: ast.stmt) -> Grounds:
    grounds, rows = Grounds(scope), work.of_loader
    for side in work.sides if rows is None else [rows.source]:
        grounds.add(Read(scope, side, statement.lineno))
    if rows is not None:
        grounds.take(rows.whole)
    return grounds


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
        is_proven = (
            _is_proven_in_place(scope, node, now, name)
            and _grounds(scope, work._replace(sides=[side]), statement).is_sure
        )
        yield from _fact(scope, statement, statement, work._replace(is_proven=is_proven), share)


def _is_proven_in_place(scope: Scope, node: ast.AugAssign | ast.Assign, now: Any, name: str) -> bool:
    """True if torch counted the one change of a tensor that a statement makes, or none of what it made anew."""
    reading = scope.reading
    key, before = reading.counted.get(name, (0, 0))
    times = (before if key == id(now) else 0) + 1 if isinstance(node, ast.AugAssign) else 0
    known = not reading.rebinders.any_name and name not in reading.rebinders.names
    return known and not reading.rebinders.uncounted and stays_counted(now, times)


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
