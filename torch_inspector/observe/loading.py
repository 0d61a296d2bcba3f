"""Whether a state dict brings what was learned: a checkpoint does, the state of a module that is alive may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.groups import parameters_of

if TYPE_CHECKING:
    from torch_inspector.observe.ledger import Ledger

# Entries of a state dict that are looked at.
_ENTRIES = 8
# A storage with one tensor on it, seen while `untyped_storage()` made another reference, is used so often.
_ALONE = 2


def brings_training(state: Any, ledger: Ledger) -> bool:
    """False if the state is that of a living module which no optimizer has stepped: a momentum copy of a new model."""
    if not kinds.is_a(state, dict):
        return True
    with private.unseen():
        tensors = [one for one in list(dict.values(state)) if kinds.is_a(one, torch.Tensor)][:_ENTRIES]
        used = [count for one in tensors if (count := _uses(one)) is not None]
        if not used or not all(count > _ALONE for count in used):
            return True
        own = {found[0] for one in tensors if (found := private.storage_of(one))}
        return bool(own & _stepped_storages(ledger))


def _stepped_storages(ledger: Ledger) -> set[int]:
    optimizers = [record.ref() for record in ledger.live() if record.step_count]
    parameters = (p for one in optimizers if one is not None for group in parameters_of(one) for p in group)
    return {found[0] for one in parameters if (found := private.storage_of(one))}


def _uses(tensor: torch.Tensor) -> int | None:
    """References to the storage behind a tensor, one of them made here; None where torch does not tell."""
    count = private.storage_use_count
    if count is None or private.storage_of(tensor) is None:
        return None
    storage = as_torch.untyped_storage(tensor)
    return int(count(storage._cdata))
