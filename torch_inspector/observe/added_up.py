"""Tensors of bytes that a loop adds up in bytes: `total += frame`, whose sum does not fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.grounds import Grounds, Read
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.later import may_have_changed
from torch_inspector.observe.proven_run import is_proven_to_run
from torch_inspector.observe.ran import surely_ran
from torch_inspector.observe.read_numbers import is_read_as_number, reads_of
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import plain_stores, stores_in
from torch_inspector.observe.undone import is_undone
from torch_inspector.observe.written import parts_of, writes
from torch_inspector.observe.written_later import is_written_later

_HIGHEST = 255
# Numbers that are added up, and tensors.
_LARGEST, _MOST = 1 << 20, 500
_LIKE = frozenset(["torch.zeros_like", "torch.empty_like", "torch.ones_like"])
_OF_SIZES = frozenset(["torch.zeros", "torch.ones", "torch.empty"])
_ZEROS = frozenset(["torch.zeros_like", "torch.zeros"])
_LEAVES = (ast.Break, ast.Continue, ast.Return)


class _Sum(NamedTuple):
    """A statement of a loop that adds each piece to a variable."""

    statement: ast.stmt
    total: str
    begins: ast.expr
    """What the variable was given before the loop."""
    piece: str

    def operation(self) -> ast.AST:
        return self.statement.value if isinstance(self.statement, ast.Assign) else self.statement

    def sides(self) -> list[ast.expr]:
        """The variable and the piece; what is to be converted comes first."""
        names = (self.total, self.piece)
        ordered = names[::-1] if isinstance(self.begins, ast.Constant) else names
        return [ast.Name(one, ast.Load()) for one in ordered]


def added_up(scope: Scope, node: ast.AST, _: ast.stmt) -> Iterator[ExpressionFact]:
    """A sum over tensors that are there, of which some elements are larger than a byte, in a variable of bytes."""
    if not isinstance(node, ast.For) or _is_inner(scope.node, node):
        return
    for one in _sums(scope, node):
        pieces = _pieces(scope, node.iter)
        share = _share(pieces)
        proof = _proof(scope, node, one, pieces) if share and _is_of_bytes(scope, one.begins, node.iter) else None
        if proof is not None:
            yield from _fact(scope, one, share, is_proven=proof)


def _sums(scope: Scope, loop: ast.For) -> Iterator[_Sum]:
    """Statements of a loop that goes to its end, of which each adds the loop's own variable to one other."""
    parts = list(syntax.own_expressions(loop))
    stored = [one.id for one in parts if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)]
    piece = loop.target.id if isinstance(loop.target, ast.Name) else ""
    if any(isinstance(one, _LEAVES) for one in parts) or stored.count(piece) != 1:
        return
    for one in loop.body:
        total = _total(one, piece)
        begins = _begins(scope, loop, total) if total and stored.count(total) == 1 else None
        # `total = frames[0]; total += frame` changes what it goes through.
        if begins is not None and (isinstance(one, ast.Assign) or not isinstance(begins, ast.Subscript)):
            yield _Sum(one, total, begins, piece)


def _proof(scope: Scope, loop: ast.For, one: _Sum, pieces: list[torch.Tensor]) -> bool | None:
    """True if the sum is there, or was worked out of what is proven to be as it was; None if it may not have been."""
    if not _stays(scope, loop, one.statement, one.total) or not surely_ran(scope, one.statement, one.statement):
        return None
    is_there = _is_their_sum(scope, loop, one, pieces)
    if is_there is not None:
        return is_there or None
    grounds = Grounds(scope).add(Read(scope, loop.iter, loop.lineno))
    if not is_tensor(whole := scope.names.value(_whole(loop.iter))):
        grounds.open(whole)
    ran = is_proven_to_run(scope, one.statement, one.statement, grounds)
    if grounds.is_another or (not grounds.is_sure and may_have_changed(grounds, scope, one.statement)):
        return None
    return ran and grounds.is_sure


def _fact(scope: Scope, one: _Sum, share: float, *, is_proven: bool) -> Iterator[ExpressionFact]:
    """The fact; sure only if the text reads an amount: check sums and parities go round on purpose."""
    what, sides = one.operation(), one.sides()
    is_read = is_read_as_number(scope, what, one.statement, reads_of("add"))
    undone = is_undone(scope, what, one.statement, sides)
    if is_read or not undone:
        names = tuple(ast.unparse(side) for side in sides)
        sure = is_proven and is_read and not undone
        yield scope.fact("wrapped", what, one.statement, names=names, detail="uint8", share=share, sure=sure)


def _is_inner(scope: ast.AST, loop: ast.For) -> bool:
    loops = [one for one in syntax.own_expressions(scope) if isinstance(one, (ast.For, ast.While)) and one is not loop]
    return any(inner is loop for one in loops for inner in syntax.walk(one))


def _stays(scope: Scope, loop: ast.For, one: ast.stmt, total: str) -> bool:
    """True if the pieces are now what they were, and the loop does nothing else to the sum."""
    others = (node for node in syntax.walk(loop) if node is not one)
    touched = any(total in parts_of(written) for node in others for written in writes(node))
    return not touched and not is_written_later(scope, loop.iter, loop.lineno)


def _is_their_sum(scope: Scope, loop: ast.For, one: _Sum, pieces: list[torch.Tensor]) -> bool | None:
    """True if the sum is still there, False if it is another; None where it is gone, or was changed below the loop."""
    value, end = scope.reading.names.get(one.total), (loop.end_lineno or loop.lineno) + 1
    if scope.function or type(value) is not torch.Tensor or not _is_bytes(value):
        return None
    start = _start(scope, one.begins)
    later = max(stores_in(scope.node)[one.total]) >= end
    later = later or is_written_later(scope, ast.Name(one.total, ast.Load()), end)
    if start is None or later or shape_of(value) != shape_of(pieces[0]):
        return None
    return bool((torch.stack(pieces).sum(0) + start).remainder(_HIGHEST + 1).eq(value).all())


def _start(scope: Scope, begins: ast.expr) -> Any:
    """What a sum began with: a number or a tensor; None where that is not known."""
    if isinstance(begins, ast.Constant):
        return begins.value if type(begins.value) is int else None
    func = begins.func if isinstance(begins, ast.Call) else None
    if func is not None and dotted(func) in _ZEROS:
        return 0
    cloned = isinstance(func, ast.Attribute) and func.attr == "clone"
    value = scope.names.value(func.value if cloned and isinstance(func, ast.Attribute) else begins)
    return value if type(value) is torch.Tensor and _is_bytes(value) else None


def _total(one: ast.stmt, piece: str) -> str:
    """What `total += piece` or `total = total + piece` adds to."""
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and isinstance(one.target, ast.Name):
        return one.target.id if dotted(one.value) == piece else ""
    target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    value = one.value if isinstance(one, ast.Assign) else None
    if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    return target.id if {dotted(value.left), dotted(value.right)} == {target.id, piece} else ""


def _begins(scope: Scope, loop: ast.For, total: str) -> ast.expr | None:
    """What surely gave the variable its value before the loop, and is the only one that did."""
    lines = [line for line in stores_in(scope.node).get(total, ()) if line < loop.lineno]
    given = plain_stores(scope.node).get((total, lines[0])) if len(lines) == 1 else None
    return given.value if given is not None else None


def _is_of_bytes(scope: Scope, begins: ast.expr, source: ast.expr) -> bool:
    """True for a whole number, to which a tensor of bytes is added, and for what the text makes of bytes."""
    if isinstance(begins, ast.Constant):
        return type(begins.value) is int
    if isinstance(begins, ast.Subscript):
        return _is_piece(scope, begins, source)
    if not isinstance(begins, ast.Call):
        return False
    kinds = [ast.unparse(one.value) for one in begins.keywords if one.arg == "dtype"]
    name = dotted(begins.func)
    if kinds:
        return kinds == ["torch.uint8"] and name in _LIKE | _OF_SIZES
    if name in _LIKE and begins.args:
        return _is_piece(scope, begins.args[0], source)
    method = begins.func.attr if isinstance(begins.func, ast.Attribute) else ""
    return method == "clone" and _is_piece(scope, begins.func.value, source)  # type: ignore[attr-defined]


def _is_piece(scope: Scope, node: ast.expr, source: ast.expr) -> bool:
    """True for a tensor of bytes that is there, and for `frames[0]` and `next(iter(frames))` of what is added up."""
    value = scope.names.value(node)
    if type(value) is torch.Tensor:
        return value.dtype is torch.uint8
    whole = ast.unparse(_whole(source))
    if isinstance(node, ast.Subscript) and type(scope.names.value(node.slice)) is int:
        return ast.unparse(node.value) == whole
    return ast.unparse(node) == f"next(iter({whole}))"


def _whole(source: ast.expr) -> ast.expr:
    """`frames` of `frames[1:]`."""
    return source.value if isinstance(source, ast.Subscript) else source


def _pieces(scope: Scope, source: ast.expr) -> list[torch.Tensor]:
    """What a loop goes through: plain tensors of bytes of one size on the CPU; empty for anything else."""
    part = source.slice if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice) else None
    value: Any = scope.names.value(source.value if part is not None else source)  # type: ignore[attr-defined]
    bounds = [scope.names.value(one) if one else None for one in (part.lower, part.upper, part.step)] if part else []
    known = all(one is None or type(one) is int for one in bounds)
    if not is_one_of(value, (list, tuple, torch.Tensor)) or not known:
        return []
    if type(value) is torch.Tensor:
        value = list(value.unbind(0)) if _is_bytes(value) and value.dim() > 0 and len(value) <= _MOST else []
    pieces = list(value[slice(*bounds)] if bounds and bounds[2] != 0 else value)[: _MOST + 1]
    alike = all(type(one) is torch.Tensor and _is_bytes(one) for one in pieces)
    sizes = {shape_of(one) for one in pieces} if alike else set()
    return pieces if len(sizes) == 1 and len(pieces) <= _MOST else []


def _is_bytes(value: torch.Tensor) -> bool:
    return value.dtype is torch.uint8 and is_in_memory(value) and 0 < value.numel() <= _LARGEST


def _share(pieces: list[torch.Tensor]) -> float:
    """Part of the elements whose sum is more than a byte holds."""
    if not pieces or len(pieces) * pieces[0].numel() > _LARGEST:
        return 0.0
    total = torch.stack(pieces).sum(0)
    return float(as_torch.item((total > _HIGHEST).sum())) / max(int(total.numel()), 1)
