"""Watches clipping of gradients and loss scalers: in which order they come, and how many scalers one optimizer sees."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils import clip_grad

from torch_inspector.facts import ClipFact, Place, ScalerFact
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.clamped import ELEMENTS, clamped
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.naming import name_in
from torch_inspector.observe.near import Near, near
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.attention import Attention
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.optimizer_record import Mark
    from torch_inspector.observe.recorder import Recorder

_CLIPS_KEPT = 64
_SCALERS_KEPT = 64
# Scaler steps from one line that are looked at; the order of the calls is the same in all.
_FIRST_STEPS = 3

_Marks = dict[int, list["Mark"]]
"""Gradients of optimizers, by their keys."""
_Pending = tuple[int, _Marks, tuple[Near, ...]]
"""Position of a clip among all of the cell, the gradients that it has changed, and what has a name around it."""

_is_compiling = torch.compiler.is_dynamo_compiling


class ScalingWatch:
    """Records one cell's clips and scalers between `open` and `close`."""

    def __init__(self, attention: Attention, ledger: Ledger) -> None:
        self._attention = attention
        self._ledger = ledger
        self._recorder: Recorder | None = None
        self._wrapped: dict[int, Callable[..., Any]] = {}
        self._pending: list[_Pending] = []
        self._made: dict[int, Place] = {}
        self._fresh = False
        self._scalers: dict[tuple[int, Place], ScalerFact] = {}
        self._scaler_keys: dict[tuple[int, Place], set[int]] = {}
        self.clips: list[ClipFact] = []
        names = ("clip_grad_norm_", "clip_grad_value_")
        self.patches = (
            Patch(torch.amp.GradScaler, "__init__", self._wrap_init),
            *(Patch(owner, name, self._wrap_clip) for owner in (clip_grad, torch.nn.utils) for name in names),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._fresh = recorder, True
        self._pending, self._made, self.clips = [], {}, []
        self._scalers, self._scaler_keys = {}, {}

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None

    def scalers(self) -> tuple[ScalerFact, ...]:
        """One fact per optimizer and line that made scalers for it in this cell."""
        return tuple(fact._replace(scaler_count=len(self._scaler_keys[key])) for key, fact in self._scalers.items())

    # scalers ------------------------------------------------------------------

    def _wrap_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(*args: Any, **kwargs: Any) -> None:
            try:
                original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            recorder = self._recorder
            if recorder is not None and threading.get_ident() == recorder.thread and args:
                with recorder.failures.guard("scaler"):
                    self._made[recorder.keys.of(args[0])] = recorder.places.find(sys._getframe(1))
                    self._fresh = True

        return init

    def before_step(self, recorder: Recorder, count: int, given: tuple[Any, ...], frame: FrameType) -> None:
        """Looks at a call of `scaler.step(optimizer)` that is about to be made, if anything about it is new.

        Args:
            recorder: Of the cell.
            count: How often this line has made it.
            given: The scaler and the optimizer.
            frame: Who calls.
        """
        if not (self._fresh or self._pending or count <= _FIRST_STEPS) or len(given) <= 1:
            return
        self._fresh = False
        pending, self._pending = self._pending, []
        with recorder.failures.guard("scaler"), private.unseen():
            fields = kinds.fields_of(given[0])
            if fields.get("_enabled") is not True or not kinds.is_a(given[1], torch.optim.Optimizer):
                return
            self._note_scaler(recorder, given[0], given[1], frame)
            if not _is_unscaled(fields, given[1]):
                self._note_scaled(recorder, given, pending, frame)
                self._note_clamped(recorder, given, frame)

    def before_unscale(self, recorder: Recorder, given: tuple[Any, ...], frame: FrameType) -> None:
        """Looks at a call of `scaler.unscale_(optimizer)` that comes after a clip: the clip came too early."""
        if not self._pending or len(given) <= 1:
            return
        with recorder.failures.guard("scaler"), private.unseen():
            fields = kinds.fields_of(given[0])
            enabled = fields.get("_enabled") is True and kinds.is_a(given[1], torch.optim.Optimizer)
            if enabled and not _is_unscaled(fields, given[1]):
                self._note_scaled(recorder, given, self._pending, frame, unscaled_late=True)

    def _note_scaler(self, recorder: Recorder, scaler: Any, optimizer: Any, frame: FrameType) -> None:
        key = recorder.keys.of(scaler)
        made_at = self._made.get(key)
        if made_at is None or len(self._made) > _SCALERS_KEPT:
            return
        at = (recorder.keys.of(optimizer), made_at)
        user = recorder.places.user_frame(frame)
        if at not in self._scalers:
            names = name_in(user, scaler), name_in(user, optimizer)
            self._scalers[at] = ScalerFact(made_at, names[0], recorder.places.find(frame), at[0], names[1])
        self._scaler_keys.setdefault(at, set()).add(key)

    def _note_scaled(
        self,
        recorder: Recorder,
        given: tuple[Any, ...],
        pending: list[_Pending],
        frame: FrameType,
        *,
        unscaled_late: bool = False,
    ) -> None:
        """Marks clips after which nothing, an `unscale_` neither, has touched the gradients of the optimizer."""
        scaler, optimizer = given[:2]
        key, user = recorder.keys.of(optimizer), recorder.places.user_frame(frame)
        now = self._ledger.record(key, optimizer).marks()
        for index, around in [(index, around) for index, touched, around in pending if touched.get(key) == now]:
            named = [one for one in around if id(scaler) in one.paths and id(optimizer) in one.paths][:1]
            self.clips[index] = self.clips[index]._replace(
                scale=_scale_of(kinds.fields_of(scaler)),
                scaler_name=name_in(user, scaler),
                optimizer=key,
                optimizer_name=name_in(user, optimizer),
                step_place=recorder.places.find(frame),
                unscaled_late=unscaled_late,
                names_there=tuple((one.paths[id(scaler)], one.paths[id(optimizer)], one.place) for one in named),
            )

    def _note_clamped(self, recorder: Recorder, given: tuple[Any, ...], frame: FrameType) -> None:
        """Notes a clip by hand, `p.grad.clamp_(-1, 1)`, of the gradients that are about to be divided."""
        user = recorder.places.user_frame(frame)
        file = recorder.places.file_of(user) if user is not None else None
        found = clamped(file, user, given[1]) if file is not None and user is not None else None
        if user is None or found is None or len(self.clips) >= _CLIPS_KEPT:
            return
        self.clips.append(
            ClipFact(
                order=recorder.next_order(),
                place=recorder.places.place(user, found.line),
                function=found.function,
                limit=found.limit,
                norm=None,
                scale=_scale_of(kinds.fields_of(given[0])),
                scaler_name=name_in(user, given[0]),
                optimizer=recorder.keys.of(given[1]),
                optimizer_name=name_in(user, given[1]),
                step_place=recorder.places.find(frame),
            )
        )

    # clips --------------------------------------------------------------------

    def _wrap_clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._wrapped.get(id(original))
        if known is not None:
            return known
        attention = self._attention

        def clip(*args: Any, **kwargs: Any) -> Any:
            looks = not _is_compiling() and attention.watching and attention.looking
            seen = self._before_clip() if looks else None
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if seen is not None:
                self._after_clip(original, (args, kwargs), result, seen, sys._getframe(1))
            return result

        self._wrapped[id(original)] = clip
        return clip

    def _before_clip(self) -> tuple[_Marks, frozenset[int]] | None:
        """Gradients of every optimizer, and which parameters have some that are not finite."""
        recorder = self._recorder
        if recorder is None or threading.get_ident() != recorder.thread or len(self.clips) >= _CLIPS_KEPT:
            return None
        with recorder.failures.guard("clip"), private.unseen():
            marks = {record.key: record.marks() for record in self._ledger.live()}
            return marks, self._spoiled()
        return None

    def _spoiled(self) -> frozenset[int]:
        found, left = set(), ELEMENTS
        optimizers = [record.ref() for record in self._ledger.live()]
        for parameter in (p for one in optimizers if one is not None for group in parameters_of(one) for p in group):
            gradient = as_torch.grad(parameter) if as_torch.is_leaf(parameter) else None
            if gradient is None or not is_in_memory(gradient):
                continue
            left -= gradient.numel()
            if left < 0:
                break
            if not math.isfinite(as_torch.item(gradient.sum())) and not bool(gradient.isfinite().all()):
                found.add(id(parameter))
        return frozenset(found)

    def _after_clip(
        self,
        original: Callable[..., Any],
        given: tuple[tuple[Any, ...], dict[str, Any]],
        norm: Any,
        seen: tuple[_Marks, frozenset[int]],
        frame: FrameType,
    ) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        with recorder.failures.guard("clip"), private.unseen():
            before, spoiled = seen
            now = {record.key: (record, record.marks()) for record in self._ledger.live()}
            touched = {key: marks for key, (_, marks) in now.items() if key in before and marks != before[key]}
            for key, marks in touched.items():
                now[key][0].clip(before[key], marks)
            keys = frozenset[int]().union(*(now[key][0].keys() for key in touched))
            fact = ClipFact(
                order=recorder.next_order(),
                place=recorder.places.find(frame),
                function=original.__name__,
                limit=_limit(*given),
                norm=_number(norm),
                spoiled_keys=spoiled & keys,
                parameter_keys=keys,
            )
            around = near(frame, recorder.places, (torch.amp.GradScaler, torch.optim.Optimizer))
            self._pending.append((len(self.clips), touched, around))
            self.clips.append(fact)


def _limit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
    """What the call clips to, if it is a plain number."""
    value: Any = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
    return float(value) if kinds.is_one_of(value, (int, float)) else None


def _number(norm: Any) -> float | None:
    """The total norm that a clip returned, if it lies on the CPU."""
    plain = type(norm) is torch.Tensor and norm.numel() == 1 and is_in_memory(norm)
    return float(as_torch.detach(norm)) if plain else None


def _is_unscaled(fields: dict[str, Any], optimizer: Any) -> bool:
    states: Any = fields.get("_per_optimizer_states")
    state = dict.get(states, id(optimizer)) if kinds.is_a(states, dict) else None
    stage = state.get("stage") if type(state) is dict else None
    return stage is not None and getattr(stage, "name", "") != "READY"


def _scale_of(fields: dict[str, Any]) -> float:
    """The scale in force if it lies on the CPU, else what the scaler started with."""
    scale = _number(fields.get("_scale"))
    first: Any = fields.get("_init_scale")
    return scale if scale is not None else float(first) if kinds.is_one_of(first, (int, float)) else 0.0
