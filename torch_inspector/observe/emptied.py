"""Counts calls that hand cached memory back to the device, and what they took."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import EmptiedFact
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder, Site

_is_compiling = torch.compiler.is_dynamo_compiling
_BACKENDS = ("cuda", "accelerator", "xpu", "mps")


class EmptiedWatch:
    """Counts one cell's calls of `empty_cache()` between `open` and `close`."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._spent_s: dict[int, tuple[Site, float]] = {}
        backends = ((name, getattr(torch, name, None)) for name in _BACKENDS)
        self.patches = tuple(
            Patch(backend, "empty_cache", self._wrap(f"torch.{name}.empty_cache"))
            for name, backend in backends
            if backend
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._spent_s = recorder, {}

    def close(self) -> None:
        """Records no more."""
        self._recorder = None

    def facts(self) -> tuple[EmptiedFact, ...]:
        """One fact per line that called it."""
        if not self._spent_s:
            return ()
        started = torch.cuda.is_initialized() or _starts_itself()
        sites = self._spent_s.values()
        return tuple(EmptiedFact(site.place, site.name, site.count, spent_s, started) for site, spent_s in sites)

    def _wrap(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def empty_cache(*args: Any, **kwargs: Any) -> Any:
                recorder = self._recorder
                if _is_compiling() or recorder is None or threading.get_ident() != recorder.thread:
                    recorder = None
                site = recorder.site("empty_cache", sys._getframe(1), name) if recorder is not None else None
                begun = perf_counter()
                try:
                    return original(*args, **kwargs)
                except BaseException as error:
                    unframe(error)
                    raise
                finally:
                    if site is not None:
                        spent_s = self._spent_s.get(id(site), (site, 0.0))[1]
                        self._spent_s[id(site)] = (site, spent_s + perf_counter() - begun)

            return empty_cache

        return make


def _starts_itself() -> bool:
    """True where another accelerator than CUDA is there: it has a cache from the start."""
    return torch.backends.mps.is_available() or (hasattr(torch, "xpu") and torch.xpu.is_initialized())
