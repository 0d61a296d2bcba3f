"""Whether an `nll_loss` only picks the number of the right class, of which something else is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import PatternFact
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.distributions import BY_VALUE
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import IN_PLACE, MOVES

PICKED = "picked"
"""Said where something is computed of the numbers: `-torch.log(-nll)`, `torch.log1p(nll)`, `(1 + nll) ** 2`."""
LIFTED = "lifted"
"""Said where a plain number is added, which is 1 in `1 + F.nll_loss(probabilities, y)`, and 0 in a sum that begins."""
TURNED = "turned"
"""Said where all that happens is a change of sign: `loss = -F.nll_loss(probabilities, y)`."""
UNSIGNED = "unsigned"
"""The same by `abs()` of the whole loss."""

_PROBABILITIES = frozenset(["SoftmaxBackward0", "SigmoidBackward0", "ExpBackward0", BY_VALUE])
_SCALES = frozenset(["MulBackward0", "DivBackward0"])
_EXP = "ExpBackward0"
# Functions of probabilities, and powers, which nobody takes of a loss of logarithms.
_CURVES = frozenset(
    f"{name}Backward0"
    for name in ("Log", "Log2", "Log10", "Log1P", "Pow", "Sqrt", "Rsqrt", "Relu", "Softplus", "BinaryCrossEntropy")
)
# Distances, which are one from a target below 0 or of what a number was added to.
_DISTANCES = frozenset(f"{name}LossBackward0" for name in ("Mse", "SmoothL1", "Huber"))
_NORMS = frozenset(["LinalgVectorNormBackward0", "NormBackward0", "NormBackward1", "DistBackward0", "DotBackward0"])
# About a millisecond.
_ELEMENTS = 300_000
# Steps from a loss to what turns it.
_FAR = 6


class _Way(NamedTuple):
    """What has happened to the numbers so far."""

    left: int = _FAR
    """Steps that may still be taken."""
    lifted: bool = False
    turned: str = ""


def with_use(
    facts: Iterable[PatternFact], node: Node, consumers: Consumers, roots: Sequence[torch.Tensor] = ()
) -> Iterator[PatternFact]:
    """What was found of an `nll_loss`, with one of these words behind it if all that reads the loss has it so.

    Args:
        facts: What was found: the names of the nodes are the loss and what it was given.
        node: That of the loss.
        consumers: What reads what in its graph.
        roots: The tensors that the graph ends with. Given probabilities the loss is below 0, so that a root that is
            not tells a number that was added.
    """
    for fact in facts:
        below = fact.nodes[1] in _PROBABILITIES
        use = _of_all(node, consumers, roots if below else (), _Way())
        yield fact._replace(nodes=(*fact.nodes, use)) if use else fact


def changes_sign(given: Node, reader: Node) -> bool:
    """True for an operation whose result falls where the number that it was given rises, as far as torch keeps it."""
    kind, parents = type(reader).__name__, [one for one, _ in reader.next_functions]
    if kind == "SubBackward0":
        return len(parents) > 1 and parents[1] is given
    return kind in ("NegBackward0", "RsubBackward1") or (kind in _SCALES and _factor_is_negative(reader))


def _of_all(node: Node, consumers: Consumers, roots: Sequence[torch.Tensor], way: _Way) -> str:
    readers = {id(one): one for one in consumers.of(node)}
    if not readers:
        return _at_end(node, roots, way)
    # Ways part and meet again: each reader more than one is a step, but for those of the loss itself.
    left = way.left - (len(readers) - 1 if way.left < _FAR else 0)
    if way.turned and (left <= 0 or len(readers) > 1):
        return PICKED
    if left <= 0:
        return LIFTED if way.lifted else ""
    way = way._replace(left=left)
    found = {_after(node, reader, consumers, roots, way) for reader in readers.values()}
    return found.pop() if len(found) == 1 else LIFTED if found == {PICKED, LIFTED} else ""


def _at_end(node: Node, roots: Sequence[torch.Tensor], way: _Way) -> str:
    if way.turned or not way.lifted:
        return way.turned
    return PICKED if any(as_torch.grad_fn(one) is node and _is_positive(one) for one in roots) else LIFTED


def _after(given: Node, reader: Node, consumers: Consumers, roots: Sequence[torch.Tensor], way: _Way) -> str:
    turn = _turn(given, reader)
    if type(reader).__name__ == _EXP or (turn and any(type(one).__name__ == _EXP for one in consumers.of(reader))):
        return ""  # `exp(-loss)` takes the loss for one of logarithms
    if turn == PICKED or _is_curve(given, reader, lifted=way.lifted):
        return PICKED
    lifts = _adds_number(given, reader)
    if way.turned if lifts else turn and (way.turned or way.lifted):
        return PICKED
    if not turn and not lifts and not _hands_on(reader):
        return PICKED if way.turned else LIFTED if way.lifted else ""
    way = _Way(way.left - 1, way.lifted or lifts, turn or way.turned)
    return _of_all(reader, consumers, roots, way)


def _turn(given: Node, reader: Node) -> str:
    """What a change of sign is called; `1 - loss`, and the size of a number that was lifted above 0, are `PICKED`."""
    kind, parents = type(reader).__name__, [one for one, _ in reader.next_functions]
    if kind == "NegBackward0" or (kind in _SCALES and _factor_is_negative(reader)):
        return TURNED
    if kind == "AbsBackward0":
        below = _is_negative(saved_value(reader, "self"))
        return (UNSIGNED if private.output_shape(reader) == () else TURNED) if below else PICKED
    taken_away = kind == "SubBackward0" and parents[-1] is given and parents[0] is None
    return PICKED if taken_away or kind == "RsubBackward1" else ""


def _is_curve(given: Node, reader: Node, *, lifted: bool) -> bool:
    kind = type(reader).__name__
    if kind in _DISTANCES:
        return lifted or _is_negative(saved_value(reader, "target")) is not False
    squares = kind == "MulBackward0" and all(one is given for one, _ in reader.next_functions)
    return kind in _CURVES or (lifted and (kind in _NORMS or squares))


def _hands_on(reader: Node) -> bool:
    kind = type(reader).__name__
    return kind in IN_PLACE or kind in MOVES or (kind in _SCALES and _is_alone(reader))


def _adds_number(given: Node, reader: Node) -> bool:
    """True for `1 + loss` and `loss - (-1)`."""
    kind = type(reader).__name__
    first = reader.next_functions[0][0] is given if kind == "SubBackward0" else kind == "AddBackward0"
    return first and _is_alone(reader)


def _is_alone(reader: Node) -> bool:
    return sum(one is not None for one, _ in reader.next_functions) == 1


def _factor_is_negative(reader: Node) -> bool:
    other = saved_value(reader, "other") if _is_alone(reader) else None
    return as_torch.numel(other) == 1 and _is_negative(other) is True if _is_readable(other) else False


def _is_negative(value: Any) -> bool | None:
    """True if the numbers of a tensor are below 0 on average; None where they cannot be read."""
    return bool(as_torch.item(as_torch.detach(value).double().mean()) < 0) if _is_readable(value) else None


def _is_positive(root: torch.Tensor) -> bool:
    number = as_torch.numel(root) == 1 and _is_readable(root)
    return number and bool(as_torch.item(as_torch.detach(root)) >= 0)


def _is_readable(value: Any) -> bool:
    return kinds.is_one_of(value, (torch.Tensor,)) and is_in_memory(value) and 0 < as_torch.numel(value) <= _ELEMENTS
