"""A module and those of its parameters that no optimizer holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torch_inspector.observe import layers


class Own(NamedTuple):
    """A module and those of its parameters that nobody holds."""

    path: str
    module: Any
    parameters: list[tuple[str, torch.Tensor]]

    def keys(self) -> frozenset[int]:
        """Their addresses."""
        return frozenset(id(p) for _, p in self.parameters)

    def parts(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The fewest paths that cover the parameters, and those of them that are parameters and no modules."""
        keys, covered, paths = self.keys(), set[int](), list[str]()
        around = {name[:end] for name, _ in self.parameters for end in (0, *_dots(name))}
        for name, module in layers.walk_modules(self.module):
            every = {id(p) for _, p in layers.walk_parameters(module)} if name in around else set()
            if every and every <= keys and not every & covered:
                covered |= every
                paths.append(f"{self.path}.{name}" if name else self.path)
        single = [f"{self.path}.{name}" for name, p in self.parameters if id(p) not in covered]
        return (*paths, *single), frozenset(single)


def _dots(name: str) -> list[int]:
    return [index for index, sign in enumerate(name) if sign == "."]
