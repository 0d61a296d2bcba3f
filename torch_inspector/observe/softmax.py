"""A softmax under a log-softmax: probabilities that were given to cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.slices import past_whole
from torch_inspector.observe.votes import PRODUCTS, Axis, voted

SOFTMAX = "softmax-before-log-softmax"
TWICE = "log-softmax-twice"

# Operations that hand values on unchanged, each in its place.
IN_PLACE = frozenset(
    f"{name}Backward{n}"
    for name in ("Clone", "ToCopy", "Alias", "Contiguous", "Clamp", "ClampMin", "ClampMax", "MaskedFill")
    for n in range(3)
)
# Operations that hand values on to other places or axes.
MOVES = frozenset(
    f"{name}Backward{n}"
    for name in (
        "View", "UnsafeView", "ReshapeAlias", "Permute", "Transpose", "T", "Squeeze", "Unsqueeze", "Slice", "Select",
        "Index", "IndexSelect", "Unbind", "Split", "SplitWithSizes", "Mean", "Sum",
    )
    for n in range(6)
)  # fmt: skip
# Operations whose result is probabilities if every one of their inputs is.
_JOINS = {"StackBackward0": True, "CatBackward0": True, "CopySlices": True, "AddBackward0": False}
"""Name and whether the operation moves values."""
# What may stand between a sum and a division by it: `e.sum(1).unsqueeze(1)`, `e.sum(1, keepdim=True) + 1e-9`.
_SUM_HANDED_ON = frozenset(("UnsqueezeBackward0", "ExpandBackward0", "ViewBackward0", "AddBackward0", "ClampBackward1"))
# Views between a log-softmax and the next.
_MOVED = 8
# A decoder writes or stacks some hundred steps; each brings about three nodes.
_LIMIT = 1_000


@dataclass
class _Search:
    """Follows scores down to what made them."""

    path: list[str] = field(default_factory=list)
    """Names of the nodes on the first way down to a softmax."""
    ends: list[tuple[Node, Axis]] = field(default_factory=list)
    """The softmax nodes, and the axis along which each should run."""

    def run(self, node: Node, axis: Axis) -> bool:
        """True if everything that the node was given is probabilities, as far as they run along the axes noted."""
        stack, seen = [(parents_of(node)[0], axis)], {id(node)}
        self.path.append(type(node).__name__)
        while stack:
            here, axis = stack.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            below = _below(here, axis)
            if below is None or len(seen) > _LIMIT:
                return False
            self._note(here, axis)
            stack.extend(reversed(below))
        return bool(self.ends)

    def _note(self, node: Node, axis: Axis) -> None:
        name = type(node).__name__
        if not self.ends and self.path[-1:] != [name]:
            self.path.append(name)
        if name == "SoftmaxBackward0" or by_hand(node):
            self.ends.append((node, axis))


def softmax_below(node: Node, softmaxes: int) -> Iterator[PatternFact]:
    """A log-softmax whose input is probabilities over the same classes.

    Args:
        node: The node of the log-softmax.
        softmaxes: How many softmax nodes the whole graph has; 0 if that is not known.
    """
    shape, place = private.output_shape(node), axis_of(node)
    size = shape[place] if shape and place is not None else None
    search = _Search()
    if parents_of(node)[0] is None or not search.run(node, Axis(size, place)):
        return
    if all(_runs_along(end, axis) for end, axis in search.ends):
        rivals = 0 if any(by_hand(end) for end, _ in search.ends) else softmaxes
        yield PatternFact(SOFTMAX, tuple(search.path), (_classes(size),), rivals=rivals)


def by_hand(node: Node) -> bool:
    """True for `e / e.sum(1, keepdim=True)` with `e = x.exp()`, and for `log_softmax(x).exp()`: each is a softmax."""
    return _total_of(node) is not None or _logarithm_of(node) is not None


def sigmoid_by_hand(node: Node) -> bool:
    """True for `1 / (1 + torch.exp(-x))`."""
    if type(node).__name__ == "MulBackward0" and len(parents_of(node)) == 2 and parents_of(node)[1] is None:  # noqa: PLR2004
        node = parents_of(node)[0] if _averages(node) else node
    for wanted in ("ReciprocalBackward0", "AddBackward0", "ExpBackward0"):
        some = [parent for parent in parents_of(node) if parent is not None] if type(node).__name__ == wanted else []
        if len(some) != 1:
            return False
        node = some[0]
    return type(node).__name__ == "NegBackward0"


def _logarithm_of(node: Node) -> Node | None:
    """The log-softmax of which a node is the exponential; None if it is of anything else."""
    parent = parents_of(node)[0] if type(node).__name__ == "ExpBackward0" else None
    return parent if type(parent).__name__ == "LogSoftmaxBackward0" else None


def _total_of(node: Node) -> Node | None:
    """The sum in such a division; None if it is another one."""
    parents = parents_of(node)
    if type(node).__name__ != "DivBackward0" or len(parents) != 2:  # noqa: PLR2004  (the two operands)
        return None
    exp, total = parents
    for _ in range(_MOVED):
        if total is None or type(total).__name__ not in _SUM_HANDED_ON:
            break
        total = parents_of(total)[0]
    if exp is None or total is None or type(exp).__name__ != "ExpBackward0" or type(total).__name__ != "SumBackward1":
        return None
    return total if parents_of(total)[0] is exp and len(total._saved_dim) == 1 else None


def log_softmax_below(node: Node) -> Iterator[PatternFact]:
    """A log-softmax of what is a log-softmax already: the second changes nothing."""
    path, here = [type(node).__name__], parents_of(node)[0]
    while here is not None and len(path) < _MOVED and (type(here).__name__ in IN_PLACE | MOVES):
        path, here = [*path, type(here).__name__], parents_of(here)[0]
    if here is not None and type(here).__name__ == "LogSoftmaxBackward0":
        shapes = private.output_shape(node), private.output_shape(here)
        axes = axis_of(node), axis_of(here)
        if None not in shapes and None not in axes and _size_at(shapes[0], axes[0]) == _size_at(shapes[1], axes[1]):
            yield PatternFact(TWICE, (*path, "LogSoftmaxBackward0"), (_classes(_size_at(shapes[0], axes[0])),))


def _size_at(shape: Shape | None, axis: int | None) -> int | None:
    return None if shape is None or axis is None else shape[axis]


def _classes(size: int | None) -> Shape:
    return () if size is None else (size,)


def _runs_along(end: Node, axis: Axis) -> bool:
    """After a move an axis is known again by its size only."""
    shape, own = private.output_shape(end), axis_of(end)
    if shape is None or own is None:
        return False
    return shape[own] == axis.size and axis.place in (None, own)


def axis_of(node: Node) -> int | None:
    """Axis of a softmax node, counted from the front."""
    shape = private.output_shape(node)
    total = _total_of(node)
    axis = int((_logarithm_of(node) or node)._saved_dim if total is None else total._saved_dim[0])
    axis = axis - 2**64 if axis >= 2**63 else axis
    return axis % len(shape) if shape else None


def parents_of(node: Node) -> list[Node | None]:
    """The nodes that made the inputs of an operation; None for inputs without history."""
    return [past_whole(parent) for parent, _ in node.next_functions] or [None]


def _moves(name: str) -> bool:
    return name in MOVES or _JOINS.get(name, False)


def _below(node: Node, axis: Axis) -> list[tuple[Node, Axis]] | None:
    """The nodes whose results this one hands on, and the axis there; None if what it makes is not theirs any more."""
    name = type(node).__name__
    if name in PRODUCTS:
        found = voted(node, axis)
        return None if found is None else [found]
    handed = _handed_on(node)
    axis = Axis(axis.size) if _moves(name) else axis
    return None if handed is None else [(parent, axis) for parent in handed]


def _handed_on(node: Node) -> list[Node] | None:
    name, parents = type(node).__name__, parents_of(node)
    some = [parent for parent in parents if parent is not None]
    if name == "SoftmaxBackward0" or by_hand(node):
        return []
    if name in IN_PLACE or name in MOVES:
        return some[:1] or None
    if name == "CopySlices":  # what is written into may be fresh
        return some[::-1] if parents[-1] is not None else None
    if name == "AddBackward0":  # `p + 1e-8`, or a sum of probabilities; a constant first is no small number
        return some if parents[0] is not None else None
    if name in _JOINS:
        return some if some and len(some) == len(parents) else None
    return some if name in {"MulBackward0", "DivBackward0"} and len(some) == 1 and _averages(node) else None


def _averages(node: Node) -> bool:
    """True for `/ 3` and `* 0.5`, which average; a factor above 1 makes scores of probabilities, on purpose."""
    times = type(node).__name__ == "MulBackward0"
    first = node.next_functions[0][0] is not None
    number = saved_value(node, "other" if first else "self") if first or times else None
    if type(number) is not torch.Tensor or number.dim() or number.is_complex() or not is_in_memory(number):
        return False
    value = float(as_torch.item(number))
    return 0 < value <= 1 if times else value >= 1
