"""Operands that were stretched against each other in a loss: a column (N, 1) met a row (N,).

As well (N, 1, H, W) met (N, H, W): one axis of length 1 tells the two shapes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import private
from torch_inspector.observe.kindred import LAYERS, are_akin, are_aligned, is_predicted
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node
from torch_inspector.observe.shapes import partners

STRETCHED = "stretched-operands"

# What keeps the terms of a loss apart. `Exp` is missing: exp of a difference is a kernel, between all pairs.
_ELEMENTWISE = frozenset(
    f"{name}Backward{n}"
    for name in (
        "Pow", "Abs", "Mul", "Sqrt", "Log", "Log1P", "Log2", "Log10", "Cosh", "Tanh", "Softplus", "Sigmoid",
        "LogSigmoid", "Maximum", "Minimum", "Clamp", "ClampMin", "ClampMax", "Where", "Neg", "Div", "Add", "Sub",
        "Relu", "LeakyRelu", "Huber", "ToCopy", "Rsub", "Addcmul", "Addcdiv", "Lerp", "Xlogy", "Atan", "Sgn",
    )
    for n in range(4)
)  # fmt: skip
PAIR_LOSSES = {
    "MseLossBackward0": "mse_loss",
    "SmoothL1LossBackward0": "smooth_l1_loss",
    "HuberLossBackward0": "huber_loss",
}
REDUCTIONS = frozenset(
    ["MeanBackward0", "SumBackward0", "MeanBackward1", "SumBackward1", "LinalgVectorNormBackward0", "NormBackward0"]
)
_DIFFERENCES = {"SubBackward0": "sub", "RsubBackward1": "sub", "RsubBackward0": "sub"}
# Logarithms of predictions, as in a hand-written cross-entropy.
_LOGS = frozenset(["LogBackward0", "LogSigmoidBackward0", "Log1PBackward0"])
# What losses make of each sample before it is weighted, and what that must come from; anything, if nothing is named.
_OF_DIFFERENCES, _OF_CLASSES = frozenset(["SubBackward0", "RsubBackward1"]), frozenset(["LogSoftmaxBackward0"])
_LOSS_TERMS: dict[str, frozenset[str]] = {
    "PowBackward0": _OF_DIFFERENCES,
    "AbsBackward0": _OF_DIFFERENCES,
    "GatherBackward0": _OF_CLASSES,
    **dict.fromkeys(PAIR_LOSSES, frozenset()),
    "BinaryCrossEntropyBackward0": frozenset(),
    "BinaryCrossEntropyWithLogitsBackward0": frozenset(),
}
# What a weighted loss goes through on the way to its mean.
_WEIGHTED = frozenset(["MulBackward0", "NegBackward0", "DivBackward0"])
_REORDERS = frozenset(
    f"{name}Backward{n}"
    for name in ("View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Transpose", "T", "Permute", "Expand", "NumpyT")
    for n in range(2)
)
# Terms of one loss: a dozen operations is a long formula.
_TERMS = 40
# What the difference of an aligned pair goes through on its way to a mean.
_DISTANCES = frozenset(["PowBackward0", "AbsBackward0"])


class Stretch(NamedTuple):
    """An operation that stretched both of its operands, of which the graph knows one."""

    operation: str
    """`sub`, `mul`, or the name of a loss in `torch.nn.functional`."""
    known: Shape
    wanted: Shape
    """What the other side must be, for this to be a mistake."""
    node: Node
    """The node that made the known side."""
    table: Shape
    """What both were stretched to."""
    bent: bool = False
    """True if what follows treats small and large numbers differently: the pairs may then be meant."""


class _Term(NamedTuple):
    """An operation that may have stretched its operands."""

    operation: str
    nodes: tuple[str, ...]
    straight: bool = True
    """True if nothing but a distance is made of its result before the mean."""


class Other(NamedTuple):
    """The operand of which the graph knows nothing."""

    text: str
    """How the user's code writes it; empty if only its shape is known."""
    shape: Shape
    """The wanted one, or that of the table, if it was stretched already when it was computed."""


OtherSide = Callable[[Stretch], "Other | None"]
"""The other side of a stretch, if it is a mistake; None if that is not sure."""


def inputs(node: Node) -> list[tuple[Node | None, Shape | None]]:
    """The nodes that made the first two inputs of an operation, with the shapes of these inputs."""
    given = [(n, private.output_shape(n, result) if n is not None else None) for n, result in node.next_functions[:2]]
    return [*given, (None, None), (None, None)][:2]


def is_table(shape: Shape | None) -> bool:
    """True if two shapes with one axis of length 1 more or less can have been stretched to this one."""
    return shape is not None and any(a == b >= 2 for a, b in pairwise(shape))  # noqa: PLR2004


def stretched_pair_loss(node: Node, other_side: OtherSide) -> Iterator[PatternFact]:
    """`mse_loss` and its kin expand both sides themselves: an input with history is made by an expand."""
    sides = [_before_expand(*side) for side in inputs(node)]
    table = next((shape for n, shape in inputs(node) if n is not None), None)
    if table is not None and is_table(table):
        name = type(node).__name__
        yield from _judged(_Term(PAIR_LOSSES[name], (name,)), table, sides, other_side)


def _before_expand(node: Node | None, shape: Shape | None) -> tuple[Node | None, Shape | None]:
    if node is None or type(node).__name__ != "ExpandBackward0":
        return node, shape
    return inputs(node)[0]


def stretched_terms(node: Node, other_side: OtherSide) -> Iterator[PatternFact]:
    """A hand-written loss: a term that is (N, N) below a mean or a sum over everything."""
    top, table = inputs(node)[0]
    if top is None or table is None or not is_table(table) or not reduces_all(node, len(table)):
        return
    for term in _terms(top, table):
        operation, sides = _operands(term)
        if not operation and _is_weighted(term, top):
            operation = "mul"
        if operation:
            nodes = (type(node).__name__, type(term).__name__)
            straight = _leads_straight(top, term, _DISTANCES)
            found = list(_judged(_Term(operation, nodes, straight), table, sides, other_side))
            if found:
                yield found[0]
                return


def reduces_all(node: Node, rank: int) -> bool:
    """True for a mean or a sum over all axes."""
    axes = getattr(node, "_saved_dim", None)
    return axes is None or (is_one_of(axes, (tuple, list)) and len(axes) in (0, rank))


def _terms(top: Node, table: Shape) -> Iterator[Node]:
    """The operations on (N, N) that lead to a node without mixing the pairs."""
    stack, seen = [top], set[int]()
    while stack and len(seen) < _TERMS:
        node = stack.pop()
        if id(node) in seen or type(node).__name__ not in _ELEMENTWISE:
            continue
        seen.add(id(node))
        yield node
        stack.extend(n for n, shape in inputs(node) if n is not None and shape == table)


def _operands(term: Node) -> tuple[str, list[tuple[Node | None, Shape | None]]]:
    """What a term calculates, and from what; an empty name if it cannot be the start of a table."""
    kind, sides = type(term).__name__, inputs(term)
    if kind == "MulBackward0":
        return _product(sides), sides
    if kind not in _DIFFERENCES:
        return "", sides
    expanded = [n for n, _ in sides if n is not None and type(n).__name__ == "ExpandBackward0"]
    return ("l1_loss" if expanded else "sub"), [_before_expand(*side) for side in sides]


def _is_weighted(term: Node, top: Node) -> bool:
    """True for a constant times what a loss has made of each sample, of which a mean is taken without more ado."""
    if type(term).__name__ != "MulBackward0":
        return False
    some = [n for n, _ in inputs(term) if n is not None]
    if len(some) != 1 or type(some[0]).__name__ not in _LOSS_TERMS:
        return False
    wanted, below = _LOSS_TERMS[type(some[0]).__name__], inputs(some[0])[0][0]
    return (not wanted or type(below).__name__ in wanted) and _leads_straight(top, term, _WEIGHTED)


def _leads_straight(top: Node, term: Node, through: frozenset[str]) -> bool:
    here: Node | None = top
    while here is not None and here is not term:
        parents = [n for n, _ in inputs(here) if n is not None]
        here = parents[0] if len(parents) == 1 and type(here).__name__ in through else None
    return here is term


def _product(sides: list[tuple[Node | None, Shape | None]]) -> str:
    """A constant times a logarithm, or times the very output of a layer; other products may be tables on purpose."""
    some = [type(n).__name__ for n, _ in sides if n is not None]
    if len(some) != 1:
        return ""
    return "mul" if some[0] in _LOGS else "poisson_nll_loss" if some[0] in LAYERS else ""


def _judged(
    term: _Term, table: Shape, sides: list[tuple[Node | None, Shape | None]], other_side: OtherSide
) -> Iterator[PatternFact]:
    """A pattern if both sides are certainly of shapes that differ by one axis of length 1, and by mistake."""
    if any(node is not None and shape is None for node, shape in sides):
        return  # torch does not tell, and what is not known is no constant
    known = [(node, shape) for node, shape in sides if node is not None and shape is not None]
    if len(known) == 2 and _is_mistaken(known, table, straight=term.straight):  # noqa: PLR2004
        yield PatternFact(STRETCHED, term.nodes, (table, *(shape for _, shape in known)))
    if len(known) != 1:
        return
    ((node, shape),) = known
    for wanted in partners(shape, table):
        if not _on_purpose(node, shape, wanted) and is_predicted(node):
            other = other_side(Stretch(term.operation, shape, wanted, node, table))
            if other is not None:
                texts = (other.text,) if other.text else ()
                yield PatternFact(STRETCHED, term.nodes, (table, shape, other.shape), texts)
                return


def _is_mistaken(known: list[tuple[Node, Shape]], table: Shape, *, straight: bool) -> bool:
    (one, first), (two, second) = known
    if second not in partners(first, table):
        return False
    if straight and are_aligned(*((one, two) if len(first) > len(second) else (two, one))):
        return True
    meant = _on_purpose(one, first, second) or _on_purpose(two, second, first) or are_akin(one, two)
    return not meant and (is_predicted(one) or is_predicted(two))


def _on_purpose(node: Node, shape: Shape, wanted: Shape) -> bool:
    """True for a parameter, a column that was made of a row, and a row that never was a column.

    N values of one sample, as the quantiles of a distribution, are (N,) from the start and are meant to meet all.
    """
    if private.is_leaf_node(node):
        return True
    if len(shape) < len(wanted):
        before = inputs(node)[0][1]
        never = before is None or len(before) <= len(shape) or before[0] != shape[0]
        return type(node).__name__ != "MvBackward0" and never
    return is_made_tall(node, shape, wanted)


def is_made_tall(node: Node, shape: Shape, wanted: Shape) -> bool:
    """True if the axis of length 1 was put there by a view, whatever was done to each number later."""
    parent, before = inputs(node)[0]
    for _ in range(_TERMS):
        if parent is None or before != shape or type(node).__name__ not in _ELEMENTWISE:
            break
        node = parent
        parent, before = inputs(node)[0]
    if parent is not None and before is None:
        return True  # torch does not tell what it was before
    if type(node).__name__ not in _REORDERS or before is None or before == shape:
        return False
    return 1 not in before[1:] or (before == wanted and len(before) > 1)
