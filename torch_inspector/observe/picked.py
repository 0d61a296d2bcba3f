"""Results that do not fit of which the text takes only those that do: by a mask, or the shorter way round a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.circling import back_from, bare_of, opposite
from torch_inspector.observe.comparing import How, Joined, compared, holds, joined_masks
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.giving import Line, called, given, last_of, named_in
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.source import dotted

_SIZES = frozenset(["shape", "size", "ndim", "dim", "numel", "dtype", "device", "is_cuda", "nelement"])
_ROUNDS = 4
# Bounds of half the way round.
_HALVES = frozenset([127, 128])


class Result(NamedTuple):
    """A result with its operands, as the text writes them and as they were."""

    scope: Scope
    node: ast.AST
    statement: ast.stmt
    sides: list[ast.expr]
    values: list[Any]
    numbers: torch.Tensor
    """What came out, with 32 bits."""
    outside: torch.Tensor
    """True where that is not what it should be."""


class _Clean(NamedTuple):
    """Where a mask holds, and where not: True if all results are right there."""

    there: bool
    elsewhere: bool


def is_picked(result: Result) -> bool:
    """True if a statement takes of the result, or of what is made of it, what a comparison says is right."""
    return _Reading(result).picked() or _is_picked_by_caller(result)


def _is_picked_by_caller(result: Result) -> bool:
    """The same of what a function gives back at once, by the names that its caller has for the operands."""
    scope, call = result.scope, result.scope.call
    if not isinstance(result.statement, ast.Return) or bare_of(result.statement.value) is not result.node:
        return False
    texts = [ast.unparse(one) for one in result.sides]
    sides = [scope.arguments.get(text, one) for text, one in zip(texts, result.sides, strict=True)]
    if scope.caller is None or call is None:
        return False
    statement = syntax.statement_of(call, syntax.parents(scope.caller.node))
    if statement is None:
        return False
    return is_picked(result._replace(scope=scope.caller, node=call, statement=statement, sides=sides))


class _Reading:
    """What a text calls a result, what it makes of it, and the masks that it has."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.text = ast.unparse(result.node) if isinstance(result.node, ast.expr) else ""
        self.parents = syntax.parents(result.scope.node)
        statements = (one for one in syntax.walk(result.scope.node) if isinstance(one, ast.stmt))
        plain: list[ast.AST] = [one for one in statements if not hasattr(one, "body")]
        self.lines = [Line.of(one) for one in plain or [result.scope.node]]
        self.operands = frozenset(name for side in result.sides for name in named_in(side)) - {"self"}
        self.same: set[str] = set()
        self.made: set[str] = set()
        self.masks: dict[str, _Clean] = {}
        self.known: dict[tuple[int, int], _Clean | None] = {}
        self.given = {name: value for line in self.lines for name, value in given(line.node)}
        for _ in range(_ROUNDS):
            before = len(self.same) + len(self.made) + len(self.masks)
            for one in self._spoken():
                for name, value in given(one):
                    self._follow(name, value, whole=one is result.node)
            if before == len(self.same) + len(self.made) + len(self.masks):
                break

    def _spoken(self) -> Iterator[ast.AST]:
        """Statements that may tell of the result: by its names, or by a comparison of an operand."""
        for line in self.lines:
            names = self.same | self.made | self.masks.keys()
            told = line.names & {last_of(one) for one in names} or (line.compares and line.names & self.operands)
            if told or line.node is self.result.statement:
                yield line.node

    def picked(self) -> bool:
        """True if one of them takes what is right."""
        return any(self.picks(one) for one in self._spoken())

    def _follow(self, name: str, value: ast.expr, *, whole: bool) -> None:
        """Notes a name that is given a value made of the result, or a mask."""
        if whole or self._is_same(value):
            self.same.add(name)
        mask = self._mask(value)
        if mask is not None:
            self.masks[name] = mask
        elif whole or self._has_result(value):
            self.made.add(name)

    def _is_same(self, value: ast.expr) -> bool:
        value = bare_of(value)
        return self._is_result(value) or self._is_name_of_result(value)

    def _is_result(self, part: ast.AST) -> bool:
        """True for the operation itself, also where it is written once more."""
        return part is self.result.node or (type(part) is type(self.result.node) and ast.unparse(part) == self.text)

    def _has_result(self, value: ast.AST) -> bool:
        """True if an expression has the result in it, or what was made of it, outside of a mask."""
        if self._is_result(value) or called(value) in self.made:
            return True
        inner = syntax.children(value) if self._mask(value) is None else ()
        return any(self._has_result(one) for one in inner)

    def _mask(self, value: ast.AST) -> _Clean | None:
        """What an expression tells as a mask; None if it is none, or takes what is wrong on both sides."""
        bare = bare_of(value)
        if called(bare) in self.masks:
            return self.masks[called(bare)]
        joined = joined_masks(bare)
        if joined is not None:
            return self._joined(joined)
        key = (id(bare), len(self.same))
        if key not in self.known:
            self.known[key] = self._compared(bare)
        return self.known[key]

    def _joined(self, joined: Joined) -> _Clean | None:
        """Of masks of which all hold, or one, or none."""
        known = [one for side in joined.masks if (one := self._mask(side)) is not None]
        if not known or joined.how is How.SAME:
            return known[0] if known else None
        if joined.how is How.NOT:
            return _Clean(known[0].elsewhere, known[0].there)
        both = joined.how is How.ALL
        return _Clean(both and any(one.there for one in known), not both and any(one.elsewhere for one in known))

    def _compared(self, test: ast.expr) -> _Clean | None:
        parts = compared(test)
        if parts is None:
            return None
        sign, one, two = parts
        sides = [one, two]
        ours = [any(self._knows(part) for part in syntax.walk(side)) for side in sides]
        if not any(ours):
            return None
        halves = any(isinstance(side, ast.Constant) and side.value in _HALVES for side in sides)
        if halves and any(self._is_same(side) for side in sides):
            return _Clean(True, True)
        values = [self._value(side) for side in sides]
        if any(value is None for value in values):
            return _Clean(True, True) if any(self._is_of_operands(side) for side in sides) else None
        return self._clean(holds(sign, *values))

    def _clean(self, mask: Any) -> _Clean | None:
        """Where the results are right, by those that there were."""
        if type(mask) is bool:
            return None
        if type(mask) is not torch.Tensor:
            return _Clean(True, True)
        try:
            right = ~self.result.outside
            clean = [bool((one & right).any()) and not bool((one & ~right).any()) for one in (mask, ~mask)]
        except Exception:  # noqa: BLE001  (shapes that do not fit any more)
            return _Clean(True, True)
        return _Clean(*clean) if any(clean) else None

    def _is_of_operands(self, side: ast.expr) -> bool:
        """True if an expression is made of the numbers of an operand, and not of its sizes."""
        if isinstance(side, ast.Attribute) and side.attr in _SIZES:
            return False
        if isinstance(side, ast.Call) and dotted(side.func) == "len":
            return False
        return self._is_operand(side) or any(self._is_of_operands(one) for one in syntax.children(side))  # type: ignore[arg-type]

    def _knows(self, part: ast.AST) -> bool:
        return self._is_operand(part) or self._is_result(part) or self._is_name_of_result(part)

    def _is_name_of_result(self, part: ast.AST) -> bool:
        return called(part) in self.same

    def _is_operand(self, part: ast.AST) -> bool:
        return self._operand(part) is not None

    def _operand(self, part: ast.AST) -> Any:
        """The value of one of both operands; None for anything else, and for a number."""
        if not isinstance(part, ast.expr) or isinstance(part, ast.Constant):
            return None
        late = getattr(part, "lineno", 0) > self.result.statement.lineno and self._is_name_of_result(part)
        text = "" if late else ast.unparse(part)
        pairs = zip(self.result.sides, self.result.values, strict=True)
        return next((value for side, value in pairs if text and ast.unparse(side) == text), None)

    def _value(self, side: ast.expr) -> Any:
        """An expression of operands, the result and numbers, worked out with 32 bits; None for anything else."""
        side = bare_of(side)
        operand = self._operand(side)
        if operand is not None:
            return operand.to(torch.int32) if type(operand) is torch.Tensor else operand
        if self._is_same(side):
            return self.result.numbers
        if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub)):
            one, two = self._value(side.left), self._value(side.right)
            if one is None or two is None:
                return None
            return one + two if isinstance(side.op, ast.Add) else one - two
        value = self.result.scope.names.value(side)
        return value if is_one_of(value, (int, float)) else None

    def picks(self, statement: ast.AST) -> bool:
        """True if a statement takes of the result what a mask in it says is right, or the shorter way round."""
        if not self._has_result(statement):
            return False
        nodes = list(syntax.walk(statement))
        return any(self._goes_round(one) for one in nodes) or any(self._is_taken(*one) for one in self._masks_in(nodes))

    def _masks_in(self, nodes: list[ast.AST]) -> Iterator[tuple[ast.AST, _Clean]]:
        """The outermost expressions that are masks."""
        for one in nodes:
            mask = self._mask(one) if isinstance(one, ast.expr) and not _is_stored(one) else None
            if mask is not None and not self._is_inner(one):
                yield one, mask

    def _is_inner(self, node: ast.AST) -> bool:
        around = self.parents.get(id(node))
        around = self.parents.get(id(around)) if isinstance(around, ast.Attribute) else around
        return isinstance(around, ast.expr) and self._mask(around) is not None

    def _is_taken(self, node: ast.AST, clean: _Clean) -> bool:
        """True if what is right by a mask is what its place takes."""
        around = self.parents.get(id(node))
        if isinstance(around, ast.Subscript) and around.slice is node:
            taken = clean.elsewhere if _is_stored(around) else clean.there
            return taken and self._has_result(around.value)
        name = dotted(around.func).rpartition(".")[2] if isinstance(around, ast.Call) else ""
        name = name or getattr(getattr(around, "func", None), "attr", "")
        if name.startswith("masked_"):
            return clean.there if name == "masked_select" else clean.elsewhere
        if isinstance(around, ast.Call) and name == "where" and around.args[0] is node and len(around.args) > 1:
            return self._is_chosen(around, clean)
        return (clean.there or clean.elsewhere) and not isinstance(around, ast.Assign)

    def _is_chosen(self, where: ast.Call, clean: _Clean) -> bool:
        """The same of `where(mask, one, other)` and of `one.where(mask, other)`."""
        func = where.func.value if isinstance(where.func, ast.Attribute) else where.func
        one, other = where.args[1:] if len(where.args) > 2 else (func, where.args[1])  # noqa: PLR2004
        taken = (clean.there and self._has_result(one), clean.elsewhere and self._has_result(other))
        return any(taken)

    def _goes_round(self, call: ast.AST) -> bool:
        """True for `minimum(d, 256 - d)` and `minimum(d, -d)`."""
        name = dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or name not in ("minimum", "min", "fmin"):
            return False
        func = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        sides = call.args if len(call.args) == 2 else [func, *call.args]  # noqa: PLR2004
        if len(sides) != 2:  # noqa: PLR2004
            return False
        back = {back_from(one) for one in sides} - {""}
        turned = opposite(*(self.given.get(called(bare_of(one)), one) for one in sides))
        return self._has_result(call) and (turned or any(ast.unparse(bare_of(one)) in back for one in sides))


def _is_stored(node: ast.AST) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
