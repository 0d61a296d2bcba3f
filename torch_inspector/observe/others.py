"""Whether other threads may be training: then no graph and no gradient is read.

A backward pass lets go of the interpreter's lock, and frees what graphs have saved and writes gradients meanwhile.
Reading either at that moment crashes the process. Asking whether one runs now is not enough: threads take turns every
few milliseconds, also between the question and the reading. So it is asked who could begin one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import torch

_TORCH = str(Path(torch.__file__).parent) + os.sep
# Threads of torch that live on beside the user's: they fetch batches, or wait for the compiler's processes.
_HELPERS = tuple(str(Path(_TORCH, *parts)) + os.sep for parts in (("utils", "data"), ("_inductor",)))
_OURS = str(Path(__file__).parents[1]) + os.sep
_STANDARD = str(Path(os.__file__).parent) + os.sep
_INSTALLED = ("site-packages", "dist-packages")
# Whose threads every kernel has, wherever it is installed.
_KERNEL = ("ipykernel", "IPython", "tornado", "zmq", "jupyter_client", "anyio")
# Functions of `threading` in which a thread waits, with an argument `timeout`.
_WAITING = ("wait", "join", "_wait_for_tstate_lock")
# Threads of these do what they are given next.
_POOLS = tuple(str(Path(_STANDARD, name)) + os.sep for name in ("concurrent", "multiprocessing"))
# Long enough for a thread that has just been woken up to go on.
_MOMENT_S = 0.001

# Kinds of code, as bits.
_PYTHON, _POOL, _LIBRARY, _STRANGER, _HELPER, _TRAINER = 0, 1, 2, 4, 8, 16


def may_train() -> bool:
    """True if another thread runs code of torch, or of the user and does not wait for others."""
    return any(map(_may_be_trained_by, _innermost_frames()))


def let_them_begin() -> None:
    """Gives threads a moment that the cell may have woken up with its last lines: they show what they do then."""
    if any(map(_may_have_been_woken, _innermost_frames())):
        time.sleep(_MOMENT_S)


def _innermost_frames() -> Iterator[FrameType]:
    """Where the other threads are."""
    frames = sys._current_frames()
    # Our own frame must not end up in a variable of its own: that cycle would keep the user's tensors alive.
    frames.pop(threading.get_ident(), None)
    while frames:
        yield frames.popitem()[1]


def _may_be_trained_by(innermost: FrameType) -> bool:
    """True if a thread may be in a backward pass now, or soon."""
    kinds, owner = _kinds_in(innermost)
    if owner == _HELPER:
        return False
    # Who waits for a batch goes on by itself; who waits for anything else would have to be woken by a third.
    return kinds & (_HELPER | _TRAINER) != 0 or (kinds & _STRANGER != 0 and not _waits(innermost))


def _may_have_been_woken(innermost: FrameType) -> bool:
    kinds, _ = _kinds_in(innermost)
    return kinds & _POOL != 0 or (kinds & _STRANGER != 0 and _waits(innermost))


def _waits(innermost: FrameType) -> bool:
    """True if a thread waits until somebody wakes it up; the clock may do that at any moment."""
    code = innermost.f_code
    if code.co_name not in _WAITING or code.co_filename != threading.__file__:
        return False
    timeout = innermost.f_locals.get("timeout")
    return timeout is None or (type(timeout) is int and timeout < 0)


def _kinds_in(innermost: FrameType) -> tuple[int, int]:
    """All kinds of code that a thread is in, and which of them it was started for."""
    kinds, owner, here = 0, _PYTHON, innermost
    while True:
        kind = _kind_of(here.f_code.co_filename)
        kinds |= kind
        owner = kind if kind > _POOL else owner
        if here.f_back is None:
            return kinds, owner
        here = here.f_back


@cache
def _kind_of(filename: str) -> int:
    """What the code of a file can do: a backward pass begins in torch, and torch is called by the user's code."""
    if filename.startswith(_TORCH):
        return _HELPER if filename.startswith(_HELPERS) else _TRAINER
    if filename.startswith(_POOLS):
        return _POOL
    if filename.startswith(_OURS) or any(part in filename for part in _INSTALLED):
        return _LIBRARY
    if filename.startswith((_STANDARD, "<frozen ")):
        return _PYTHON
    return _LIBRARY if filename.startswith(_kernel_folders()) else _STRANGER


@cache
def _kernel_folders() -> tuple[str, ...]:
    files = [vars(sys.modules[name]).get("__file__") for name in _KERNEL if name in sys.modules]
    return tuple(str(Path(file).parent) + os.sep for file in files if type(file) is str)
