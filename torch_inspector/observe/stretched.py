"""Operands that were stretched against each other: a column (N, 1) that met a row (N,) in a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import private
from torch_inspector.observe.private import Node

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
# Operations that mix features with parameters: what they made is a prediction.
_LAYERS = frozenset(
    ["AddmmBackward0", "MmBackward0", "MvBackward0", "BmmBackward0", "BaddbmmBackward0", "AddmvBackward0",
     "LinearBackward0", "MkldnnLinearBackward0", "ConvolutionBackward0", "EmbeddingBackward0", "DotBackward0"]
)  # fmt: skip
_REORDERS = frozenset(
    f"{name}Backward{n}"
    for name in ("View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Transpose", "T", "Permute", "Expand", "NumpyT")
    for n in range(2)
)
# Terms of one loss: a dozen operations is a long formula.
_TERMS = 40
# Below the smallest depth to which a graph may be read, see `private.deep_walk_limit`.
_ANCESTORS = 900


class Stretch(NamedTuple):
    """An operation that stretched both of its operands, of which the graph knows one."""

    operation: str
    """`sub`, `mul`, or the name of a loss in `torch.nn.functional`."""
    known: Shape
    wanted: Shape
    """What the other side must be, for this to be a mistake."""
    node: Node
    """The node that made the known side."""


class Other(NamedTuple):
    """The operand of which the graph knows nothing."""

    text: str
    """How the user's code writes it; empty if only its shape is known."""
    shape: Shape
    """The wanted one, or that of the table, if it was stretched already when it was computed."""


OtherSide = Callable[[Stretch], "Other | None"]
"""The other side of a stretch, if it is a mistake; None if that is not sure."""


def _inputs(node: Node) -> list[tuple[Node | None, Shape | None]]:
    """The nodes that made the first two inputs of an operation, with the shapes of these inputs."""
    given = [(n, private.output_shape(n, result) if n is not None else None) for n, result in node.next_functions[:2]]
    return [*given, (None, None), (None, None)][:2]


def _is_table(shape: Shape | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[0] == shape[1] >= 2  # noqa: PLR2004


def stretched_pair_loss(node: Node, other_side: OtherSide) -> Iterator[PatternFact]:
    """`mse_loss` and its kin expand both sides themselves: an input with history is made by an expand."""
    sides = [_before_expand(*side) for side in _inputs(node)]
    table = next((shape for n, shape in _inputs(node) if n is not None), None)
    if table is not None and _is_table(table):
        name = type(node).__name__
        yield from _judged(PAIR_LOSSES[name], (name,), table, sides, other_side)


def _before_expand(node: Node | None, shape: Shape | None) -> tuple[Node | None, Shape | None]:
    if node is None or type(node).__name__ != "ExpandBackward0":
        return node, shape
    return _inputs(node)[0]


def stretched_terms(node: Node, other_side: OtherSide) -> Iterator[PatternFact]:
    """A hand-written loss: a term that is (N, N) below a mean or a sum over everything."""
    top, table = _inputs(node)[0]
    if top is None or table is None or not _is_table(table) or not _reduces_all(node):
        return
    for term in _terms(top, table):
        operation, sides = _operands(term)
        if not operation and _is_weighted(term, top):
            operation = "mul"
        if operation:
            nodes = (type(node).__name__, type(term).__name__)
            found = list(_judged(operation, nodes, table, sides, other_side))
            if found:
                yield found[0]
                return


def _reduces_all(node: Node) -> bool:
    axes = getattr(node, "_saved_dim", None)
    return axes is None or (type(axes) in (tuple, list) and len(axes) != 1)


def _terms(top: Node, table: Shape) -> Iterator[Node]:
    """The operations on (N, N) that lead to a node without mixing the pairs."""
    stack, seen = [top], set[int]()
    while stack and len(seen) < _TERMS:
        node = stack.pop()
        if id(node) in seen or type(node).__name__ not in _ELEMENTWISE:
            continue
        seen.add(id(node))
        yield node
        stack.extend(n for n, shape in _inputs(node) if n is not None and shape == table)


def _operands(term: Node) -> tuple[str, list[tuple[Node | None, Shape | None]]]:
    """What a term calculates, and from what; an empty name if it cannot be the start of a table."""
    kind, sides = type(term).__name__, _inputs(term)
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
    some = [n for n, _ in _inputs(term) if n is not None]
    if len(some) != 1 or type(some[0]).__name__ not in _LOSS_TERMS:
        return False
    wanted, below = _LOSS_TERMS[type(some[0]).__name__], _inputs(some[0])[0][0]
    return (not wanted or type(below).__name__ in wanted) and _leads_straight(top, term)


def _leads_straight(top: Node, term: Node) -> bool:
    here: Node | None = top
    while here is not None and here is not term:
        parents = [n for n, _ in _inputs(here) if n is not None]
        here = parents[0] if len(parents) == 1 and type(here).__name__ in _WEIGHTED else None
    return here is term


def _product(sides: list[tuple[Node | None, Shape | None]]) -> str:
    """A constant times a logarithm, or times the very output of a layer; other products may be tables on purpose."""
    some = [type(n).__name__ for n, _ in sides if n is not None]
    if len(some) != 1:
        return ""
    return "mul" if some[0] in _LOGS else "poisson_nll_loss" if some[0] in _LAYERS else ""


def _judged(
    operation: str,
    nodes: tuple[str, ...],
    table: Shape,
    sides: list[tuple[Node | None, Shape | None]],
    other_side: OtherSide,
) -> Iterator[PatternFact]:
    """A pattern if one side is certainly (N, 1) and the other certainly (N,)."""
    n = table[0]
    known = [(node, shape) for node, shape in sides if node is not None and shape is not None]
    shapes = [shape for _, shape in known]
    if any(shape not in ((n, 1), (n,)) or _on_purpose(node, shape) for node, shape in known):
        return
    if len(known) == 2:  # noqa: PLR2004
        if shapes[0] != shapes[1] and not _akin(known[0][0], known[1][0]) and any(_is_predicted(k) for k, _ in known):
            yield PatternFact(STRETCHED, nodes, (table, *shapes))
    elif len(known) == 1 and _is_predicted(known[0][0]):
        wanted = (n,) if shapes[0] == (n, 1) else (n, 1)
        other = other_side(Stretch(operation, shapes[0], wanted, known[0][0]))
        if other is not None:
            yield PatternFact(STRETCHED, nodes, (table, shapes[0], other.shape), (other.text,) if other.text else ())


def _on_purpose(node: Node, shape: Shape) -> bool:
    """True for a parameter, a column that was made of a row, and a row that never was a column.

    N values of one sample, as the quantiles of a distribution, are (N,) from the start and are meant to meet all.
    """
    if private.is_leaf_node(node):
        return True
    before = _inputs(node)[0][1]
    if len(shape) == 1:
        return type(node).__name__ != "MvBackward0" and (before is None or len(before) < 2 or before[0] != shape[0])  # noqa: PLR2004
    return type(node).__name__ in _REORDERS and before is not None and before != shape and 1 not in before[1:]


def _ancestors(node: Node) -> dict[int, Node]:
    """Nodes below a node, itself included. All of them are alive: the walk holds the graph."""
    found, stack = {id(node): node}, [node]
    while stack and len(found) < _ANCESTORS:
        for parent, _ in stack.pop().next_functions:
            if parent is not None and id(parent) not in found:
                found[id(parent)] = parent
                stack.append(parent)
    return found


def _akin(first: Node, second: Node) -> bool:
    """True if both come (or may come) from something in common: such pairs are compared on purpose."""
    one, two = _ancestors(first), _ancestors(second)
    return max(len(one), len(two)) >= _ANCESTORS or not one.keys().isdisjoint(two.keys())


def _is_predicted(node: Node) -> bool:
    return any(type(n).__name__ in _LAYERS for n in _ancestors(node).values())
