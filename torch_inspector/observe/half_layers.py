"""Layers whose arithmetic is computed again: what they give in float16, and in double precision."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from torch_inspector.observe.half_twins import LINEAR, METHODS, OPERATORS, Cause, Pair, UnknownError, applied, paired

LAYERS = (nn.Linear, nn.Embedding, nn.KLDivLoss)


def layer(one: Any, args: list[Any], at: Callable[..., Cause]) -> Any:
    """What a layer gives; raises `UnknownError` where that is not plain."""
    if not all(type(given) is Pair for given in args):
        raise UnknownError
    if type(one) is nn.KLDivLoss:
        if one.reduction == "mean":
            raise UnknownError  # torch warns of it
        told = partial(_divergence, reduction=one.reduction, log_target=bool(one.log_target))
        return applied(told, args, {}, at)
    if type(one) is nn.Linear:
        bias = None if one.bias is None else paired(one.bias)
        return applied(LINEAR, [*args, paired(one.weight), bias], {}, at)
    if one.max_norm is not None or len(args) != 1:
        raise UnknownError
    weight = paired(one.weight)
    return Pair(weight.actual[args[0].actual], weight.exact[args[0].actual])


def normalized(given: Pair, node: ast.Call, named: Mapping[str, Any], at: Callable[..., Cause]) -> Any:
    """What `F.normalize` gives, with the length below that makes it."""
    axis, eps = named.get("dim", 1), named.get("eps", 1e-12)
    if set(named) - {"dim", "eps"} or len(node.args) > 1:
        raise UnknownError
    length = applied(METHODS["norm"], [given, 2, axis, True], {}, at)
    return applied(OPERATORS[ast.Div][1], [given, applied(METHODS["clamp_min"], [length, eps], {}, at)], {}, at)


def _divergence(given: Any, target: Any, *, reduction: str, log_target: bool) -> Any:
    """What `kl_div` gives, past what the user may have put in the place of torch's function."""
    parts = torch.ops.aten.kl_div(given, target, 0, log_target=log_target)
    if reduction == "none":
        return parts
    return parts.sum() / (given.shape[0] if reduction == "batchmean" else 1)
