"""Watches a training step: backward, zero_grad, step, loss scaling, schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import optimizer as optim
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from torch_inspector.facts import BackwardFact, ClearFact, Place, StepFact
from torch_inspector.observe import layers, private, witness
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.forwards import ForwardWatch
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.ledger import Ledger, OptimizerRecord
    from torch_inspector.observe.recorder import Recorder, Site

# Steps of a cell looked at in full: the first ones, then a few in a row every so often.
_FIRST_STEPS = 24
_EVERY_STEPS, _IN_A_ROW = 64, 3
# Backward calls of one line whose graph is read.
_FIRST_GRAPHS = 3
_CLEARS_KEPT = 64

_Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call as given."""

is_compiling = torch.compiler.is_compiling
getframe = sys._getframe


class StepWatch:
    """Records one cell's steps while it is open."""

    def __init__(self, ledger: Ledger, reader: GraphReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self._recorder: Recorder | None = None
        self._forwards: ForwardWatch | None = None
        self._patches = [
            Patch(torch.autograd, "backward", self._wrap_backward),
            Patch(torch.autograd, "grad", self._wrap_grad),
            Patch(torch.optim.Optimizer, "zero_grad", self._wrap_zero_grad),
            Patch(torch.nn.Module, "zero_grad", self._wrap_zero_grad),
            *(
                Patch(torch.amp.GradScaler, name, self._counter(f"scaler.{name}"))
                for name in ("step", "unscale_", "update")
            ),
            *(Patch(kind, "step", self._counter("scheduler", method=True)) for kind in _scheduler_kinds()),
        ]
        self.backwards: list[BackwardFact] = []
        self.steps: list[StepFact] = []
        self.clears: dict[tuple[Place, int], ClearFact] = {}
        self._step_count = 0
        self._steps_of: dict[int, int] = {}
        self._in_schedule = False
        self.looking = True

    @contextmanager
    def watch(self, recorder: Recorder, forwards: ForwardWatch) -> Iterator[None]:
        """Everything is in place inside the block, and back to what it was after it."""
        self._recorder, self._forwards = recorder, forwards
        self.backwards, self.steps, self.clears = [], [], {}
        self._step_count, self._steps_of, self._in_schedule, self.looking = 0, {}, False, True
        before = optim.register_optimizer_step_pre_hook(self._before_step)
        after = optim.register_optimizer_step_post_hook(self._after_step)
        for patch in self._patches:
            patch.install()
        try:
            yield
        finally:
            for patch in reversed(self._patches):
                patch.remove()
            before.remove()
            after.remove()
            self._recorder = self._forwards = None

    # backward ---------------------------------------------------------------

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is None or is_compiling():
                return original(*args, **kwargs)
            site = self._begin_backward(recorder, args, kwargs, getframe(1))
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if site is not None:
                self._end_backward(recorder, site)
            return result

        return backward

    def _wrap_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is not None and not is_compiling():
                site = recorder.site("grad", getframe(1))
                if site.count <= _FIRST_GRAPHS or self._wanted():
                    self._look_at_roots(recorder, site, (args, kwargs), getframe(1))
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return grad

    def _begin_backward(
        self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Site | None:
        """Counts the call; looks at it if it is one of those looked at. Gives its site if its end matters too."""
        if frame.f_code is _TENSOR_BACKWARD and frame.f_back is not None:
            frame = frame.f_back
        site = recorder.site("backward", frame)
        if site.count <= _FIRST_GRAPHS or self._wanted():
            self._look_at_roots(recorder, site, (args, kwargs), frame)
        else:
            for record in self._ledger.live() if self.looking else ():
                record.leaves_complete = False
        if not self.looking:
            return None
        with recorder.failures.guard("backward"), private.unseen():
            for record in self._ledger.live():
                record.begin_backward(site.place)
        return site

    def _wanted(self) -> bool:
        """True if an evaluation pass is waiting to be told whether a backward call reaches it."""
        return self._forwards is not None and self._forwards.waiting()

    def _end_backward(self, recorder: Recorder, site: Site) -> None:
        with recorder.failures.guard("backward"), private.unseen():
            for record in self._ledger.live():
                record.end_backward(site.place)

    def _look_at_roots(self, recorder: Recorder, site: Site, given: _Given, frame: FrameType) -> None:
        if not recorder.budget.open():
            return
        begun = perf_counter()
        with recorder.failures.guard("witness"), private.unseen():
            roots = witness.roots_of(*given)
            seen = witness.look(roots, self._reader, recorder, frame) if roots else None
            if seen is not None:
                self._note_backward(recorder, site, seen, retain_graph=_retains(*given))
        recorder.budget.charge(begun)

    def _note_backward(self, recorder: Recorder, site: Site, seen: witness.Seen, *, retain_graph: bool) -> None:
        fact = BackwardFact(
            order=recorder.next_order(),
            place=site.place,
            index=site.count,
            root=seen.root,
            made_at=seen.made_at or site.place,
            shape=seen.shape,
            retain_graph=retain_graph,
            is_grad_call=site.kind == "grad",
            witness=seen.fact,
        )
        self.backwards.append(fact)
        if self._forwards is not None:
            self._forwards.note_reached(seen.numbers, complete=seen.fact.complete)
        if not fact.is_grad_call:
            for record in self._ledger.live():
                record.leaf_keys |= seen.fact.leaf_keys
                record.leaves_complete &= seen.fact.complete

    # zero_grad --------------------------------------------------------------

    def _wrap_zero_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is not None and not is_compiling():
                self._note_clear(recorder, owner, getframe(1))
            try:
                return original(owner, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return zero_grad

    def _note_clear(self, recorder: Recorder, owner: Any, frame: FrameType) -> None:
        site = recorder.site("zero_grad", frame)
        if not self.looking:
            return
        with recorder.failures.guard("zero_grad"):
            site.name = site.name or type(owner).__name__
            key = recorder.keys.of(owner)
            if len(self.clears) < _CLEARS_KEPT and (site.place, key) not in self.clears:
                self.clears[site.place, key] = ClearFact(recorder.next_order(), site.place, site.name, key, site.count)
            if _is_optimizer(owner):
                self._ledger.record(key, owner).cleared_at = site.place
                return
            own = frozenset(id(p) for _, p in layers.walk_parameters(owner))
            for record in self._ledger.live():
                if record.keys() <= own:
                    record.cleared_at = site.place

    # step -------------------------------------------------------------------

    def _before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder = self._recorder
        if recorder is None or is_compiling():
            return
        site = recorder.site("step", _caller(getframe(2)))
        if not self.looking:
            return
        with recorder.failures.guard("step"), private.unseen():
            site.name = site.name or type(optimizer).__name__
            record = self._ledger.record(recorder.keys.of(optimizer), optimizer)
            has_closure = len(args) > 1 or kwargs.get("closure") is not None
            self.steps.append(self._step_fact(recorder, site, record, has_closure=has_closure))
            if len(self.steps) == 1 or record.step_count == 0:
                self._mark_trained(record)

    def _step_fact(self, recorder: Recorder, site: Site, record: OptimizerRecord, *, has_closure: bool) -> StepFact:
        keys = record.keys()
        self._steps_of[record.key] = self._steps_of.get(record.key, 0) + 1
        kept = bool(record.step_marks) and record.backward_count > 0 and not record.cleared
        empty = not record.has_gradients()
        unreached = empty and bool(record.leaf_keys) and record.leaves_complete and not record.leaf_keys & keys
        in_between = record.backward_count > 0 and (empty or record.cleared_at is not None)
        return StepFact(
            order=recorder.next_order(),
            place=site.place,
            index=self._steps_of[record.key],
            optimizer=record.key,
            optimizer_kind=record.kind,
            has_closure=has_closure,
            backward_count=record.backward_count,
            kept_gradients=kept and record.marks() != [] and not has_closure,
            empty_gradients=empty,
            parameter_count=len(keys),
            cleared_at=(record.cleared_at or site.place) if in_between and not has_closure else None,
            discarded_count=0 if record.replaced() else record.discarded_count,
            discarded_at=record.discarded_at,
            unreached=unreached and not has_closure,
            parameter_keys=keys,
            leaf_keys=frozenset(record.leaf_keys),
            backward_at=record.backward_at,
        )

    def _mark_trained(self, record: OptimizerRecord) -> None:
        if self._forwards is not None:
            self._forwards.mark_trained(record.keys())

    def _after_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        recorder = self._recorder
        if recorder is None or is_compiling():
            return
        self._step_count += 1
        looked = self._step_count < _FIRST_STEPS or self._step_count % _EVERY_STEPS < _IN_A_ROW
        if not looked and not self.looking:
            return
        with recorder.failures.guard("step"), private.unseen():
            record = self._ledger.record(recorder.keys.of(optimizer), optimizer)
            record.step_count += 1
            record.end_step(looked=looked)
            for other in self._ledger.live():
                other.used = True
        self.looking = looked

    # counted only -----------------------------------------------------------

    def _counter(self, kind: str, *, method: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **kwargs: Any) -> Any:
                recorder = self._recorder
                if recorder is not None and not is_compiling() and not (method and self._in_schedule):
                    self._count(recorder, kind, args, getframe(1))
                inner, self._in_schedule = self._in_schedule, self._in_schedule or method
                try:
                    return original(*args, **kwargs)
                except BaseException as error:
                    unframe(error)
                    raise
                finally:
                    self._in_schedule = inner

            return counted

        return make

    def _count(self, recorder: Recorder, kind: str, args: tuple[Any, ...], frame: FrameType) -> None:
        if frame.f_code.co_name == "_initial_step":
            return
        site = recorder.site(kind, frame)
        if kind == "scaler.step":
            # A scaler that finds inf skips the optimizer; the gradients count as used all the same.
            for record in self._ledger.live():
                record.used = True
        if not site.name and args:
            site.name = type(args[0]).__name__


def _scheduler_kinds() -> list[type[Any]]:
    """Scheduler classes of torch that define `step` themselves."""
    kinds: list[type[Any]] = [LRScheduler, ReduceLROnPlateau, *LRScheduler.__subclasses__()]
    mine = [kind for kind in kinds if kind.__module__.startswith("torch.") and "step" in kind.__dict__]
    return list(dict.fromkeys(mine))


def _retains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if a call of `backward` asks to keep the graph; `Tensor.backward` hands it on as the third argument."""
    return (args[2] if len(args) > 2 else kwargs.get("retain_graph")) is True  # noqa: PLR2004


def _is_optimizer(thing: object) -> bool:
    return torch.optim.Optimizer in type(thing).__mro__


def _caller(frame: FrameType) -> FrameType:
    """The frame that called `step`, past the wrapper that a schedule puts around it."""
    with suppress(AttributeError):
        while frame.f_code.co_filename.endswith("lr_scheduler.py") and frame.f_back is not None:
            frame = frame.f_back
    return frame


_TENSOR_BACKWARD = torch.Tensor.backward.__code__
