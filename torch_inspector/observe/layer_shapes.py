"""What shape a layer of torch's own makes of the shape that it is given."""

from __future__ import annotations

from typing import Any

from torch import nn

from torch_inspector.facts import Shape
from torch_inspector.observe import kinds

_SAME = frozenset(
    [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm1d, nn.InstanceNorm2d,
     nn.InstanceNorm3d, nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Identity, nn.Dropout,
     nn.Dropout1d, nn.Dropout2d, nn.Dropout3d]
)  # fmt: skip
_CONVOLUTIONS: dict[type, int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}


def layer_shape(layer: Any, shape: Shape | None) -> Shape | None:
    """The shape; None if it is not known, or the layer is none of torch's own."""
    kind = type(layer)
    if not shape:
        return None
    if kind is nn.Linear:
        return (*shape[:-1], layer.out_features)
    if kinds.is_among(kind, _SAME):
        return shape
    axes = kinds.entry_of(kind, _CONVOLUTIONS)
    return _convolved(layer, shape, axes) if axes is not None else None


def _convolved(layer: Any, shape: Shape, axes: int) -> Shape | None:
    paddings = layer.padding
    if len(shape) != axes + 2 or -1 in shape[-axes:] or type(paddings) is not tuple:
        return None
    sizes = zip(shape[-axes:], layer.kernel_size, layer.stride, paddings, layer.dilation, strict=True)
    places = tuple((n + 2 * pad - far * (kernel - 1) - 1) // stride + 1 for n, kernel, stride, pad, far in sizes)
    return (*shape[:-axes][:-1], layer.out_channels, *places)
