"""Shapes of results in a graph where nodes do not tell them, as before torch 2.5: from what they keep for backward.

Only what is surely the shape of a result is noted; of other nodes nothing is known, and nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_inspector.observe import as_torch, private
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

_Shape = tuple[int, ...]
# Operations of one tensor whose result has its shape.
_SAME = frozenset(
    f"{name}Backward{n}"
    for name in (
        "Abs", "Alias", "Clamp", "ClampMax", "ClampMin", "Clone", "Exp", "Gelu", "LeakyRelu", "Log", "Log10", "Log1P",
        "Log2", "LogSigmoid", "LogSoftmax", "NativeDropout", "Neg", "Reciprocal", "Relu", "Rsqrt", "Sigmoid", "Silu",
        "Softmax", "Softplus", "Sqrt", "Tanh", "ToCopy",
    )
    for n in range(2)
) | {"PowBackward0"}  # fmt: skip
# Operations that give one number.
_NUMBERS = frozenset(["MeanBackward0", "SumBackward0"])
# Operations that keep both of what they were given, of one shape, and give one number unless they are told not to.
_LOSSES = frozenset(["MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0"])
_PRODUCTS = {"AddmmBackward0": ("mat1", "mat2"), "MmBackward0": ("self", "mat2")}


def note_shapes(nodes: Iterable[Node]) -> None:
    """Notes with each node the shape of its first result, as far as it is sure, where torch does not tell it."""
    some = list(nodes)
    if any(map(_tells, some[:1])):
        return
    some.sort(key=private.node_number, reverse=True)
    for node in some:
        _note(node, _own(node))
        if not private.is_leaf_node(node):
            for place, (parent, number) in enumerate(node.next_functions[:2]):
                _note(parent if number == 0 else None, _given(node, place))
    for node in reversed(some):
        if type(node).__name__ in _SAME and node.next_functions:
            _note(node, private.output_shape(*node.next_functions[0]) if node.next_functions[0][0] else None)


def _tells(node: Node) -> bool:
    return hasattr(type(node), "_input_metadata")


def _note(node: Node | None, shape: _Shape | None) -> None:
    if node is not None and shape is not None and private.output_shape(node) is None:
        private.note_shape(node, shape)


def _own(node: Node) -> _Shape | None:
    """What a node tells of its own result."""
    name = type(node).__name__
    if private.is_leaf_node(node):
        return tuple(as_torch.shape(node.variable))
    if name in _NUMBERS or (name in _LOSSES and getattr(node, "_saved_reduction", None)):
        return ()
    if name in _PRODUCTS:
        one, two = (_sizes(node, part) for part in _PRODUCTS[name])
        return (one[0], two[1]) if one and two else None
    return _shape_of(saved_value(node, "result"))


def _given(node: Node, place: int) -> _Shape | None:
    """What a node tells of what it was given."""
    name = type(node).__name__
    if name in _LOSSES:
        return _shape_of(saved_value(node, "target" if place else "self"))
    if place:
        return None
    if name in _SAME:
        return private.output_shape(node) or _shape_of(saved_value(node, "self"))
    return _sizes(node, "self") if len(node.next_functions) == 1 else None


def _sizes(node: Node, part: str) -> _Shape | None:
    try:
        sizes = getattr(node, f"_saved_{part}_sym_sizes", None)
    except RuntimeError:
        return None
    return tuple(map(int, sizes)) if type(sizes) is tuple else None


def _shape_of(value: object) -> _Shape | None:
    return tuple(as_torch.shape(value)) if type(value) is torch.Tensor else None
