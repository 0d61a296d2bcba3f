"""Watches top-level calls of modules: in which mode, with what, and whether a backward call reaches the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import CountFact, ForwardFact, ModeFact, RepeatedFact
from torch_inspector.observe import as_torch, kinds, layers, private
from torch_inspector.observe.calls import Calls, counts_of
from torch_inspector.observe.direct import called_by_name
from torch_inspector.observe.model_copies import CopyWatch
from torch_inspector.observe.modes import ModeWatch
from torch_inspector.observe.module_call import CallState, is_plain, wrap_call
from torch_inspector.observe.outputs import main_tensor
from torch_inspector.observe.repeated import repeated_facts
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.waiting import Waiting
from torch_inspector.observe.wrapper import Patch
from torch_inspector.observe.zeroed import zeroed_rows

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.recorder import Recorder, Site

# Calls of one kind whose result is looked at.
_FIRST_CALLS = 2
# Lines, modules and modes told apart in one cell; a loop that makes a module in each turn has no end of them.
_CALLS_KEPT = 1_000
# Calls of `train()` and `eval()` after which layers are looked at again.
_MODES_LOOKED = 32
_BUILDS_KEPT = 16
# Modules of one class that one line calls, each for the first time, after which the next one is nothing new.
_NEWS_KEPT = 8


class ForwardWatch:
    """Records one cell's calls of modules while it is open."""

    def __init__(self, ledger: Ledger, reader: GraphReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self._recorder: Recorder | None = None
        self._state = CallState()
        self._waiting: list[Waiting] = []
        self._sites: dict[Any, Site] = {}
        self._insides: dict[int, tuple[int, layers.Inside]] = {}
        """Layers of each module, with the number of mode calls before that look."""
        self._modes = ModeWatch(ledger, self._state.latest.clear)
        self._copies = CopyWatch(ledger)
        self.repeated: list[RepeatedFact] = []
        """Lists of one and the same layer in modules that are called for the first time."""
        self.states = self._modes.states
        self.something_new: Callable[[], None] = lambda: None
        """Called when a module is called from a new line or in a new mode, or when a pass waits for a backward call."""
        self._models: set[int] = set()
        self._spots: dict[tuple[Any, ...], int] = {}
        """How many modules of one class each line has called in one mode."""
        self._made_anew: dict[tuple[Any, ...], Calls] = {}
        """The first of them."""
        self.new_model: Callable[[], None] = lambda: None
        """Called when a module with parameters is called for the first time in the cell."""
        self.patches = (
            Patch(
                torch.nn.Module, "__call__", lambda original: wrap_call(original, self._state, self), replaces=is_plain
            ),
            *self._modes.patches,
            *self._copies.patches,
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._waiting, self._insides, self._models, self.repeated = [], {}, set(), []
        self._spots, self._made_anew = {}, {}
        self._modes.open(recorder)
        self._copies.open(recorder)
        self._recorder, self._sites = recorder, recorder.sites
        state = self._state
        state.calls = {}
        state.latest.clear()
        state.passing, state.thread, state.watching = False, recorder.thread, True

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._state.watching, self._state.passing = False, True
        self._state.latest.clear()
        self._recorder = None
        self._modes.close()
        self._copies.close()

    @property
    def modes(self) -> tuple[ModeFact, ...]:
        """Every `train()` and `eval()` of the cell, in order."""
        return tuple(self._modes.facts)

    def facts(self) -> tuple[ForwardFact, ...]:
        """All calls of the cell, by line and mode, in the order of their first."""
        for one in self._waiting:
            one.settle()
        self._waiting, differentiated = [], self._differentiated()
        for calls in self._state.calls.values():
            calls.follow_layer()
        facts = (calls.fact(differentiated) for calls in self._state.calls.values())
        return tuple(sorted(facts, key=lambda fact: fact.order))

    def counts(self) -> tuple[CountFact, ...]:
        """How often each kind of module was called from each line."""
        return counts_of([calls for calls in self._state.calls.values() if calls.layer is None])

    def called(self) -> frozenset[int]:
        """Keys of the modules that were called."""
        return frozenset(calls.module for calls in self._state.calls.values())

    def _differentiated(self) -> int:
        """Calls of `backward` and `grad` so far."""
        return sum(site.count for site in list(self._sites.values()) if site.kind in ("backward", "grad"))

    # calls ------------------------------------------------------------------

    def enter(self, module: Any, args: tuple[Any, ...], frame: FrameType) -> Calls | None:
        """Counts a call that is not like the one before; gives its entry if its result is looked at."""
        recorder, state = self._recorder, self._state
        if recorder is None or torch.compiler.is_compiling():
            return None
        looked = None
        with recorder.failures.guard("forward"), private.unseen():
            grad_enabled = torch.is_grad_enabled()
            training = layers.is_training(module)
            inside = self._inside(module, recorder.keys.of(module))
            key = (recorder.keys.of(module), id(frame.f_code), frame.f_lasti, training, grad_enabled, inside)
            calls = state.calls.get(key)
            if calls is None:
                if len(state.calls) >= _CALLS_KEPT or self._is_one_more(module, key):
                    return None
                calls = state.calls[key] = Calls(module, frame, training=training, grad_enabled=grad_enabled)
                if self._is_news(calls):
                    self.look_anew()
                    self.something_new()
                calls.inside = inside
                calls.describe(module, args, frame, recorder)
                if calls.parameter_keys and calls.module not in self._models:
                    self._models.add(calls.module)
                    self.new_model()
                if self._ledger.is_new_here(calls.module) and len(self.repeated) < _BUILDS_KEPT:
                    self.repeated.extend(repeated_facts([(calls.name or calls.kind, module)]))
                if not grad_enabled:
                    self._note_owner(calls, frame, recorder)
            looked = None if calls.quiet else calls
            calls.count += 1
            calls.quiet = calls.count >= _FIRST_CALLS
            if calls.quiet:
                calls.look_again(module)
                calls.leave_with(module, state.latest)
                self._note_where(calls, module)
                state.latest[id(module)] = calls
            if looked is not None:
                self._copies.note(calls, module, recorder)
                self._note_again(calls)
                calls.begin(module)
        return looked

    def _note_owner(self, layer: Calls, frame: FrameType, recorder: Recorder) -> None:
        """Notes a prediction by `model.forward(x)` with its first layer, which is all that is seen of it."""
        found = called_by_name(frame, recorder.places)
        if found is None:
            return
        owner, outer = found
        training = layers.is_training(owner)
        key = (recorder.keys.of(owner), id(outer.f_code), outer.f_lasti, training, "forward")
        if key not in self._state.calls:
            calls = self._state.calls[key] = Calls(owner, outer, training=training, grad_enabled=False)
            calls.layer, calls.inside = layer, self._inside(owner, recorder.keys.of(owner))
            calls.describe(owner, (), outer, recorder)
            self._note_again(calls)

    def _is_one_more(self, module: Any, key: tuple[Any, ...]) -> bool:
        """Counts a loss that a line makes anew in each turn with the first of them, once there have been some."""
        spot = (key[1], key[2], kinds.class_name(module), key[3], key[4])
        first = self._made_anew.get(spot)
        if first is None or self._spots.get(spot, 0) < _NEWS_KEPT or first.parameter_keys:
            return False
        fields = kinds.fields_of(module)
        if fields.get("_parameters") or fields.get("_modules"):
            return False
        first.count += 1
        return True

    def _is_news(self, calls: Calls) -> bool:
        """False for the many modules that a line makes anew in each turn, as a loss in a function."""
        spot = (id(calls.code), calls.lasti, calls.kind, calls.training, calls.grad_enabled)
        self._spots[spot] = self._spots.get(spot, 0) + 1
        self._made_anew.setdefault(spot, calls)
        return self._spots[spot] <= _NEWS_KEPT

    def look_anew(self) -> None:
        """The next call of each module is looked at, wherever it comes from."""
        self._state.latest.clear()

    def _note_where(self, calls: Calls, module: Any) -> None:
        """Of a module without weights, modes and parts, a loss as a rule, only one line is looked for.

        It is not asked again where it is called from, until a model is called from a new line, or `backward` is.
        """
        same = [one for one in self._state.calls.values() if one.module == calls.module]
        plain = not (calls.parameter_keys or calls.inside.awake or calls.inside.asleep)
        for one in same:
            one.note_lines(len(same))
            one.anywhere = plain and len(same) == 1 and not kinds.fields_of(module).get("_modules")

    def _inside(self, module: Any, key: int) -> layers.Inside:
        """Its layers: a part can be put to sleep while the mode of the whole stays."""
        modes = min(len(self._modes.facts), _MODES_LOOKED)
        known = self._insides.get(key)
        if known is None or known[0] != modes:
            known = self._insides[key] = (modes, layers.look_inside(module))
        return known[1]

    def _note_again(self, calls: Calls) -> None:
        """Notes what may have changed since the call before."""
        if calls.module not in self._ledger.trained and calls.parameter_keys & self._ledger.stepped_keys():
            self._ledger.trained.add(calls.module)
        calls.trained = calls.trained or calls.module in self._ledger.trained
        calls.traced = private.is_traced()
        self._waiting = [one for one in self._waiting if one.calls is not calls or not one.settle()]

    def leave(self, calls: Calls, args: tuple[Any, ...], result: Any) -> None:
        """Looks at the result of a call that `enter` gave the entry of."""
        recorder = self._recorder
        if recorder is None:
            return
        begun = thread_time()
        with recorder.failures.guard("forward"), private.unseen():
            calls.end()
            calls.last_order = recorder.next_order()
            calls.note_differentiated(self._differentiated())
            output = main_tensor(result)
            if output is None:
                return
            calls.output_shape = shape_of(output)
            calls.output_requires_grad |= as_torch.requires_grad(output)
            if calls.is_norm and len(args) == 1:
                calls.zeroed = calls.zeroed or zeroed_rows(args[0], output)
            if as_torch.requires_grad(output) and not calls.training and not calls.traced and recorder.budget.open():
                self._wait(recorder, calls, args, output)
        recorder.budget.charge(begun)

    def _wait(self, recorder: Recorder, calls: Calls, args: tuple[Any, ...], output: torch.Tensor) -> None:
        node = as_torch.grad_fn(output)
        if node is None:
            return
        walk = self._reader.walk([node], recorder.budget.deadline())
        if walk is not None:
            given = {s[0] for a in args if kinds.is_a(a, torch.Tensor) and (s := private.storage_of(a))}
            calls.graph_nbytes = max(calls.graph_nbytes, walk.saved_nbytes(given))
        self._waiting.append(Waiting(calls, calls.first, private.sequence_number()))
        self.something_new()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """A block in which no call is noted: the modules in it are copies of ours."""
        state = self._state
        passing, state.passing = state.passing, True
        try:
            yield
        finally:
            state.passing = passing

    # reached by backward, changed by steps ----------------------------------

    def waiting(self) -> bool:
        """True if a backward call should be looked at because an evaluation pass waits for the answer."""
        return bool(self._waiting)

    def note_reached(self, numbers: frozenset[int], *, complete: bool) -> None:
        """Tells the waiting passes which nodes a backward call has gone through."""
        over = [one for one in self._waiting if one.note(numbers, complete=complete)]
        for one in over:
            one.settle()
        self._waiting = [one for one in self._waiting if one not in over]

    def mark_trained(self, parameter_keys: frozenset[int]) -> None:
        """Notes that an optimizer steps these parameters: the modules that own some of them are being trained."""
        for calls in self._state.calls.values():
            if calls.parameter_keys & parameter_keys:
                self._ledger.trained.add(calls.module)
                if not calls.trained:
                    calls.quiet = False
                    self._state.latest.clear()
