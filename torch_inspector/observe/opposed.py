"""Whether the scores that an `nll_loss` picks have another way into the loss, which may hold against it.

As the two halves of a cross-entropy do, the best other score of a margin, and the samples that a critic is to rate low.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.gathered import changes_sign
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import parents_of

Steps = Callable[[Node], bool]
"""True for an operation that hands on what it was given."""

_LOSSES = frozenset(
    ["NllLossBackward0", "NllLoss2DBackward0", *(f"{c}CtcLossBackward{n}" for c in ("", "Cudnn") for n in (0, 1))]
)
# A number added to all scores changes nothing of what these make: they hold against no sum of scores.
_FREE = frozenset(["SoftmaxBackward0", "LogSoftmaxBackward0"])
_FAR, _MOST = 12, 100


class Opposed:
    """Answers for the layers of one graph, of each layer once: a decoder hands the same one to a loss at every step."""

    def __init__(
        self, layers: frozenset[str], steps: Steps, by_kind: dict[str, list[Node]], consumers: Consumers
    ) -> None:
        """Reads nothing yet.

        Args:
            layers: What nodes of layers are called.
            steps: What hands scores on.
            by_kind: The nodes of the whole graph by the names of their classes.
            consumers: What reads what in that graph.
        """
        self._layers, self._steps, self._by_kind, self._consumers = layers, steps, by_kind, consumers
        self._known: dict[Node, bool] = {}

    def is_opposed(self, layer: Node) -> bool:
        """True if what a layer gives, in this call of it or another one, is used otherwise, or with the other sign."""
        key = _weight(layer) or layer
        if key not in self._known:
            self._known[key] = self._is_any(self._calls.get(key, [layer]))
        return self._known[key]

    @cached_property
    def _calls(self) -> dict[Node, list[Node]]:
        """The nodes of layers by the leaf that they multiply with."""
        found: dict[Node, list[Node]] = {}
        for node in (one for kind in self._layers & self._by_kind.keys() for one in self._by_kind[kind]):
            weight = _weight(node)
            if weight is not None:
                found.setdefault(weight, []).append(node)
        return found

    def _is_any(self, calls: list[Node]) -> bool:
        losses: list[Node] = []
        for one in calls:
            found = _losses_above(one, self._steps, self._consumers)
            if found is None:
                return True
            losses += found
        return len({_is_turned(one, self._consumers) for one in losses}) > 1


def _weight(layer: Node) -> Node | None:
    """The leaf that a layer multiplies with."""
    parents = parents_of(layer)
    place = 2 if type(layer).__name__ == "AddmmBackward0" else 1
    one = parents[place] if len(parents) > place else None
    own = parents_of(one)[0] if type(one).__name__ == "TBackward0" and one is not None else one
    return own if own is not None and private.is_leaf_node(own) else None


def _losses_above(node: Node, steps: Steps, consumers: Consumers) -> list[Node] | None:
    """The losses that scores are handed to; None if anything else reads them."""
    found, stack, seen = [], [node], set[int]()
    while stack:
        here = stack.pop()
        users = consumers.of(here)
        if not users or len(seen) > _MOST:
            return None
        for user in (one for one in users if id(one) not in seen):
            seen.add(id(user))
            kind = type(user).__name__
            if kind in _LOSSES:
                found.append(user)
            elif steps(user):
                stack.append(user)
            elif kind not in _FREE:
                return None
    return found


def _is_turned(loss: Node, consumers: Consumers) -> bool:
    """True if the sign of a loss is changed on its way into a sum of several."""
    here, turned = loss, False
    for _ in range(_FAR):
        users = consumers.of(here)
        if len(users) != 1:
            break
        turned ^= changes_sign(here, users[0])
        here = users[0]
    return turned
