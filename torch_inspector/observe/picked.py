"""Results that do not fit of which the text takes only those that do: by a mask, or the shorter way round a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.comparing import compared, holds
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted

# What leaves numbers as they are, and masks as masks.
_CASTS = frozenset(
    ["float", "double", "half", "int", "long", "short", "bool", "byte", "to", "type", "clone", "contiguous", "copy",
     "astype", "unsqueeze", "logical_not"]
)  # fmt: skip
_SIZES = frozenset(["shape", "size", "ndim", "dim", "numel", "dtype", "device", "is_cuda", "nelement"])
_JOINS = (ast.BitAnd, ast.BitOr)
_ROUNDS = 4
# Bounds of half the way round, and what is there to go the other way.
_HALVES, _TURNS = frozenset([127, 128]), frozenset([0, 256])


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
    reading = _Reading(result)
    return any(reading.picks(one) for one in reading.plain) or _is_picked_by_caller(result)


def _is_picked_by_caller(result: Result) -> bool:
    """The same of what a function gives back at once, by the names that its caller has for the operands."""
    scope, call = result.scope, result.scope.call
    if not isinstance(result.statement, ast.Return) or _bare(result.statement.value) is not result.node:
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
        self.parents = syntax.parents(result.scope.node)
        statements = (one for one in syntax.walk(result.scope.node) if isinstance(one, ast.stmt))
        self.plain = [one for one in statements if not hasattr(one, "body")]
        self.same: set[str] = set()
        self.made: set[str] = set()
        self.masks: dict[str, _Clean] = {}
        self.known: dict[tuple[int, int], _Clean | None] = {}
        for _ in range(_ROUNDS):
            for one in self.plain:
                self._follow(one)

    def _follow(self, statement: ast.stmt) -> None:
        """Notes the names that a statement gives a value made of the result, or a mask."""
        if isinstance(statement, ast.AugAssign):
            targets, value = [dotted(statement.target)], statement.value
        elif isinstance(statement, ast.Assign):
            targets, value = [dotted(one) for one in statement.targets], statement.value
        else:
            return
        names = {one for one in targets if one}
        if statement is self.result.node or self._is_same(value):
            self.same |= names
        mask = self._mask(value)
        if mask is not None:
            self.masks.update(dict.fromkeys(names, mask))
        elif statement is self.result.node or self._has_result(value):
            self.made |= names

    def _is_same(self, value: ast.expr) -> bool:
        value = _bare(value)
        return value is self.result.node or dotted(value) in self.same

    def _has_result(self, value: ast.AST) -> bool:
        """True if an expression has the result in it, or what was made of it, outside of a mask."""
        if value is self.result.node or (isinstance(value, (ast.Name, ast.Attribute)) and dotted(value) in self.made):
            return True
        inner = syntax.children(value) if not isinstance(value, ast.expr) or self._mask(value) is None else ()
        return any(self._has_result(one) for one in inner)

    def _mask(self, value: ast.expr) -> _Clean | None:
        """What an expression tells as a mask; None if it is none, or takes what is wrong on both sides."""
        bare = _bare(value)
        if isinstance(bare, ast.UnaryOp) and isinstance(bare.op, (ast.Invert, ast.Not)):
            inner = self._mask(bare.operand)
            return inner and _Clean(inner.elsewhere, inner.there)
        if isinstance(bare, ast.BinOp) and isinstance(bare.op, _JOINS):
            return self._joined(bare)
        if isinstance(bare, (ast.Name, ast.Attribute)) and dotted(bare) in self.masks:
            return self.masks[dotted(bare)]
        key = (id(bare), len(self.same))
        if key not in self.known:
            self.known[key] = self._compared(bare)
        clean = self.known[key]
        turned = isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "logical_not"
        return clean if clean is None or not turned else _Clean(clean.elsewhere, clean.there)

    def _joined(self, both: ast.BinOp) -> _Clean | None:
        """Of two masks: where both hold, or one of them."""
        known = [one for side in (both.left, both.right) if (one := self._mask(side)) is not None]
        if not known:
            return None
        if isinstance(both.op, ast.BitAnd):
            return _Clean(any(one.there for one in known), False)
        return _Clean(False, any(one.elsewhere for one in known))

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
        return self._is_operand(part) or part is self.result.node or self._is_name_of_result(part)

    def _is_name_of_result(self, part: ast.AST) -> bool:
        return isinstance(part, (ast.Name, ast.Attribute)) and dotted(part) in self.same

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
        side = _bare(side)
        operand = self._operand(side)
        if operand is not None:
            return operand.to(torch.int32) if type(operand) is torch.Tensor else operand
        if side is self.result.node or self._is_name_of_result(side):
            return self.result.numbers
        if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub)):
            one, two = self._value(side.left), self._value(side.right)
            if one is None or two is None:
                return None
            return one + two if isinstance(side.op, ast.Add) else one - two
        value = self.result.scope.names.value(side)
        return value if type(value) in (int, float) else None

    def picks(self, statement: ast.stmt) -> bool:
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
        back = {_back(one) for one in sides} - {""}
        return self._has_result(call) and any(ast.unparse(_bare(one)) in back for one in sides)


def _bare(value: Any) -> Any:
    """`c` of `c.float().to(device)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CASTS:
        value = value.func.value
    return value


def _back(value: ast.expr) -> str:
    """`d` of `256 - d.int()` and of `-d`."""
    bare = _bare(value)
    if isinstance(bare, ast.UnaryOp) and isinstance(bare.op, ast.USub):
        return ast.unparse(_bare(bare.operand))
    turn = bare.left if isinstance(bare, ast.BinOp) and isinstance(bare.op, ast.Sub) else None
    return ast.unparse(_bare(bare.right)) if isinstance(turn, ast.Constant) and turn.value in _TURNS else ""


def _is_stored(node: ast.AST) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
