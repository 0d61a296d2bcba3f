"""Variables of the user that lead to some parameters: modules, parameters themselves, objects that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.namespace import hidden

# Variables, and fields of one object, that are looked at.
_VARIABLES, _FIELDS = 2_000, 64


class Whole(NamedTuple):
    """A module by the path that the user can type."""

    module: int
    name: str


class Owned(NamedTuple):
    """Who has the parameters. Holds the user's modules: drop it at once."""

    modules: list[tuple[Whole, Any]]
    tensors: dict[str, tuple[str, int]]
    """Parameters outside of modules by what the code calls them, `self.codebook`: their path and address."""


def owners(names: Mapping[str, Any], keys: frozenset[int], numbers: Keys) -> Owned:
    """The modules and parameters among the user's variables, and in the fields of plain objects there."""
    found = Owned([], {})
    told = set[int]()
    for name, path, value in _looked_at(names):
        if id(value) in told:
            continue
        told.add(id(value))
        if kinds.is_a(value, torch.nn.Module):
            if any(id(p) in keys for _, p in layers.walk_parameters(value)):
                found.modules.append((Whole(numbers.of(value), path), value))
        elif id(value) in keys and kinds.is_a(value, torch.Tensor) and as_torch.requires_grad(value):
            found.tensors[name] = (path, id(value))
    return found


def _looked_at(names: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """What the code calls it, its path, the value; variables before fields."""
    own = [(name, value) for name, value in list(names.items())[:_VARIABLES] if not hidden(name)]
    yield from ((name, name, value) for name, value in own)
    for name, value in own:
        if kinds.module_of(type(value)) == "__main__" and not kinds.is_a(value, torch.nn.Module):
            fields = list(kinds.fields_of(value).items())[:_FIELDS]
            yield from ((f"self.{field}", f"{name}.{field}", part) for field, part in fields)
