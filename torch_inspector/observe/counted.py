"""Counts calls of loss scalers and learning-rate schedules."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from torch_inspector.observe import kinds
from torch_inspector.observe.schedules import Schedules
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.recorder import Recorder, Site
    from torch_inspector.observe.scaling import ScalingWatch

_is_compiling = torch.compiler.is_dynamo_compiling


class CountWatch:
    """Counts one cell's calls between `open` and `close`."""

    def __init__(self, ledger: Ledger, scaling: ScalingWatch) -> None:
        self._scaling = scaling
        self._ledger = ledger
        self._recorder: Recorder | None = None
        self._in_schedule = False
        self.schedules = Schedules()
        self.patches = (
            *(Patch(torch.amp.GradScaler, name, self._scaler(name)) for name in ("step", "unscale_", "update")),
            *(Patch(kind, "step", self._wrap_schedule) for kind in _scheduler_kinds()),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._in_schedule = recorder, False
        self.schedules.open()

    def close(self) -> None:
        """Records no more."""
        self._recorder = None

    def _scaler(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def scaler_call(*args: Any, **kwargs: Any) -> Any:
                if (
                    not _is_compiling()
                    and self._recorder is not None
                    and threading.get_ident() == self._recorder.thread
                ):
                    site = self._count(self._recorder, f"scaler.{name}", args, sys._getframe(1))
                    if name == "step":
                        self.schedules.note_tried(self._recorder, args[1] if len(args) > 1 else kwargs.get("optimizer"))
                        if kinds.fields_of(args[0]).get("_enabled") is not True:
                            self._recorder.site("scaler.off", sys._getframe(1))
                        self._scaling.before_step(self._recorder, site.count, args, sys._getframe(1))
                    elif name == "unscale_":
                        self._scaling.before_unscale(self._recorder, args, sys._getframe(1))
                try:
                    return original(*args, **kwargs)
                except BaseException as error:
                    unframe(error)
                    raise

            return scaler_call

        return make

    def _wrap_schedule(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            outer = self._in_schedule
            if not _is_compiling() and self._recorder is not None and not outer:
                self._schedule(self._recorder, args, kwargs, sys._getframe(1))
            self._in_schedule = True
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            finally:
                self._in_schedule = outer

        return step

    def _schedule(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> None:
        if frame.f_code.co_name == "_initial_step":
            return  # made by the schedule itself
        site = self._count(recorder, "scheduler", args, frame)
        if args and threading.get_ident() == recorder.thread:
            self.schedules.note(recorder, site, args[0], (*args[1:], *kwargs.values()), frame)

    def _count(self, recorder: Recorder, kind: str, args: tuple[Any, ...], frame: FrameType) -> Site:
        site = recorder.site(kind, frame)
        if args and not site.name:
            site.name = kinds.class_name(args[0])
        if kind == "scaler.step":
            # A scaler that finds inf skips the optimizer; the gradients count as used all the same.
            for record in self._ledger.live():
                record.used = True
        return site


def _scheduler_kinds() -> list[type[Any]]:
    """Scheduler classes of torch that define `step` themselves."""
    known: list[type[Any]] = [LRScheduler, ReduceLROnPlateau, *LRScheduler.__subclasses__()]
    mine = [kind for kind in known if kinds.module_of(kind).startswith("torch.")]
    return list(dict.fromkeys(kind for kind in mine if "step" in kinds.class_fields(kind)))
