"""Functions and modules of the user's cells, as texts whose arithmetic can be computed again."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import takewhile
from math import prod
from types import FunctionType
from typing import Any

import torch
from torch import nn

from torch_inspector.observe import kinds
from torch_inspector.observe.half_twins import UnknownError
from torch_inspector.observe.kinds import fields_of

_ELEMENTS = 300_000
MAKERS = frozenset(map(id, (
    torch.full, torch.tensor, torch.ones, torch.zeros, torch.full_like, torch.ones_like, torch.zeros_like, torch.stack,
    torch.cat,
)))  # fmt: skip
"""Functions of torch that make new tensors, by their number."""


def is_modest(args: list[Any]) -> bool:
    """True if the sizes that a new tensor is told are small."""
    sizes = [
        one for arg in args for one in (arg if kinds.is_one_of(arg, (tuple, list)) else (arg,)) if type(one) is int
    ]
    return prod(max(one, 1) for one in sizes) <= _ELEMENTS


def counts_modestly(args: list[Any]) -> bool:
    """True if a row of numbers is told whole ones, and none of them is large."""
    return all(type(one) is int and abs(one) <= _ELEMENTS for one in args)


def forward_of(callee: Any) -> Any:
    """The `forward` of a module, or of a class of modules, that a call leads to, with no hook on the way."""
    kind = callee if type(callee) is type else type(callee)
    bases = kinds.mro_of(kind)
    own = [kinds.class_fields(one) for one in takewhile(lambda one: one is not nn.Module, bases)]
    if len(own) == len(bases):
        raise UnknownError
    fields = fields_of(callee) if kind is not callee else {}
    if any("__call__" in one for one in own) or any(fields.get(f"_forward{one}_hooks") for one in ("", "_pre")):
        raise UnknownError
    return next((one["forward"] for one in own if "forward" in one), None)


def bound(
    body: ast.FunctionDef, function: FunctionType, args: list[Any], named: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """What a call gives each parameter; raises `UnknownError` for stars."""
    names = [one.arg for one in body.args.args if one.arg not in own]
    if body.args.vararg or body.args.kwarg or body.args.kwonlyargs or len(args) > len(names):
        raise UnknownError
    defaults = function.__defaults__ or ()
    found = dict(zip(reversed(names), reversed(defaults), strict=False))
    found.update(zip(names, args, strict=False))
    found.update(named)
    if set(found) != set(names):
        raise UnknownError
    return found
