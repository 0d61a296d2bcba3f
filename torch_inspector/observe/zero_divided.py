"""Infinities in float16 that come of a division by zero, which every type of numbers has: no end was passed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from time import thread_time
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, ExtremeFact, Place, syntax
from torch_inspector.facts.made_of import variable_of
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.divided_inside import divisors_inside
from torch_inspector.observe.expressions import Scope, names_at
from torch_inspector.observe.half_givers import Giver, divisor_of, givers_in, names_of_numbers
from torch_inspector.observe.half_names import Frame
from torch_inspector.observe.half_reader import Reader
from torch_inspector.observe.half_steps import REFUSED
from torch_inspector.observe.half_twins import Pair
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.reading import Reading
from torch_inspector.observe.seen import SeenNames

KIND = "zero-divided"

_ELEMENTS = 300_000
_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
# For all variables of a cell. One that is not judged by then is not told.
_BUDGET_S = 0.03


def zero_divided(reading: Reading, extremes: Iterable[ExtremeFact]) -> Iterator[ExpressionFact]:
    """Variables of which each infinite number is one in double precision, too, or may come of a division by zero."""
    infinite = [one.path for one in extremes if one.dtype == "float16" and (one.inf_count or one.negative_inf_count)]
    tree = reading.file.tree
    if not infinite or tree is None:
        return
    judge = _Judge(reading, tree, infinite)
    with private.unseen(), torch.no_grad():
        for path, giver in judge.in_order(infinite):
            if judge.is_divided(path):
                place = Place(reading.file.cell, giver.line + reading.file.offset)
                yield ExpressionFact(KIND, place, ast.unparse(giver.value), target=path)


class _Judge:
    """Tells divisions by zero of numbers that are too large, in the order of the text."""

    def __init__(self, reading: Reading, tree: ast.Module, infinite: list[str]) -> None:
        names = SeenNames(reading.names, reading=reading, file=reading.file)
        self._scope, self._givers = Scope(reading, tree, names, reading.file), givers_in(tree)
        self._infinite = {variable_of(path) for path in infinite}
        self._divided = set[str]()
        self._has_divisions = any(divisor_of(one) is not None for one in syntax.walk(tree))
        self._deadline = thread_time() + _BUDGET_S

    def in_order(self, paths: list[str]) -> list[tuple[str, Giver]]:
        """Those that the text gives a value, by the line that does it first."""
        found = [(path, self._givers[variable_of(path)][0]) for path in paths if variable_of(path) in self._givers]
        return sorted(found, key=lambda one: one[1].line)

    def is_divided(self, path: str) -> bool:
        """True if no end was passed, as far as it can be told."""
        if self._is_late():
            return self._has_divisions
        known = self._computed(path)
        found = self._may_be_divided(path) if known is None else known
        if found:
            self._divided.add(variable_of(path))
        return found

    def _is_late(self) -> bool:
        return thread_time() > self._deadline

    def _computed(self, path: str) -> bool | None:
        """The same of a value whose last statement can be computed again, or whose divisor can; else None."""
        giver = self._givers[variable_of(path)][-1]
        infinite = _infinite(self._value(path, giver)) if giver.target == path else None
        if infinite is None:
            return None
        known = self._in_double(giver, infinite) if giver.whole else None
        by = divisor_of(giver.value if giver.whole else giver.statement)
        return self._by_zero(by, giver, infinite) if known is None and by is not None else known

    def _value(self, path: str, giver: Giver) -> Any:
        if path == variable_of(path):
            return self._scope.reading.names.get(path)
        targets = syntax.targets_of(giver.statement) if isinstance(giver.statement, _ASSIGNS) else []
        return self._scope.names.value(targets[0]) if targets else None

    def _read(self, node: ast.expr, giver: Giver) -> tuple[Any, bool]:
        """What an expression is at a line, and whether zeros in it may be lost numbers; raises what torch does."""
        if isinstance(giver.statement, ast.stmt):
            self._scope.names = names_at(self._scope, giver.statement)
        reader = Reader(self._scope)
        return reader.value(node, Frame(self._scope, giver.line)), reader.is_open

    def _in_double(self, giver: Giver, infinite: torch.Tensor) -> bool | None:
        """Whether the value, computed again, is infinite in double precision wherever it is in float16."""
        try:
            found, is_open = self._read(giver.value, giver)
            if type(found) is not Pair or not bool((found.actual.isinf() == infinite).all()):
                return None
        except REFUSED:
            return None
        finite = bool(found.exact.expand(infinite.shape)[infinite].isfinite().any())
        return None if is_open and not finite else not finite

    def _by_zero(self, by: ast.expr, giver: Giver, infinite: torch.Tensor) -> bool | None:
        """True if what is divided by is zero wherever the quotient is infinite."""
        try:
            divisor, is_open = self._read(by, giver)
            zero = divisor.exact == 0 if type(divisor) is Pair and not is_open else None
            return True if zero is not None and bool(zero.expand(infinite.shape)[infinite].all()) else None
        except REFUSED:
            return None

    def _may_be_divided(self, path: str) -> bool:
        """True if something that goes into a variable is divided by what may be zero, or is known to have been."""
        waiting, seen = [variable_of(path)], set[str]()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            for giver in self._givers.get(name, ()):
                read = syntax.names_in(giver.value)
                if not self._divided.isdisjoint(read) or any(self._may_be_zero(by, giver) for by in giver.divisors()):
                    return True
                if self._may_be_zero_inside(giver):
                    return True
                waiting.extend(one for one in read - seen - self._infinite if self._may_hand_on(one, giver))
        return False

    def _may_be_zero_inside(self, giver: Giver) -> bool:
        """The same of the functions that a statement calls, which nobody could compute again."""
        inside = divisors_inside(giver.value, self._scope)
        return any(by is None or self._may_be_zero(by, giver) for by in inside)

    def _may_hand_on(self, name: str, giver: Giver) -> bool:
        """False for what is finite: nothing that is made of it is infinite because of it."""
        value = self._scope.reading.names.get(name)
        return name in giver.looped or type(value) is not torch.Tensor or as_torch.dtype(value) is not torch.float16

    def _may_be_zero(self, by: ast.expr, giver: Giver) -> bool:
        """True if a divisor has zeros, or if nobody can tell and it is made of tensors."""
        names = names_of_numbers(by)
        if self._is_late() or not giver.looped.isdisjoint(names):
            return any(map(self._may_be_tensor, names))
        try:
            found, is_open = self._read(by, giver)
        except REFUSED:
            return any(map(self._may_be_tensor, names))
        if type(found) is Pair:
            return bool((found.exact == 0).any()) and not is_open
        return kinds.is_one_of(found, (int, float)) and found == 0

    def _may_be_tensor(self, name: str) -> bool:
        value = self._scope.reading.names.get(name)
        return not kinds.is_one_of(value, (int, float))


def _infinite(value: Any) -> torch.Tensor | None:
    """Where a tensor in float16 is infinite; None if it is nowhere, or cannot be read."""
    if type(value) is not torch.Tensor or as_torch.dtype(value) is not torch.float16 or not is_in_memory(value):
        return None
    if not 0 < as_torch.numel(value) <= _ELEMENTS:
        return None
    found = as_torch.detach(value).isinf()
    return found if bool(found.any()) else None
