"""Which operation of a graph was given numbers that it cannot take, or made NaN and infinity of finite ones.

Reads what nodes have saved, as stored, on the CPU and within bounds: the first graphs of a line, and the graph of the
first loss that is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import NO_ALIGNMENT, NO_ROOM, NO_TARGET, NO_VALUES, OperationFact
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import IN_PLACE, MOVES
from torch_inspector.observe.traps import NEGATIVE, TRAPPED, kept_by, trap_of

# Elements read in one graph, and nodes.
_ELEMENTS, _NODES = 300_000, 400
# Operations that are told; operations that only hand values on, in a row.
_TOLD, _HANDED_ON = 3, 12

# The root of the largest number of float32: whoever is multiplied by more has less than half of its exponents left.
_MUCH = 2.0**64
# Operations for which a negative number is as good as a positive one.
_OF_BOTH_SIGNS = frozenset(["/", "1 /", "**"])
# Means over the targets that count, and the reduction that is a mean.
_MEAN_LOSSES = frozenset(f"{one}Backward0" for one in ("MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy"))
_MEANS, _MEAN = frozenset(["NllLossBackward0", "NllLoss2DBackward0"]), 1
_NORMS = frozenset(["LinalgVectorNormBackward0", "NormBackward0", "NormBackward1"])
_RESULTS = {
    "Exp": "exp", "Expm1": "expm1", "Softmax": "softmax", "LogSoftmax": "log_softmax", "Logsumexp": "logsumexp",
    "Cumprod": "cumprod", "Prod": "prod", "LinalgVectorNorm": "norm", "Norm": "norm", "Std": "std", "Pow": "**",
    "Tanh": "tanh", "Sigmoid": "sigmoid", "LinalgInvEx": "inv",
}  # fmt: skip
"""Operations that keep their result."""
_WORDS = {
    "Mul": "*", "Add": "+", "Sub": "-", "Rsub": "-", "Div": "/", "Mm": "@", "Bmm": "@", "Addmm": "a linear layer",
    "Sum": "sum", "Mean": "mean", "Pow": "**", "Convolution": "a convolution", "Sinh": "sinh", "Cosh": "cosh",
    "Var": "var", "Tan": "tan", "Dot": "@", "Mv": "@", "Where": "where",
}  # fmt: skip


def edges(walk: Walk) -> tuple[OperationFact, ...]:
    """Operations that were given numbers at which their value or their slope is not finite, the oldest first."""
    nodes = [node for kind in sorted(TRAPPED & walk.by_kind.keys()) for node in walk.by_kind[kind]]
    return tuple(_trapped(nodes))[:_TOLD] if nodes else ()


class Origin(NamedTuple):
    """Where in a graph numbers stop to be finite."""

    operation: OperationFact | None
    """None if something was not finite before any operation, or nothing is found."""
    given: str = ""
    """What the oldest operation was given, `nan` or `inf`, if it came from outside of the graph."""

    @property
    def is_nan(self) -> bool:
        """True if all that was seen is NaN."""
        return self.given == "nan" or (self.operation is not None and self.operation.result == "nan")


def origin(walk: Walk, *, infinite: bool = False) -> Origin:
    """The oldest operation that gave something not finite, or was given what it cannot take.

    Minus infinity stands for "never" in masks and logarithms of probabilities, so it counts only where nothing else
    does.

    Args:
        walk: The graph of a number that is not finite.
        infinite: True if it is infinite: no number becomes so of NaN, of which others may be made in the same graph.
    """
    nodes = [node for node in walk.nodes.values() if not private.is_leaf_node(node)]
    nodes = sorted(nodes, key=private.node_number)[:_NODES]
    left = _Left(_ELEMENTS)
    for worst in (False, True):
        for node in nodes:
            found = _judged(node, left, worst=worst)
            if found is not None and not (infinite and found.is_nan):
                return found
    return Origin(_multiplied(nodes[-1], left) if nodes and infinite else None)


def _multiplied(node: Node, left: _Left) -> OperationFact | None:
    """The product that ends a graph, of a loss and of a number that takes most of the room which float32 has."""
    if type(node).__name__ != "MulBackward0":
        return None
    saved = (left.read(saved_value(node, name)) for name in ("self", "other"))
    numbers = [as_torch.item(one) for one in saved if one is not None and one.numel() == 1]
    factor = max(numbers, key=abs, default=0.0)
    return OperationFact("*", NO_ROOM, 1, 1, "inf", extreme=factor) if _MUCH <= abs(factor) < math.inf else None


class _Left:
    """Elements that may still be read."""

    def __init__(self, count: int) -> None:
        self.count = count

    def read(self, saved: Any, *, whole: bool = False) -> torch.Tensor | None:
        """A plain tensor on the CPU, of numbers with a point or, if asked, of any, as long as there is room for it."""
        if not is_one_of(saved, (torch.Tensor, torch.nn.Parameter)) or not is_in_memory(saved):
            return None
        if not (whole or saved.is_floating_point()) or not saved.numel():
            return None
        self.count -= saved.numel()
        if self.count < 0:
            return None
        values: torch.Tensor = as_torch.detach(saved)
        return values


def _trapped(nodes: list[Node]) -> Iterator[OperationFact]:
    left = _Left(_ELEMENTS)
    for node in sorted(nodes, key=private.node_number)[:_NODES]:
        fact = _trap(node, left)
        if fact is not None:
            yield fact


def _trap(node: Node, left: _Left, *, slope_too: bool = True) -> OperationFact | None:
    """What an operation was given that it cannot take."""
    name, field, causes = trap_of(node)
    # Divided is by counts as well.
    values = left.read(saved_value(node, field), whole=field == "other") if causes else None
    if values is None:
        return None
    for cause in causes:
        if not cause.slope_only or slope_too:
            count = int(cause.mask(values).sum())
            if count:
                fact = OperationFact(f"{name} norm" if _by_norm(node) else name, cause.what, count, values.numel())
                return fact._replace(
                    half=values.dtype is torch.float16,
                    signed=cause is not NEGATIVE and name in _OF_BOTH_SIGNS and bool((values < 0).any()),
                    whole=not as_torch.is_floating_point(values),
                    given_by=kept_by(node) if name == "/" else "",
                    plain=name == "/" and _is_plain(node, values),
                )
    return None


def _is_plain(node: Node, divisor: torch.Tensor) -> bool:
    """True for what a plain number looks like, as a divisor."""
    made = [parent for parent, _ in node.next_functions][1:]
    own = as_torch.dtype(divisor) in (torch.int64, torch.float64, torch.bool)
    return own and as_torch.dim(divisor) == 0 and made in ([None], [])


def _mean_of_none(node: Node, left: _Left) -> OperationFact | None:
    """A mean over targets of which none counts, as all are of the class that is ignored, or of weight 0."""
    if type(node).__name__ not in _MEANS or getattr(node, "_saved_reduction", None) != _MEAN:
        return None
    weights = left.read(saved_value(node, "total_weight"))
    if weights is None or weights.numel() != 1 or as_torch.item(weights):
        return None
    scores = node.next_functions[0][0]
    of_scores = scores is not None and type(_maker(scores)).__name__.startswith("LogSoftmax")
    return OperationFact("cross_entropy" if of_scores else "nll_loss", NO_TARGET, 1, 1)


def _mean_of_nothing(node: Node) -> OperationFact | None:
    """A mean over an axis, or over all, that has no elements."""
    kind = type(node).__name__
    sizes = {"MeanBackward0": "_saved_self_sym_numel", "MeanBackward1": "_saved_self_sym_numel"}.get(kind, "")
    empty = bool(sizes) and getattr(node, sizes, 1) == 0
    if kind in _MEAN_LOSSES and getattr(node, "_saved_reduction", None) == _MEAN:
        given = saved_value(node, "self")
        empty = kinds.is_one_of(given, (torch.Tensor, torch.nn.Parameter)) and not given.numel()
    return OperationFact("mean", NO_VALUES, 0, 0) if empty else None


def _without_alignment(node: Node, left: _Left) -> OperationFact | None:
    """Targets of the CTC loss that have no alignment: their likelihood is 0."""
    if type(node).__name__ != "CtcLossBackward0" or getattr(node, "_saved_zero_infinity", True):
        return None
    values = left.read(saved_value(node, "result0"))
    count = int((values == math.inf).sum()) if values is not None else 0
    return OperationFact("ctc_loss", NO_ALIGNMENT, count, values.numel()) if values is not None and count else None


def _by_norm(node: Node) -> bool:
    """True for `v / v.norm(…)`: a vector is brought to length 1, which one of zeros has not."""
    parents = [parent for parent, _ in node.next_functions]
    made = _maker(parents[1]) if type(node).__name__ == "DivBackward0" and len(parents) > 1 and parents[1] else None
    return type(made).__name__ in _NORMS


def _judged(node: Node, left: _Left, *, worst: bool) -> Origin | None:
    """What is said of this operation if it ends the search; else None."""
    kind = type(node).__name__.partition("Backward")[0]
    # An operand that is not finite was made by an operation that keeps no result, or was given.
    for number, name in enumerate(_operands(kind)):
        values = left.read(saved_value(node, name))
        bad = _bad(values, worst=worst) if values is not None else None
        if values is not None and bad is not None:
            parent = node.next_functions[number][0] if number < len(node.next_functions) else None
            word = _word(_maker(parent)) if parent is not None else ""
            half = values.dtype is torch.float16
            fact = OperationFact(word, "", bad[1], values.numel(), bad[0], half=half) if word else None
            return Origin(fact, "" if word else bad[0])
    trapped = _mean_of_none(node, left) or _mean_of_nothing(node) or _without_alignment(node, left)
    trapped = trapped or _trap(node, left, slope_too=False)
    if trapped is not None:
        return Origin(trapped)
    values = left.read(saved_value(node, "result")) if kind in _RESULTS else None
    bad = _bad(values, worst=worst) if values is not None else None
    if values is not None and bad is not None:
        fact = OperationFact(_RESULTS[kind], "", bad[1], values.numel(), bad[0])
        return Origin(fact._replace(given_by=_given_by(node), half=values.dtype is torch.float16))
    return None


def _given_by(node: Node) -> str:
    """What gave an operation with one operand that."""
    parents = [parent for parent, _ in node.next_functions if parent is not None]
    return _word(_maker(parents[0])) if len(parents) == 1 else ""


def _operands(kind: str) -> tuple[str, ...]:
    """Names under which a node keeps its operands, in the order of its inputs."""
    if kind == "Addmm":
        return ("", "mat1", "mat2")
    if f"{kind}Backward0" in _MEAN_LOSSES:
        return ("self", "target")
    return ("self", "mat2" if kind in ("Mm", "Bmm") else "other") if kind != "Convolution" else ("input", "weight")


def _maker(node: Node) -> Node:
    """The operation that made some values, past those that only hand them on; may be a leaf."""
    for _ in range(_HANDED_ON):
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if type(node).__name__ not in IN_PLACE | MOVES or len(parents) != 1:
            break
        node = parents[0]
    return node


def _word(node: Node) -> str:
    """What the user may have written for an operation; empty for a leaf."""
    if private.is_leaf_node(node):
        return ""
    kind = type(node).__name__.partition("Backward")[0]
    return _WORDS.get(kind, _RESULTS.get(kind, kind.lower()))


def _bad(values: torch.Tensor, *, worst: bool) -> tuple[str, int] | None:
    """What is not finite in some numbers, and how many are; minus infinity only if it is asked for."""
    if math.isfinite(as_torch.item(values.sum())):
        return None
    nan, inf = int(values.isnan().sum()), int((values == math.inf).sum())
    if worst and not nan and not inf:
        low = int((values == -math.inf).sum())
        return ("-inf", low) if low else None
    return ("nan", nan) if nan else ("inf", inf) if inf else None
