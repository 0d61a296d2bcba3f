"""Statements that take the tensors of a container out of their graph, by what the container holds."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

from torch_inspector.observe import kinds

_DICTS = (dict, OrderedDict, defaultdict)
_WRITTEN: dict[Any, str] = {list: "[{}]", tuple: "tuple({})"}
# Entries that are asked what they are, and that a fix names one by one.
_ASKED, _NAMED = 64, 3


def statement_for(path: str, value: Any) -> str:
    """The statement that detaches all of a dictionary, list, tuple or deque; empty where its parts are too unlike.

    What is not bound to an attribute is changed in place: it may be known by another name outside.
    """
    kind = type(value)
    if kinds.is_among(kind, _DICTS):
        return _of_dictionary(path, value)
    parts = list(value) if len(value) <= _ASKED else []
    made = _detached("h", parts)
    if not made:
        return _entries(path, list(enumerate(parts))) if kind is list else ""
    if kind is deque:
        return f"for i, h in enumerate({path}): {path}[i] = {made}"
    target = f"{path}[:]" if kind is list and "." not in path else path
    written = kinds.entry_of(kind, _WRITTEN)
    return f"{target} = {written.format(f'{made} for h in {path}')}" if written is not None else ""


def _of_dictionary(path: str, value: Any) -> str:
    pairs = list(dict.items(value)) if len(value) <= _ASKED else []
    parts = [part for _, part in pairs if part is not None]
    made = _detached("h", parts)
    if not made:
        return _entries(path, pairs)
    held = " if h is not None" if len(parts) < len(pairs) else ""
    return f"{path}.update({{k: {made} for k, h in {path}.items(){held}}})"


def _entries(path: str, pairs: list[tuple[Any, Any]]) -> str:
    """Each entry on its own, of a container that has others beside its tensors."""
    tensors = [(key, part) for key, part in pairs if kinds.is_one_of(key, (str, int)) and _detached("h", [part])]
    names = [(f"{path}[{key!r}]", part) for key, part in tensors]
    made = [f"{name} = {_detached(name, [part])}" for name, part in names]
    return "; ".join(made) if 0 < len(made) <= _NAMED else ""


def _detached(name: str, parts: list[Any]) -> str:
    """The expression for one entry, where all of them are tensors, or pairs and lists of tensors."""
    if parts and all(kinds.is_a(part, torch.Tensor) for part in parts):
        return f"{name}.detach()"
    kind = type(parts[0]) if parts else None
    written = kinds.entry_of(kind, _WRITTEN)
    if written is not None and all(type(part) is kind and _detached("t", list(part)) for part in parts):
        return written.format(f"{_detached('t', list(parts[0]))} for t in {name}")
    return ""
