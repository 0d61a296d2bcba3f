"""The groups of an optimizer and the parameters in them."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import kinds


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """The groups of an optimizer, without running properties of optimizer wrappers; none for None."""
    groups = kinds.fields_of(optimizer).get("param_groups")
    return [group for group in groups if type(group) is dict] if type(groups) is list else []


def parameters_of(optimizer: Any) -> list[list[torch.Tensor]]:
    """Parameters per group."""
    return [group["params"] for group in groups_of(optimizer) if type(group.get("params")) is list]


def held_by(optimizer: Any) -> frozenset[int]:
    """Addresses of the parameters of an optimizer."""
    return frozenset(id(p) for group in parameters_of(optimizer) for p in group)
