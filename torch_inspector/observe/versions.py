"""How often tensors were changed in place, as far as torch counts it."""

from __future__ import annotations

from typing import Any

import torch

_VERSION: Any = torch.Tensor._version.__get__  # type: ignore[attr-defined]
_UNCOUNTED = 0


def version_of(tensor: Any) -> int:
    """How often a tensor was changed in place; always 0 for one made in inference mode, of which torch counts none."""
    try:
        return int(_VERSION(tensor))
    except RuntimeError:
        return _UNCOUNTED
