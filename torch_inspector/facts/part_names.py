"""What the user can type to get a parameter: `center.weight`, `net[0].weight`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


def typed(path: str) -> str:
    """`net[0].weight` for the path `net.0.weight`."""
    return _NUMBER.sub(r"[\1]", path)


def parameter_path(run: Run, key: int) -> str:
    """A parameter by the module that has it, else by the variable that is one; an index into a list comes last."""
    for module in sorted(run.after.modules, key=lambda one: "[" in one.path):
        name = dict(module.parameter_names).get(key)
        if name is not None and module.path:
            return typed(f"{module.path}.{name}")
    tensors = [tensor.path for tensor in run.after.tensors if tensor.key == key]
    return min(tensors, key=lambda path: "[" in path, default="")
