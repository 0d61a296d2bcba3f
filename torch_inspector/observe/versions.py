"""How often tensors were changed in place, as far as torch counts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from torch_inspector.facts import TensorFact
from torch_inspector.observe import as_torch

_VERSION: Any = torch.Tensor._version.__get__  # type: ignore[attr-defined]
_UNCOUNTED = 0
# Types of numbers whose arithmetic is judged by the numbers of now.
_SMALL = frozenset(["uint8", "int8", "int16"])


def version_of(tensor: Any) -> int:
    """How often a tensor was changed in place; always 0 for one made in inference mode, of which torch counts none."""
    try:
        return int(_VERSION(tensor))
    except RuntimeError:
        return _UNCOUNTED


def counted_changes(facts: Iterable[TensorFact], names: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Key and number of changes of variables that are tensors of small whole numbers, by name."""
    small = ((one.path, one.key) for one in facts if one.dtype in _SMALL)
    return {path: (key, version_of(names[path])) for path, key in small if id(names.get(path)) == key}


def stays_counted(tensor: torch.Tensor, before: int) -> bool:
    """True if nothing wrote into a tensor after it had been changed so often in place: all who could are counted.

    Writers past torch need its memory, as NumPy does; torch keeps such a storage, and one that came from elsewhere,
    from being resized.
    """
    try:
        return bool(_VERSION(tensor) == before and as_torch.untyped_storage(tensor).resizable())
    except (RuntimeError, AttributeError):  # made in inference mode; an old torch
        return False
