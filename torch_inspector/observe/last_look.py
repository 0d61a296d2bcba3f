"""At the end of a cell, what became of parameters that no optimizer held: an optimizer has them now, or they moved.

After the first steps few backward calls are looked at, so what a round of many steps changes is seen only here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from time import thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import UnheldFact
from torch_inspector.observe import layers
from torch_inspector.observe.namespace import walk_names

if TYPE_CHECKING:
    from torch_inspector.observe.ledger import Ledger

_Asks = Callable[[torch.Tensor], bool]
# As long as other programs may take for the search of names.
_SEARCH_S = 0.002


class LastLook:
    """The variables of the notebook that led to such parameters; holds the namespace, no tensor."""

    def __init__(self) -> None:
        self._namespace: Mapping[str, Any] = {}
        self._known: set[int] = set()
        self._newest = 0

    def note(self, facts: Iterable[UnheldFact], ledger: Ledger, user: FrameType | None) -> None:
        """Notes which parameters of some new facts the notebook's own variables lead to."""
        self._namespace = user.f_globals if user is not None else {}
        self._newest = max((record.key for record in ledger.live()), default=0)
        for fact in facts:
            self._known |= self._found(fact).keys() & fact.keys

    def still_true(self, facts: list[UnheldFact], ledger: Ledger, is_as_it_was: _Asks) -> list[UnheldFact]:
        """The facts whose parameters nobody has taken, changed or replaced since; forgets the namespace.

        Who looks at new optimizers when they are made says whether they have taken one: addresses may be used again.
        """
        old = (record.keys() for record in ledger.live() if record.key <= self._newest)
        taken = frozenset[int]().union(*old)
        kept = [fact for fact in facts if not fact.keys & taken and self._is_left(fact, is_as_it_was)]
        self._namespace, self._known = {}, set()
        return kept

    def _is_left(self, fact: UnheldFact, is_as_it_was: _Asks) -> bool:
        found = self._found(fact)
        same = [found[key] for key in fact.keys if key in found]
        return self._known & fact.keys <= found.keys() and all(map(is_as_it_was, same))

    def _found(self, fact: UnheldFact) -> dict[int, torch.Tensor]:
        """The parameters that a variable leads to, by address."""
        root = re.split(r"[.\[]", fact.names[0])[0] if fact.names else ""
        if root not in self._namespace:
            return {}
        names = walk_names([(root, self._namespace[root])], thread_time() + _SEARCH_S, sampling=True)
        found = {id(one): one for _, one in names.tensors}
        return found | {id(p): p for _, module in names.modules for _, p in layers.walk_parameters(module)}
