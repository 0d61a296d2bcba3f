"""What the two sides of a difference come from: parameters, and inputs that they have in common."""

from __future__ import annotations

import torch

from torch_inspector.observe import private
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.private import Node

LAYERS = frozenset(
    ["AddmmBackward0", "MmBackward0", "MvBackward0", "BmmBackward0", "BaddbmmBackward0", "AddmvBackward0",
     "LinearBackward0", "MkldnnLinearBackward0", "ConvolutionBackward0", "EmbeddingBackward0", "DotBackward0",
     "MkldnnRnnLayerBackward0", "CudnnRnnBackward0"]
)  # fmt: skip
"""Operations that mix features with parameters: what they made is a prediction."""
# Below the smallest depth to which a graph may be read, see `private.deep_walk_limit`.
_ANCESTORS = 900
# A formula of an input, as the source term of a differential equation.
_FORMULA = 40


def are_akin(first: Node, second: Node) -> bool:
    """True if both come (or may come) from something in common: such pairs are compared on purpose."""
    one, two = ancestors(first), ancestors(second)
    return max(len(one), len(two)) >= _ANCESTORS or not one.keys().isdisjoint(two.keys())


def are_aligned(column: Node, row: Node) -> bool:
    """True if a row of numbers is a formula of the very input, one sample a number, that a prediction is made of.

    Such an input has `requires_grad` for the sake of its derivatives, as in a network that solves an equation.
    """
    formula, length = ancestors(row), (private.output_shape(row) or (0,))[0]
    leaves = [node for node in formula.values() if private.is_leaf_node(node)]
    inner = [node for node in formula.values() if not private.is_leaf_node(node)]
    if len(leaves) != 1 or not inner or len(formula) > _FORMULA or not _is_input(leaves[0], length):
        return False
    if any((private.output_shape(node) or (0,))[0] != length or type(node).__name__ in LAYERS for node in inner):
        return False
    made = ancestors(column)
    shared = made.keys() & formula.keys()
    return len(made) < _ANCESTORS and shared == {id(leaves[0])} and is_predicted(column)


def is_predicted(node: Node) -> bool:
    """True if a layer with parameters is behind a tensor."""
    return any(type(n).__name__ in LAYERS for n in ancestors(node).values())


def _is_input(leaf: Node, length: int) -> bool:
    tensor = leaf.variable
    return not is_a(tensor, torch.nn.Parameter) and (private.output_shape(leaf) or (0,))[0] == length > 1


def ancestors(node: Node) -> dict[int, Node]:
    """Nodes below a node, itself included. All of them are alive: the walk holds the graph."""
    found, stack = {id(node): node}, [node]
    while stack and len(found) < _ANCESTORS:
        for parent, _ in stack.pop().next_functions:
            if parent is not None and id(parent) not in found:
                found[id(parent)] = parent
                stack.append(parent)
    return found
