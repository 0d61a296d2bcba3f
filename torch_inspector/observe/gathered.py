"""Whether an `nll_loss` only picks the number of the right class, of which something else is computed."""

from __future__ import annotations

import torch

from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import IN_PLACE, MOVES

PICKED = "picked"
"""Said where the sign is changed again: `p = -F.nll_loss(probabilities, y)`."""
LIFTED = "lifted"
"""Said where a plain number is added, which is 1 in `1 + F.nll_loss(probabilities, y)`, and 0 in a sum that begins."""

_SCALES = frozenset(["MulBackward0", "DivBackward0"])
# A minus sign or `1 - …`, or what takes the sign away.
_TURNS = frozenset(["NegBackward0", "RsubBackward1", "AbsBackward0"])
# Steps from a loss to what turns it.
_FAR = 6


def use_of(node: Node, consumers: Consumers) -> str:
    """One of these words if all that reads the loss has it so; empty where it is a loss as it is."""
    found = {_use(node, reader, consumers) for reader in consumers.of(node)}
    return found.pop() if len(found) == 1 else ""


def _use(given: Node, reader: Node | None, consumers: Consumers) -> str:
    lifted = False
    for _ in range(_FAR):
        if reader is None:
            break
        if _turns(given, reader):
            # `exp(-loss)` takes the loss for one of logarithms.
            meant = any(type(one).__name__ == "ExpBackward0" for one in consumers.of(reader))
            return "" if meant else PICKED
        lifted = lifted or _adds_number(reader)
        if not _hands_on(reader):
            break
        given, after = reader, consumers.of(reader)
        reader = after[0] if len(after) == 1 else None
    return LIFTED if lifted else ""


def _turns(given: Node, reader: Node) -> bool:
    kind, parents = type(reader).__name__, [one for one, _ in reader.next_functions]
    taken_away = kind == "SubBackward0" and parents[-1] is given and parents[0] is None
    return kind in _TURNS or taken_away or (kind in _SCALES and _factor_is_negative(reader))


def _hands_on(reader: Node) -> bool:
    kind = type(reader).__name__
    return kind in IN_PLACE or kind in MOVES or _adds_number(reader) or (kind in _SCALES and _is_alone(reader))


def _adds_number(reader: Node) -> bool:
    return type(reader).__name__ == "AddBackward0" and _is_alone(reader)


def _is_alone(reader: Node) -> bool:
    return sum(one is not None for one, _ in reader.next_functions) == 1


def _factor_is_negative(reader: Node) -> bool:
    if not _is_alone(reader):
        return False
    other = saved_value(reader, "other")
    if not kinds.is_one_of(other, (torch.Tensor,)) or not is_in_memory(other) or as_torch.numel(other) != 1:
        return False
    return bool(as_torch.item(as_torch.detach(other)) < 0)
