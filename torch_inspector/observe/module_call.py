"""The wrapper of `Module.__call__`: it runs for every layer of every step, and only counts most calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import torch

from torch_inspector.observe.wrapper import unframe

if TYPE_CHECKING:
    from torch_inspector.observe.calls import Calls

_is_compiling = torch.compiler.is_dynamo_compiling
_is_grad_enabled = torch.is_grad_enabled
_get_ident = threading.get_ident
_getframe = sys._getframe


class CallState:
    """What the wrapper reads, flat and in slots."""

    __slots__ = ("calls", "latest", "passing", "thread", "watching")

    def __init__(self) -> None:
        self.watching = False
        self.passing = True
        """True while calls are only passed on: inside another module, and between cells."""
        self.thread = 0
        self.calls: dict[tuple[Any, ...], Calls] = {}
        self.latest: dict[int, Calls] = {}
        """For each module, by address, the entry that its next call is only counted in, if it comes from there.

        Emptied whenever a mode changes or a parameter is found to be trained; a module that dies takes its entry along.
        """


class Watcher(Protocol):
    """Who looks at the calls that are not only counted."""

    def enter(self, module: Any, args: tuple[Any, ...], frame: FrameType) -> Calls | None:
        """A call begins; gives its entry if its result is looked at."""

    def leave(self, calls: Calls, args: tuple[Any, ...], result: Any) -> None:
        """Such a call has ended."""


def is_plain(original: Callable[..., Any]) -> bool:
    """True if this is torch's own `Module.__call__`, which does nothing but hand on to one of two methods."""
    code = getattr(original, "__code__", None)
    return code is not None and code.co_names == ("_compiled_call_impl", "_call_impl")


def wrap_call(original: Callable[..., Any], state: CallState, watcher: Watcher) -> Callable[..., Any]:
    """The function to put in front of `Module.__call__`.

    Two of them, for what one asks before it goes on is guarded in traced code, and costs at every layer.
    """
    return _in_place(state, watcher) if is_plain(original) else _in_front(original, state, watcher)


def _in_place(state: CallState, watcher: Watcher) -> Callable[..., Any]:  # noqa: C901
    """Does what torch's own does, instead of it: nested modules have all the depth that they had."""
    latest = state.latest.get

    # With cold caches each operation of Python costs several times what it seems to: written out for few of them.
    def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        run = module._compiled_call_impl or module._call_impl
        # In this order: what traced code reads is guarded, and compiled again when it changes.
        if _is_compiling() or state.passing:
            try:
                return run(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
        known = latest(id(module))
        if known is not None:
            if known.anywhere:
                known.count += 1
                try:
                    return run(*args, **kwargs)
                except BaseException as error:
                    unframe(error)
                    raise
            if known.count < known.ask_at and known.grad_enabled is _is_grad_enabled():
                known.count += 1
                state.passing = True
                try:
                    return run(*args, **kwargs)
                except BaseException as error:
                    unframe(error)
                    raise
                finally:
                    state.passing = not state.watching
        looked, owned = None, False
        try:
            if known is not None and known.grad_enabled is _is_grad_enabled() and _is_from_there(known):
                known.count += 1
                owned = state.passing = True
            elif _get_ident() == state.thread:
                owned = state.passing = True
                looked = watcher.enter(module, args, _getframe(1))
            result = run(*args, **kwargs)
        except BaseException as error:
            unframe(error)
            raise
        finally:
            if owned:
                state.passing = not state.watching
        if looked is not None:
            watcher.leave(looked, args, result)
        return result

    return call


def _is_from_there(known: Calls) -> bool:
    """True if the caller of the wrapper is the line that made the other calls."""
    try:
        return known.comes_from(_getframe(2))
    except ValueError:  # a thread that Python has not started may have no such frame
        return False


def _in_front(original: Callable[..., Any], state: CallState, watcher: Watcher) -> Callable[..., Any]:
    """For a function that somebody else put in place of torch's."""
    bind = getattr(original, "__get__", None)

    def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
        run = bind(module) if bind is not None else original
        looked, owned = None, not _is_compiling() and not state.passing and _get_ident() == state.thread
        try:
            if owned:
                state.passing = True
                looked = watcher.enter(module, args, _getframe(1))
            result = run(*args, **kwargs)
        except BaseException as error:
            unframe(error)
            raise
        finally:
            if owned:
                state.passing = not state.watching
        if looked is not None:
            watcher.leave(looked, args, result)
        return result

    return call
