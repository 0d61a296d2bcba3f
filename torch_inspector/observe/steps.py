"""Watches optimizers: `step()`, with what became of the gradients since the one before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import optimizer as optim

from torch_inspector.facts import StepFact
from torch_inspector.observe import kinds, private
from torch_inspector.observe.handles import uncounted
from torch_inspector.observe.naming import from_outside, name_in
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.attention import Attention
    from torch_inspector.observe.forwards import ForwardWatch
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.optimizer_record import OptimizerRecord
    from torch_inspector.observe.recorder import Recorder, Site
    from torch_inspector.observe.unheld import UnheldWatch

_is_compiling = torch.compiler.is_dynamo_compiling
_getframe = sys._getframe
_get_ident = threading.get_ident


class StepWatch:
    """Records one cell's steps between `open` and `close`."""

    def __init__(self, attention: Attention, ledger: Ledger, forwards: ForwardWatch, unheld: UnheldWatch) -> None:
        self._attention = attention
        self._ledger = ledger
        self._forwards = forwards
        self._unheld = unheld
        self._recorder: Recorder | None = None
        self._hooks: list[Any] = []
        self._before_step, self._after_step = self._hook_before(), self._hook_after()
        self._quiet_steps: dict[tuple[int, int, int], Site] = {}
        self._steps_of: dict[int, int] = {}
        self._moved: set[int] = set()
        """Optimizers of which a step has been seen to change weights: no later one is compared."""
        self.facts: list[StepFact] = []
        self.patches = (Patch(torch.optim.Optimizer, "__init__", self._wrap_init),)

    def install(self) -> None:
        """Puts the hooks around each step in place, once: torch.compile guards on them."""
        if not self._hooks:
            self._hooks = [
                uncounted(optim.register_optimizer_step_pre_hook(self._before_step)),
                uncounted(optim.register_optimizer_step_post_hook(self._after_step)),
            ]

    def remove(self) -> None:
        """Takes the hooks away."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._steps_of, self._moved = recorder, {}, set()
        self._quiet_steps.clear()
        self.facts = []

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None

    def count(self) -> int:
        """Steps so far. Only reads, so another thread may ask: it gets a number that was right a moment ago."""
        return sum(site.count for site in tuple(self._quiet_steps.values()))

    def _wrap_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(*args: Any, **kwargs: Any) -> None:
            try:
                original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            recorder = self._recorder
            if recorder is not None and _get_ident() == recorder.thread:
                with recorder.failures.guard("optimizer"):
                    record = self._ledger.record(recorder.keys.of(args[0]), args[0])
                    self._unheld.note_made(record, _getframe(1))

        return init

    def _hook_before(self) -> Callable[..., None]:
        attention = self._attention

        def before_step(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not _is_compiling() and attention.looking:
                self._look_before(optimizer, args, kwargs)

        return before_step

    def _look_before(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder, attention = self._recorder, self._attention
        if recorder is None:
            return
        if _get_ident() != attention.thread:
            attention.in_other_thread()
            return
        frame = _getframe(3)
        with recorder.failures.guard("step"), private.unseen():
            site = self._site(recorder, optimizer, frame)
            record = self._ledger.record(recorder.keys.of(optimizer), optimizer)
            has_closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None
            self.facts.append(self._fact(recorder, site, record, has_closure=has_closure))
            self._unheld.note_step(record, self.facts[-1], frame)
            if len(self.facts) == 1 or record.step_count == 0:
                self._forwards.mark_trained(record.keys())

    def _site(self, recorder: Recorder, optimizer: Any, frame: FrameType) -> Site:
        """Where the step is called from; not counted here, for a step that fails is none."""
        owner = id(optimizer)
        key = (id(frame.f_code), frame.f_lasti, owner)
        site = self._quiet_steps.get(key)
        if site is None:
            site = self._quiet_steps[key] = recorder.site("step", frame, kinds.class_name(optimizer), owner)
            user = recorder.places.user_frame(frame)
            site.known_as = name_in(user, optimizer)
            site.known_outside = from_outside(user, site.known_as)
            site.count = 0
        return site

    def _fact(self, recorder: Recorder, site: Site, record: OptimizerRecord, *, has_closure: bool) -> StepFact:
        self._steps_of[record.key] = self._steps_of.get(record.key, 0) + 1
        now, keys, empty = record.marks(), record.keys(), not record.has_gradients()
        record.before_step, record.closure_clears = (now, record.weights()), 0
        record.before_values = [] if record.key in self._moved else record.values()
        kept = bool(record.step_marks) and record.backward_count > 0 and not record.cleared
        untouched = record.untouched(now, empty=empty)
        if untouched and not record.leaves_complete:
            self._attention.graphs_wanted = 1
        in_between = record.backward_count > 0 and (empty or record.cleared_at is not None)
        cleared = in_between and not has_closure and not record.written(now)
        return StepFact(
            order=recorder.next_order(),
            place=site.place,
            index=self._steps_of[record.key],
            optimizer=record.key,
            optimizer_kind=record.kind,
            has_closure=has_closure,
            backward_count=record.backward_count,
            kept_gradients=kept and not has_closure and record.cleared_at is None,
            empty_gradients=empty,
            parameter_count=len(keys),
            cleared_at=(record.cleared_at or site.place) if cleared else None,
            discarded_count=record.discarded_count if record.is_as_backward_left(now) else 0,
            discarded_calls=record.discarded_calls,
            discarded_at=record.discarded_at,
            unreached=untouched and not has_closure and self._misses(record, keys),
            parameter_keys=keys,
            leaf_keys=frozenset(record.leaf_keys),
            backward_at=record.backward_at,
            name=site.known_as,
            path=site.known_outside,
            idle=empty and not has_closure,
            frozen_count=record.frozen_count() if empty else 0,
            rate_is_zero=record.rate_is_zero(),
            maximizes=record.maximizes(),
        )

    def _misses(self, record: OptimizerRecord, keys: frozenset[int]) -> bool:
        """True if the loss reaches parameters that no optimizer has, and none of this one."""
        if not record.leaves_complete or not keys or record.leaf_keys & keys:
            return False
        return bool(record.leaf_keys - self._ledger.stepped_keys(besides=record.key))

    def _hook_after(self) -> Callable[..., None]:
        attention = self._attention

        def after_step(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG001
            if _is_compiling():
                return
            # Not from which line: a new loop has a backward call of its own, which ends the quiet.
            site = attention.latest_step
            if site.owner == id(optimizer) and attention.quiet_steps > 0:
                site.count += 1
                attention.quiet_steps -= 1
            elif attention.watching:
                self._count_step(optimizer)

        return after_step

    def _count_step(self, optimizer: Any) -> None:
        """Counts a step that is not like the one before."""
        if _get_ident() != self._attention.thread:
            self._attention.in_other_thread()
            return
        frame = _getframe(3)
        site = self._quiet_steps.get((id(frame.f_code), frame.f_lasti, id(optimizer)))
        if site is not None and self._attention.quiet_steps > 0:
            self._attention.latest_step = site
            site.count += 1
            self._attention.quiet_steps -= 1
        else:
            self._note_step(optimizer, frame)

    def _note_step(self, optimizer: Any, frame: FrameType) -> None:
        recorder, attention = self._recorder, self._attention
        if recorder is None:
            return
        with recorder.failures.guard("step"), private.unseen():
            if (id(frame.f_code), frame.f_lasti, id(optimizer)) not in self._quiet_steps:
                attention.again()
            self._site(recorder, optimizer, frame).count += 1
            looked = attention.after_step(several=len(self._steps_of) > 1)
            if looked or attention.busy:
                self._finish(recorder, attention, optimizer, looked=looked)

    def _finish(self, recorder: Recorder, attention: Attention, optimizer: Any, *, looked: bool) -> None:
        """Starts the time up to the next step of an optimizer."""
        record = self._ledger.record(recorder.keys.of(optimizer), optimizer)
        record.step_count += 1
        record.stepped_number = private.sequence_number()
        if not attention.foreign:
            self._correct(record)
            record.end_step(looked=looked)
        for other in self._ledger.live():
            other.used = True
        attention.looking = looked
        if not looked and not self._forwards.waiting():
            attention.rest()

    def _correct(self, record: OptimizerRecord) -> None:
        """Corrects what was said before the step by what the step did.

        Optimizers with gradients of their own (kept by hooks, or computed in `step`) move weights without a gradient.
        """
        last = self.facts[-1] if self.facts else None
        if last is None or last.optimizer != record.key or record.before_step is None:
            return
        if last.has_closure and record.kept_in_closure():
            self.facts[-1] = last = last._replace(kept_gradients=True)
        if last.has_closure and record.is_without_gradients():
            self.facts[-1] = last = last._replace(idle=True)
        if last.has_closure and (lost := record.lost_in_closure()) is not None:
            count, at = record.backward_count, record.backward_at
            self.facts[-1] = last = last._replace(cleared_at=lost, backward_count=count, backward_at=at)
        if last.idle and record.weights() != record.before_step[1]:
            self.facts[-1] = last = last._replace(idle=False)
        values = record.before_values
        if values and None not in values and not last.has_closure:
            if record.values() == values:
                zero = record.gradients_are_zero()
                self.facts[-1] = last = last._replace(
                    unmoved=True, gradients_are_zero=zero, coarse_type=record.coarse_type()
                )
            else:
                self._moved.add(record.key)
        if (last.cleared_at or last.unreached) and last.empty_gradients and record.weights() != record.before_step[1]:
            self.facts[-1] = last._replace(cleared_at=None, unreached=False)
