"""What a loss over classes was given: probabilities where it wants logarithms or scores, a softmax over the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from torch_inspector.facts import PatternFact
from torch_inspector.observe import private
from torch_inspector.observe.attended import across_heads, across_samples
from torch_inspector.observe.class_axis import misread
from torch_inspector.observe.classes_read import READ_AS, READERS, along_batch, classes_below
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.distributions import BY_VALUE, holds_probabilities
from torch_inspector.observe.gathered import with_use
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.joined import JOINS, part_read
from torch_inspector.observe.lone import lone_softmaxes
from torch_inspector.observe.mixed import is_mixture
from torch_inspector.observe.mixtures import mixtures
from torch_inspector.observe.opposed import Opposed
from torch_inspector.observe.private import Node
from torch_inspector.observe.raw_scores import LINEAR, is_raw, opposed_in
from torch_inspector.observe.slices import past_whole
from torch_inspector.observe.softmax import IN_PLACE, MOVES, axis_of, parents_of, sigmoid_by_hand
from torch_inspector.observe.weighed import weighed_across

PROBABILITIES = "probabilities-in-nll"
SIGMOID = "sigmoid-before-logits"
OVER_BATCH = "softmax-over-batch"
MIXED = "mixed"
"""What is a sum or a product of several softmaxes."""
DIVERGENCE = "kl_div"
"""A loss that leaves no node of its own: the text has to say that it was called."""
ATTENTION = "attention"
"""What reads a softmax that is the weights of an attention."""
HEADS = "heads"
"""Said of a softmax over the heads of an attention."""
ROWS = "rows"
"""Said of a softmax over the rows of all samples, that lie below each other in one table."""

Namer = Callable[[list[Node]], str]
"""What the user's code calls what one of some nodes made; empty if it has no name there."""

_NLL = {"NllLossBackward0": "nll_loss", "NllLoss2DBackward0": "nll_loss"}
_NLL |= {f"{cuda}CtcLossBackward{n}": "ctc_loss" for cuda in ("", "Cudnn") for n in (0, 1)}
_LOGITS = {
    "BinaryCrossEntropyWithLogitsBackward0": "binary_cross_entropy_with_logits",
    "SoftMarginLossBackward0": "soft_margin_loss",
    "LogSigmoidBackward0": "logsigmoid",
}
_SOFTMAXES = frozenset(["SoftmaxBackward0", "LogSoftmaxBackward0"])
_BY_AXIS = {
    "NllLossBackward0": "nll_loss",
    "NllLoss2DBackward0": "nll_loss",
    "LogSoftmaxBackward0": "cross_entropy",
}
_LOGS = frozenset(["LogSoftmaxBackward0", "LogBackward0", "LogSigmoidBackward0"])
# A sum or a mean of sigmoids is a count of votes, which may well be a score.
_SUMS = frozenset(["SumBackward0", "SumBackward1", "MeanBackward0", "MeanBackward1"])
_PASSES = (IN_PLACE | MOVES | {"SqueezeBackward3", "DropoutBackward0"}) - {"CopySlices"}
# A loss hardly does more with probabilities than this, one operation after the other.
_FAR = 12
# Between the product and the bias of a linear layer.
_RESHAPES, _VIEWS = frozenset(["UnsafeViewBackward0", "ViewBackward0", "ReshapeAliasBackward0"]), 2


def nameless(_: list[Node]) -> str:
    """Names nothing, where no code is known."""
    return ""


def scores(walk: Walk, name_of: Namer = nameless, roots: Sequence[torch.Tensor] = ()) -> Iterator[PatternFact]:
    """All such losses of a graph; the names of the nodes begin with the loss and end with what it was given."""
    kinds, consumers = walk.by_kind, Consumers(walk)
    opposed = opposed_in(kinds, consumers, _hands_on)
    for kind in kinds.keys() & _NLL.keys():
        for node in kinds[kind]:
            facts = _nll(node, _NLL[kind], kinds, name_of, opposed)
            yield from facts if _NLL[kind] != "nll_loss" else with_use(facts, node, consumers, roots)
    for kind in kinds.keys() & _LOGITS.keys():
        for node in kinds[kind]:
            yield from _logits(node, _LOGITS[kind], consumers, kinds, name_of)
    for node in kinds.get("SubBackward0", ()) if "SoftmaxBackward0" in kinds else ():
        yield from _divergence(node, kinds, name_of)
    if not _SOFTMAXES.isdisjoint(kinds):
        yield from _over_batch(walk, name_of)
        yield from _misread(walk, name_of)
        yield from _mixtures(walk, name_of)
        yield from lone_softmaxes(walk, name_of)
        yield from _attention(walk, name_of)


def _attention(walk: Walk, name_of: Namer) -> Iterator[PatternFact]:
    """Weights that sum to 1 over the samples, or over the rows of all samples together."""
    across = list(across_samples(walk))
    flat = {id(node): (ROWS,) for node in across if len(private.output_shape(node) or ()) == 2}  # noqa: PLR2004
    heads = list(across_heads(walk))
    marks = flat | {id(node): (HEADS,) for node in heads}
    for node in (*across, *weighed_across(walk), *heads):
        names, shape = (ATTENTION, type(node).__name__, *marks.get(id(node), ())), private.output_shape(node) or ()
        rivals = len(walk.by_kind[names[1]])
        shapes = (shape, (1, len(shape) - 1)) if HEADS in names else (shape,)
        yield PatternFact(OVER_BATCH, names, shapes, _named(name_of, [node]), rivals=rivals)


def _down(node: Node, passes: frozenset[str]) -> list[Node]:
    """The nodes on the way down from an operation's first input, through operations that hand it on.

    Of parts that were joined, as steps in time or real and fake, the first that is read speaks for all.
    """
    path: list[Node] = []
    here = parents_of(node)[0]
    while here is not None and len(path) < _FAR:
        path.append(here)
        if type(here).__name__ not in passes and not _adds_bias(here):
            break
        first = next((parent for parent in parents_of(here) if parent is not None), None)
        here = past_whole(part_read([node, *path])) if type(here).__name__ in JOINS else first
    return path


def _adds_bias(node: Node) -> bool:
    """True for the end of a linear layer that was given a permuted tensor: product, views, then the bias."""
    parents = parents_of(node)
    if type(node).__name__ != "AddBackward0" or len(parents) != 2:  # noqa: PLR2004  (the two operands)
        return False
    product, bias = parents
    for _ in range(_VIEWS):
        product = parents_of(product)[0] if type(product).__name__ in _RESHAPES else product
    is_product = product is not None and type(product).__name__ in LINEAR
    return is_product and bias is not None and private.is_leaf_node(bias)


def _nll(
    node: Node, loss: str, kinds: dict[str, list[Node]], name_of: Namer, opposed: Opposed
) -> Iterator[PatternFact]:
    """Probabilities, or raw scores, in a loss that takes the first input for logarithms."""
    path = _down(node, _PASSES | JOINS)
    end = type(path[-1]).__name__ if path else ""
    parents = parents_of(path[-1]) if path else []
    exp = end == "ExpBackward0" and type(parents[0]).__name__ == "LogSoftmaxBackward0"
    raw = bool(path) and is_raw(node, path[-1], _hands_on, kinds, opposed)
    if end in {"SoftmaxBackward0", "SigmoidBackward0"} or exp or raw:
        shape, axis = private.output_shape(path[0]) or (), axis_of(path[-1]) if end == "SoftmaxBackward0" else None
        shapes = (shape,) if axis is None else (shape, (axis,))
        yield PatternFact(PROBABILITIES, (loss, end), shapes, _named(name_of, path), rivals=len(kinds[end]))
    elif path and loss == "nll_loss" and is_mixture(path[-1]):
        shapes = (private.output_shape(path[0]) or (),)
        yield PatternFact(PROBABILITIES, (loss, "SoftmaxBackward0", MIXED), shapes, _named(name_of, path), rivals=2)
    elif path and loss == "nll_loss" and end not in _LOGS and holds_probabilities(node):
        shapes = (private.output_shape(path[0]) or (),)
        yield PatternFact(PROBABILITIES, (loss, BY_VALUE, MIXED), shapes, _named(name_of, path), rivals=2)


def _hands_on(node: Node) -> bool:
    return type(node).__name__ in _PASSES or type(node).__name__ in JOINS or _adds_bias(node)


def _logits(
    node: Node, loss: str, consumers: Consumers, kinds: dict[str, list[Node]], name_of: Namer
) -> Iterator[PatternFact]:
    """A sigmoid, or a softmax, directly below a loss that begins with a sigmoid of its own; and what else reads it."""
    path = _down(node, _PASSES - _SUMS | JOINS)
    end = type(path[-1]).__name__ if path else ""
    shape = private.output_shape(path[0]) or () if path else ()
    if end == "SigmoidBackward0" or (end == "SoftmaxBackward0" and loss != "logsigmoid"):
        others = [one for part in path for one in consumers.of(part) if one is not node and one not in path]
        names = (loss, end, *(type(one).__name__ for one in others[:1]))
        yield PatternFact(SIGMOID, names, (shape,), _named(name_of, path), rivals=len(kinds[end]))
    elif path and sigmoid_by_hand(path[-1]):
        yield PatternFact(SIGMOID, (loss, "SigmoidBackward0"), (shape,), _named(name_of, path))


def _divergence(node: Node, kinds: dict[str, list[Node]], name_of: Namer) -> Iterator[PatternFact]:
    """What `kl_div` calculates, `xlogy(t, t) - t * x`, where x is a softmax: it wants the logarithm of one."""
    parents = parents_of(node)
    if len(parents) != 2 or type(parents[0]).__name__ not in {"NoneType", "XlogyBackward0"}:  # noqa: PLR2004
        return
    product = parents_of(parents[1]) if type(parents[1]).__name__ == "MulBackward0" and parents[1] is not None else []
    given = product[1] if len(product) == 2 else None  # noqa: PLR2004
    if given is not None and type(given).__name__ == "SoftmaxBackward0":
        shape, rivals = private.output_shape(given) or (), len(kinds["SoftmaxBackward0"])
        yield PatternFact(
            PROBABILITIES, (DIVERGENCE, "SoftmaxBackward0"), (shape,), _named(name_of, [given]), rivals=rivals
        )


def _named(name_of: Namer, path: list[Node]) -> tuple[str, ...]:
    name = name_of(path)
    return (name,) if name else ()


def _over_batch(walk: Walk, name_of: Namer) -> Iterator[PatternFact]:
    """A softmax along the first axis whose result is read as classes along the second."""
    kinds = walk.by_kind
    for kind, reads in READERS.items():
        for node in kinds.get(kind, ()):
            path = classes_below(node)
            end = path[-1] if path else None
            shape = along_batch(end)
            if end is not None and shape and reads(node, path, shape):
                names = (READ_AS[kind], type(end).__name__)
                rivals = len(kinds[type(end).__name__])
                yield PatternFact(OVER_BATCH, names, (shape,), _named(name_of, path[::-1]), rivals=rivals)


def _misread(walk: Walk, name_of: Namer) -> Iterator[PatternFact]:
    """A softmax along one axis whose result a loss reads as classes along another."""
    for kind, reader in _BY_AXIS.items():
        for node in walk.by_kind.get(kind, ()):
            axis = axis_of(node) if kind == "LogSoftmaxBackward0" else 1
            for one, path in misread(node, axis) if axis is not None else ():
                # Weights along another axis may be scores; along the batch, with classes beside it, they are not.
                if kind == "LogSoftmaxBackward0" and (len(path) > 1 or (one.axis, one.class_axis) != (0, 1)):
                    continue
                end = type(one.softmax).__name__
                shapes, names = (one.shape, (one.axis, one.class_axis)), _named(name_of, path[::-1])
                yield PatternFact(OVER_BATCH, (reader, end), shapes, names, rivals=len(walk.by_kind[end]))


def _mixtures(walk: Walk, name_of: Namer) -> Iterator[PatternFact]:
    """Weights of the parts of a mixture that sum to 1 along another axis than the one that is added up."""
    for one, reader, path in mixtures(walk):
        end = type(one.softmax).__name__
        shapes, names = (one.shape, (one.axis, one.class_axis)), _named(name_of, path[::-1])
        yield PatternFact(OVER_BATCH, (reader, end), shapes, names, rivals=len(walk.by_kind[end]))
