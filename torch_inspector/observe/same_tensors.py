"""Which call of `state_dict()` gave a dictionary, or the tensors that another dictionary holds by now."""

from __future__ import annotations

import ast
import re
import weakref
from itertools import islice
from typing import Any, Generic, TypeVar

from torch_inspector.facts import Place, syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.place import CodeFile

# Dictionaries remembered; calls whose tensors are; tensors of one state that tell it from others, and enough of them.
_TAKEN, _CALLS, _FIRST, _ENOUGH = 256, 64, 16, 3
_INDEX = re.compile(r"\[.*")
_Call = TypeVar("_Call")


class SameTensors(Generic[_Call]):
    """Remembers the calls by what they gave: the dictionary, weakly, and the ids of its first tensors."""

    def __init__(self) -> None:
        self._by_dict: dict[int, tuple[weakref.ref[Any], _Call]] = {}
        self._by_tensors: dict[tuple[int, ...], _Call] = {}

    def note(self, state: Any, call: _Call) -> None:
        """The latest call counts: what an earlier one gave under these ids is gone."""
        if not kinds.is_a(state, dict):
            return
        first = _first_of(state)
        self._by_tensors.pop(first, None)
        self._by_tensors[first] = call
        while len(self._by_tensors) > _CALLS:
            self._by_tensors.pop(next(iter(self._by_tensors)))
        if len(self._by_dict) < _TAKEN:
            address = id(state)
            self._by_dict[address] = (weakref.ref(state, lambda _: self._by_dict.pop(address, None)), call)

    def gave(self, state: Any) -> _Call | None:
        """The call that gave just this dictionary, or all of its first tensors."""
        known = self._by_dict.get(id(state))
        if known is not None and known[0]() is state:
            return known[1]
        # No others come by chance to lie where so many do, in the same order.
        return self.may_have_given(state) if len(_first_of(state)) >= _ENOUGH else None

    def may_have_given(self, state: Any) -> _Call | None:
        """The same of few tensors: it may be a call whose own are gone, and the text has to agree."""
        return self._by_tensors.get(_first_of(state))


def gives(files: list[CodeFile], place: Place, path: str) -> bool:
    """True if the statement at a line names what leads to a path, or gives back its value."""
    own = (one for one in files if one.cell == place.cell and not one.timed)
    found = next((node for one in own if (node := _spanning(one, place.line)) is not None), None)
    names = {syntax.name_of(one) for one in syntax.walk(found)} if found is not None else set()
    return isinstance(found, ast.Return) or _INDEX.sub("", path).rpartition(".")[2] in names


def _spanning(file: CodeFile, line: int | None) -> ast.stmt | None:
    """The shortest statement around a line: all of a loop for its head."""
    nodes = syntax.walk(file.tree) if file.tree is not None and line is not None else ()
    own = [one for one in nodes if isinstance(one, ast.stmt) and syntax.spans(one, (line or 0) - file.offset)]
    return min(own, key=lambda one: ((one.end_lineno or one.lineno) - one.lineno, -one.col_offset), default=None)


def _first_of(state: Any) -> tuple[int, ...]:
    return tuple(map(id, islice(dict.values(state), _FIRST)))
