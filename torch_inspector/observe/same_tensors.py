"""Which call of `state_dict()` gave a dictionary, or the tensors that another dictionary holds by now."""

from __future__ import annotations

import ast
import weakref
from itertools import islice
from typing import Any, Generic, TypeVar

from torch_inspector.facts import Place, syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.source import dotted

# Dictionaries remembered; calls whose tensors are; tensors of one state that tell it from others.
_TAKEN, _CALLS, _FIRST = 256, 64, 2
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
        """The call that gave just this dictionary."""
        known = self._by_dict.get(id(state))
        return known[1] if known is not None and known[0]() is state else None

    def gave_tensors_of(self, state: Any) -> _Call | None:
        """The call that may have given them: ids may be those of others that are gone, so the text has to agree."""
        return self._by_tensors.get(_first_of(state))


def gives(files: list[CodeFile], place: Place, path: str) -> bool:
    """True if the statement at a line gives the variable its value that leads to a path."""
    own = (one for one in files if one.cell == place.cell and one.tree is not None and not one.timed)
    statements = (node for one in own for node in _spanning(one, place.line))
    root = path.partition("[")[0]
    return any(root == dotted(syntax.whole_of(target)) for node in statements for target in node.targets)


def _spanning(file: CodeFile, line: int | None) -> list[ast.Assign]:
    nodes = syntax.walk(file.tree) if file.tree is not None and line is not None else ()
    return [one for one in nodes if isinstance(one, ast.Assign) and syntax.spans(one, (line or 0) - file.offset)]


def _first_of(state: Any) -> tuple[int, ...]:
    return tuple(map(id, islice(dict.values(state), _FIRST)))
