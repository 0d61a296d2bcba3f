"""Shapes in an autograd graph that mean something: a softmax under a log-softmax, operands that were stretched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from torch_inspector.facts import PatternFact
from torch_inspector.observe.blown import blown_up
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.expanded import expanded
from torch_inspector.observe.flat import flat_ways
from torch_inspector.observe.folded_rows import Pasts
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.products import FactorName, stretched_products, unnamed
from torch_inspector.observe.reshapes import shuffled
from torch_inspector.observe.scores import Namer, nameless, scores
from torch_inspector.observe.signed import signed_differences
from torch_inspector.observe.softmax import SOFTMAX, log_softmax_below, softmax_below
from torch_inspector.observe.spread import spread_predictions
from torch_inspector.observe.stretched import (
    PAIR_LOSSES,
    REDUCTIONS,
    STRETCHED,
    OtherSide,
    stretched_pair_loss,
    stretched_terms,
)
from torch_inspector.observe.target_range import targets_outside

__all__ = ["SOFTMAX", "STRETCHED", "OtherSide", "find_patterns"]


def find_patterns(
    walk: Walk,
    other_side: OtherSide,
    name_of: Namer = nameless,
    factor: FactorName = unnamed,
    roots: Sequence[torch.Tensor] = (),
) -> tuple[PatternFact, ...]:
    """All patterns in a graph, each once."""
    found, pasts = list(_softmaxes(walk)), Pasts()
    for node in walk.nodes.values():
        kind = type(node).__name__
        if kind in PAIR_LOSSES:
            found.extend((*stretched_pair_loss(node, other_side), *spread_predictions(node, other_side, pasts)))
        elif kind in REDUCTIONS:
            terms = tuple(stretched_terms(node, other_side))
            found.extend((*(terms or stretched_products(node, factor)), *spread_predictions(node, other_side, pasts)))
    found.extend((*signed_differences(walk), *targets_outside(walk), *flat_ways(walk)))
    found.extend(
        (*scores(walk, name_of, roots), *shuffled(walk), *large_patterns(walk), *expanded(walk, Consumers(walk)))
    )
    return tuple(dict.fromkeys(found))


def _softmaxes(walk: Walk) -> Iterator[PatternFact]:
    """Log-softmaxes above a softmax, or above another log-softmax."""
    kinds = walk.by_kind
    softmaxes = len(kinds.get("SoftmaxBackward0", ())) if walk.complete else 0
    nodes = kinds.get("LogSoftmaxBackward0", [])
    # A softmax by hand divides; that of a logarithm needs a second log-softmax above it.
    exponentials = "ExpBackward0" in kinds and ("DivBackward0" in kinds or len(nodes) > 1)
    for node in nodes:
        if "SoftmaxBackward0" in kinds or exponentials:
            yield from softmax_below(node, softmaxes)
        if "SoftmaxBackward0" not in kinds:
            yield from log_softmax_below(node)


def kept_patterns(walk: Walk, roots: Sequence[torch.Tensor] = ()) -> tuple[PatternFact, ...]:
    """Patterns in a graph that a variable keeps, where nothing is known of the code around."""
    return tuple(dict.fromkeys((*_softmaxes(walk), *large_patterns(walk), *scores(walk, roots=roots), *shuffled(walk))))


def large_patterns(walk: Walk) -> tuple[PatternFact, ...]:
    """Patterns that are about memory alone, which a kept graph may show as well as one behind a loss."""
    return tuple(dict.fromkeys(blown_up(walk, Consumers(walk))))
