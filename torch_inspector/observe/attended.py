"""Attention whose weights sum to 1 along the batch or the heads: `torch.softmax(q @ k.transpose(1, 2), dim=0) @ v`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.einsum_steps import past_einsum
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import axis_of, parents_of

# What `@` and dropout put between the weights and the product with the values.
_HANDED_ON = frozenset(
    f"{name}Backward0" for name in ("View", "UnsafeView", "ReshapeAlias", "Expand", "Clone", "NativeDropout", "Mul")
)
# What scores go through before the softmax: a scale, a mask, a bias of positions.
SCORED = _HANDED_ON | {f"{name}Backward0" for name in ("Div", "Add", "MaskedFill", "Where")}
_TURNS = frozenset(["TransposeBackward0", "PermuteBackward0", "MovedimBackward0", "SwapaxesBackward0"])
# What stands between the features and the product of queries and keys.
_TO_HEADS = _TURNS | _HANDED_ON | {f"{name}Backward0" for name in ("Div", "Select", "Unbind", "Slice", "Squeeze")}
# What normalises each query, or turns it by its place in the sequence.
_TO_HEADS |= {
    f"{name}Backward0"
    for name in ("NativeLayerNorm", "FusedRmsNorm", "Add", "Sub", "Cat", "Stack", "Neg", "Unsqueeze", "ToCopy", "Split")
}
_SUMS = frozenset(["SumBackward0", "SumBackward1"])
_MIXES = _SUMS | {"MeanBackward1"}
_FAR, _NEAR = 8, 3
# A rotation by the place in the sequence takes some eight steps, a norm three, `einsum` three.
_TO_HEADS_FAR = 24
# A batch, or a batch of heads, of square tables.
_AXES, _HEADED = 3, 4


def across_samples(walk: Walk) -> Iterator[Node]:
    """Softmaxes along the first axis, of scores that were computed for each sample and weigh what it has."""
    for node in walk.by_kind.get("BmmBackward0", ()):
        softmax = down(node, _HANDED_ON)
        shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
        if softmax is None or shape is None or axis_of(softmax) != 0 or shape[0] < 2:  # noqa: PLR2004
            continue
        table = down(softmax, SCORED)
        if type(table).__name__ != "BmmBackward0" or table is None:
            continue
        if len(shape) >= _AXES or (_is_flat(table, shape) and _is_flat(parents_of(node)[0], shape)):
            yield softmax


def across_heads(walk: Walk) -> Iterator[Node]:
    """Softmaxes of (batch, heads, queries, keys) along the heads, between the product that scores and that with values.

    The axis is one of heads where the features of queries and keys were split to make it; views and frames that
    compete have such an axis too. One query for each head is left alone: so capsules are routed, whose weights sum to
    1 over the capsules. Slots are, too, whose weights are divided by their sum, before or after they are used, and
    heads whose results are added up: a mixture, whose shares sum to 1.
    """
    consumers = Consumers(walk)
    for node in walk.by_kind.get("BmmBackward0", ()):
        softmax = _under(node, _HANDED_ON)
        shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
        if softmax is None or shape is None or len(shape) != _HEADED or min(shape[1:]) < 2:  # noqa: PLR2004
            continue
        table = _under(softmax, SCORED) if axis_of(softmax) == 1 and not _is_added_up(softmax, consumers) else None
        if type(table).__name__ == "BmmBackward0" and table is not None:
            queries, keys = (*parents_of(table), None)[:2]
            split = _is_split(queries, shape[1]) and _is_split(keys, shape[1])
            if split and not _is_mixed(node, shape[1], consumers):
                yield softmax


def _is_added_up(softmax: Node, consumers: Consumers) -> bool:
    """True if weights are added up: what they weigh is divided by that."""
    users, found = [softmax], False
    for _ in range(_NEAR):
        users = [user for one in users for user in consumers.of(one)]
        found = found or any(type(user).__name__ in _SUMS for user in users)
        users = [user for user in users if type(user).__name__ in _HANDED_ON]
    return found


def _is_mixed(product: Node, heads: int, consumers: Consumers) -> bool:
    """True if what the weights gave, or something made of it value by value, is added up over the heads."""
    users = [product]
    for _ in range(_NEAR):
        users = [user for one in users for user in consumers.of(one)]
        if any(_adds_up(user, heads) for user in users):
            return True
        users = [user for user in users if type(user).__name__ in _HANDED_ON]
    return False


def _adds_up(node: Node, heads: int) -> bool:
    parents = parents_of(node) if type(node).__name__ in _MIXES else ()
    given, made = (private.output_shape(one) if one is not None else None for one in ((*parents, None)[0], node))
    if given is None or made is None or len(given) != _HEADED or given[1] != heads:
        return False
    return made in ((given[0], *given[2:]), (given[0], 1, *given[2:]))


def _is_split(node: Node | None, heads: int) -> bool:
    """True if features were split into heads to make an operand: (batch, steps, heads * n) to (…, heads, n), turned."""
    turned = False
    for _ in range(_TO_HEADS_FAR):
        kind, below = type(node).__name__, _main(node) if node is not None else None
        made, given = (private.output_shape(one) if one is not None else None for one in (node, below))
        if kind not in _TO_HEADS or made is None or given is None:
            return False
        if turned and len(given) <= _AXES < len(made) and heads in made[2:-1] and prod(made[2:]) == given[-1]:
            return True
        turned, node = turned or kind in _TURNS, below
    return False


def _main(node: Node) -> Node | None:
    """What made the operand that has the shape of the result: queries, not the scale that they are multiplied by."""
    shape, parents = private.output_shape(node), parents_of(node)
    alike = (one for one in parents if one is not None and private.output_shape(one) == shape)
    return next(alike, parents[0])


def _is_flat(table: Node, flat: Shape) -> bool:
    """True if a batch of tables lies in one table, its rows below each other: (batch * queries, keys)."""
    shape = private.output_shape(table) if table is not None else None
    if shape is None or len(shape) < _AXES or len(flat) != 2 or min(shape[0], *shape[-2:]) < 2:  # noqa: PLR2004
        return False
    return (prod(shape[:-1]), shape[-1]) == flat


def _under(node: Node, passes: frozenset[str]) -> Node | None:
    """The same where `einsum` was asked for a product."""
    here = down(node, passes)
    past = past_einsum(here)
    return down(past, passes) if past is not here and past is not None and type(past).__name__ in passes else past


def down(node: Node, passes: frozenset[str]) -> Node | None:
    """What made the first operand of a node, past what only hands it on."""
    here = parents_of(node)[0]
    for _ in range(_FAR):
        if here is None or type(here).__name__ not in passes:
            break
        here = next((parent for parent in parents_of(here) if parent is not None), None)
    return here
