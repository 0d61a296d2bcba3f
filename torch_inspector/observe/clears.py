"""Watches `zero_grad()` of optimizers and modules: where gradients are cleared, and of which optimizers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ClearFact, Place
from torch_inspector.observe import kinds, layers, private
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.attention import Attention
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.optimizer_record import OptimizerRecord
    from torch_inspector.observe.recorder import Recorder, Site

_KEPT = 64

_is_compiling = torch.compiler.is_dynamo_compiling
_getframe = sys._getframe
_get_ident = threading.get_ident


class ClearWatch:
    """Records one cell's calls between `open` and `close`."""

    def __init__(self, attention: Attention, ledger: Ledger) -> None:
        self._attention = attention
        self._ledger = ledger
        self._recorder: Recorder | None = None
        self._quiet: dict[tuple[int, int, int], Site] = {}
        self.facts: dict[tuple[Place, int], ClearFact] = {}
        self.patches = (
            Patch(torch.optim.Optimizer, "zero_grad", self._wrap),
            Patch(torch.nn.Module, "zero_grad", self._wrap),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self.facts = recorder, {}
        self._quiet.clear()

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        attention = self._attention

        def zero_grad(*args: Any, **kwargs: Any) -> Any:
            if _is_compiling():
                return original(*args, **kwargs)
            latest = attention.latest_clear
            site: Site | None = latest
            if latest.owner == id(args[0]):
                latest.count += 1
            elif not attention.watching or _get_ident() != attention.thread:
                return original(*args, **kwargs)
            else:
                site = self._known(args[0], _getframe(1))
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if site is None:
                self._note(args[0], _getframe(1))
            return result

        return zero_grad

    def _known(self, owner: Any, frame: FrameType) -> Site | None:
        """The site of a call that is only counted, once more; None if there is more to do."""
        if self._attention.busy:
            return None
        site = self._quiet.get((id(frame.f_code), frame.f_lasti, id(owner)))
        if site is not None:
            site.count += 1
            self._attention.latest_clear = site
        return site

    def _note(self, owner: Any, frame: FrameType) -> None:
        recorder, attention = self._recorder, self._attention
        if recorder is None:
            return
        with recorder.failures.guard("zero_grad"), private.unseen():
            site = recorder.site("zero_grad", frame, kinds.class_name(owner), id(owner))
            self._quiet[id(frame.f_code), frame.f_lasti, id(owner)] = site
            key = recorder.keys.of(owner)
            # Also while nothing is looked at: some clear a part at every eighth step.
            if len(self.facts) < _KEPT and (site.place, key) not in self.facts:
                self.facts[site.place, key] = ClearFact(recorder.next_order(), site.place, site.name, key, site.count)
            if not attention.looking:
                return
            for record in self._records(owner, key):
                record.clear(site.place)

    def _records(self, owner: Any, key: int) -> list[OptimizerRecord]:
        """Records of the optimizers whose gradients a call of `zero_grad` clears, all of them."""
        if kinds.is_a(owner, torch.optim.Optimizer):
            return [self._ledger.record(key, owner)]
        own = frozenset(id(p) for _, p in layers.walk_parameters(owner))
        return [record for record in self._ledger.live() if record.keys() <= own]
