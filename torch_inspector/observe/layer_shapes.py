"""What a layer of torch's own makes of the shape that it is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torch import nn

from torch_inspector.facts import Shape
from torch_inspector.observe import kinds
from torch_inspector.observe.shapes import UNKNOWN, Sized, shape_of

if TYPE_CHECKING:
    from torch_inspector.observe.operands import Names

_SAME = frozenset(
    [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm1d, nn.InstanceNorm2d,
     nn.InstanceNorm3d, nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Identity, nn.Dropout,
     nn.Dropout1d, nn.Dropout2d, nn.Dropout3d]
)  # fmt: skip
_CONVOLUTIONS: dict[type, int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
_RECURRENT = frozenset([nn.RNN, nn.LSTM, nn.GRU])


def by_layer(names: Names, call: ast.Call) -> Any:
    """What a layer makes of the tensor that a call hands it, or of a tensor and a state; None if no layer is called."""
    named = isinstance(call.func, (ast.Name, ast.Attribute)) and call.args
    layer = names.value(call.func) if named else UNKNOWN
    recurs = kinds.is_among(type(layer), _RECURRENT)
    plain = type(call.func) is ast.Attribute and len(call.args) == 1
    if not recurs and not (plain and kinds.is_a(layer, nn.Module)):
        return None
    shape = shape_of(names.value(call.args[0]))
    if recurs:
        return _steps(layer, shape)
    made = layer_shape(layer, shape)
    return Sized(made) if made else UNKNOWN


def _steps(layer: Any, shape: Shape | None) -> Any:
    """The steps, which lie as the input does, with the batch in front or not; and a state that is not told."""
    if shape is None or len(shape) not in (2, 3) or shape[-1] not in (-1, layer.input_size):
        return UNKNOWN
    width = (layer.proj_size or layer.hidden_size) * (2 if layer.bidirectional else 1)
    return Sized((*shape[:-1], width)), UNKNOWN


def layer_shape(layer: Any, shape: Shape | None) -> Shape | None:
    """The shape; None if it is not known, or the layer is none of torch's own."""
    kind = type(layer)
    if not shape:
        return None
    if kind is nn.Linear:
        return (*shape[:-1], layer.out_features)
    if kind is nn.Embedding:
        return (*shape, layer.embedding_dim)
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
