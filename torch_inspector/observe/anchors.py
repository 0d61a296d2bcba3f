"""Weights that an object, a dictionary or a global name keeps without a copy, and that are compared with themselves.

As the variables of `kept_weights.py`, for what is filled and read in functions and by fields: the old weights of a
penalty. Live values say that what is kept there shows the very weights that were stepped; the text says where it was
filled, and that a loop which steps, or a line after the steps, subtracts it from what it was taken from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile
from time import thread_time
from typing import Any

from torch import nn

from torch_inspector.facts import ExpressionFact, Place, StepFact
from torch_inspector.observe import private
from torch_inspector.observe.anchored import Fill, Use, fills_in, is_plain, uses_in
from torch_inspector.observe.kept_places import holders_of, own_name, path_at, value_at
from torch_inspector.observe.kept_weights import is_known
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.shapes import is_tensor
from torch_inspector.observe.steps_around import is_run_in_turns, stepped_after

# Processor time for one cell, cells whose text is read, and tensors of one container that count.
_TIME_S, _CELLS, _TENSORS = 0.010, 64, 64
_NOWHERE = Place(None, None, "")
_WORDS = re.compile(r"parameters\(")
# What gives a parameter other memory; what leaves a part of the numbers out.
_ELSEWHERE = re.compile(r"\.data\s*=(?!=)|vector_to_parameters|assign\s*=\s*True|\.set_\(|swap_tensors")
_TO_SINGLE = re.compile(r"\.float\(\)|float32")


class Anchors:
    """Finds them; remembers which parameters the cells have stepped, and what was told."""

    def __init__(self) -> None:
        self._stepped: list[tuple[CodeFile, list[StepFact]]] = []
        self._told: set[Place] = set()

    def found(
        self, names: Mapping[str, Any], files: list[CodeFile], steps: list[StepFact], told: Iterable[Place] = ()
    ) -> Iterator[ExpressionFact]:
        """One fact for each statement that fills such a place.

        Args:
            names: The user's variables.
            files: Code of the cell that is done, then of the others, latest first.
            steps: Steps of the optimizers in the cell.
            told: Places that another one has told.
        """
        self._told.update(told)
        if steps and files:
            self._stepped = [*self._stepped, (files[0], steps)][-_CELLS:]
        deadline, read = thread_time() + _TIME_S, [one for one in files[:_CELLS] if self._stepped]
        own = [one for one in read if _WORDS.search(one.code)]
        fills = [fill for one in takewhile(lambda _: thread_time() < deadline, own) for fill in fills_in(one)]
        if not fills or any(_ELSEWHERE.search(one.code) for one in read):
            return
        own = [one for one in own if not is_known(one)]
        for fill in takewhile(lambda _: thread_time() < deadline, (one for one in fills if one.file in own)):
            place = Place(fill.file.cell, fill.node.lineno + fill.file.offset, fill.function)
            uses = [use for one in own for use in uses_in(one) if use.is_of(fill)] if place not in self._told else []
            timely = takewhile(lambda _: thread_time() < deadline, uses)
            judged = (self._judged(fill, use, names, read, steps) for use in timely)
            for fact in islice(filter(None, judged), 1):
                self._told.add(place)
                yield fact._replace(place=place)

    def _judged(
        self, fill: Fill, use: Use, names: Mapping[str, Any], files: list[CodeFile], steps: list[StepFact]
    ) -> ExpressionFact | None:
        keys = self._keys(fill, use, files, steps)
        if not keys or _TO_SINGLE.search(ast.unparse(use.node)) or not is_plain(fill, use, files):
            return None
        for name, holder in holders_of(use, names):
            kept, model = value_at(use.kept, holder, names), value_at(use.model, holder, names)
            weights = walk_parameters(model) if is_a(model, nn.Module) else ()
            memory = frozenset(_address(one) for _, one in weights if id(one) in keys)
            if _shows(kept, memory):
                own = own_name(use)
                called = _name_of(model, names) or path_at(use.model, name, own)
                told = (path_at(use.kept, name, own), called, ast.unparse(use.node))
                return ExpressionFact("kept-weights", _NOWHERE, ast.unparse(fill.node), names=told, detail=fill.fix)
        return None

    def _keys(self, fill: Fill, use: Use, files: list[CodeFile], steps: list[StepFact]) -> frozenset[int]:
        """Parameters that were stepped between what filled the place and what reads it."""
        if is_run_in_turns(use.function, use.node, use.file, steps, files):
            return frozenset[int]().union(*(one.parameter_keys for one in steps))
        # Of plain variables `KeptWeights` tells.
        if use.function or fill.function or use.file.cell != files[0].cell or isinstance(use.kept, ast.Name):
            return frozenset()
        lines = (fill.file, fill.node.lineno), (use.file, use.node.lineno)
        return stepped_after(*lines, self._stepped, files)


def _shows(kept: Any, memory: frozenset[int]) -> bool:
    """True for tensors that are all of them weights in this memory."""
    parts = list(dict.values(kept)) if is_a(kept, dict) else list(kept) if is_one_of(kept, (list, tuple)) else []
    known = [is_tensor(one) and _address(one) in memory for one in parts[:_TENSORS]]
    return bool(known) and all(known) and 0 not in memory


def _name_of(model: Any, names: Mapping[str, Any]) -> str:
    return next((name for name, value in names.items() if value is model and not name.startswith("_")), "")


def _address(value: Any) -> int:
    found = private.storage_of(value)
    return found[0] if found is not None else 0
