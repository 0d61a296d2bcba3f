"""The user's frames around a call: their lines, and the loops around these."""

from __future__ import annotations

from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, NamedTuple

from torch.optim import Optimizer

from torch_inspector.facts import CallerFact, Place
from torch_inspector.observe import kinds, lines
from torch_inspector.observe.handed_in import handed_in
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.trainers import trainers

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile, Places

# Frames outwards from a call. A trainer library nests some dozens, the user's own code a few.
_FRAMES, _OF_USER = 60, 6
# Files of torch that run modules without gradients as a part of training: batch statistics for averaged weights, and
# a checkpoint, which runs the module again with gradients later.
_MACHINERY = ("torch.optim.swa_utils", "torch.utils.checkpoint")


class _Frame(NamedTuple):
    """What is kept of a frame of the user until somebody asks for the loops around it."""

    file: CodeFile
    place: Place
    line: int
    code: CodeType
    lasti: int


class Callers(NamedTuple):
    """Who made a call."""

    module: str = ""
    """Name of the Python module that made it, or of the part of torch on whose behalf it was made."""
    frames: tuple[_Frame, ...] = ()
    """The user's frames, innermost first."""
    optimizers: frozenset[str] = frozenset()
    """Names in them that hold an optimizer."""
    places: Places | None = None

    def facts(self, *, loops: bool) -> tuple[CallerFact, ...]:
        """Their lines, with the loops around them if these are asked for: that reads the text of the cells."""
        return tuple(CallerFact(frame.place, _loops_around(frame) if loops else ()) for frame in self.frames)

    def same_input(self, *, trained: bool) -> bool:
        """True if a loop around the call gives it the same input each time; batches of one input are looked through.

        Args:
            trained: False if nothing went backward since the first call: then a loop that can train did not.
        """
        files = (*(frame.file for frame in self.frames), *(self.places.latest() if self.places else ()))
        trees = dict.fromkeys(tree for file in files if (tree := file.tree) is not None)
        training = trainers(trees) if trained else None
        settled: frozenset[str] | None = None
        for frame in self.frames:
            tree, spot = frame.file.tree, lines.Spot(frame.line, _columns(frame))
            if tree is not None and lines.repeats_input(tree, spot, self.optimizers, training, settled):
                return True
            if tree is None or not lines.is_looked_through(tree, frame.line):
                return False
            settled = handed_in(tree, spot, settled if frame is not self.frames[0] else frozenset())
        return False


def callers_of(frame: FrameType, places: Places) -> Callers:
    """Walks the frames around a call, from the one that made it outwards."""
    frames: list[_Frame] = []
    module, optimizers = _module_name(frame), frozenset[str]()
    here: FrameType | None = frame
    for _ in range(_FRAMES):
        if here is None or len(frames) >= _OF_USER:
            break
        if _module_name(here) in _MACHINERY:
            module = _module_name(here)
        file = places.file_of(here)
        if file is not None:
            line = here.f_lineno
            optimizers |= _optimizers_of(here)
            frames.append(_Frame(file, places.place(here, line), line, here.f_code, here.f_lasti))
        here = here.f_back
    return Callers(module, tuple(frames), optimizers, places)


def lines_outside(frame: FrameType, places: Places) -> tuple[Place, ...]:
    """The user's lines that led to the one that a frame is in, innermost first."""
    return tuple(one.place for one in callers_of(frame, places).frames[1:])


def _loops_around(frame: _Frame) -> tuple[tuple[int, int], ...]:
    tree, offset = frame.file.tree, frame.file.offset
    around = lines.loops_around(tree, frame.line) if tree is not None else ()
    return tuple((first + offset, last + offset) for first, last in around)


def _module_name(frame: FrameType) -> str:
    name = dict.get(frame.f_globals, "__name__", "")
    return name if type(name) is str else ""


def _columns(frame: _Frame) -> tuple[int, int] | None:
    """Where in its lines the call that a frame was making begins and ends; None before Python 3.11."""
    columns = _columns_of(frame.code)
    first, last = columns[frame.lasti // 2] if frame.lasti // 2 < len(columns) else (None, None)
    return None if first is None or last is None else (first, last)


@lru_cache(maxsize=16)
def _columns_of(code: CodeType) -> tuple[tuple[int | None, int | None], ...]:
    """First and last column of what each instruction stands for; empty before Python 3.11."""
    positions = getattr(code, "co_positions", tuple)
    return tuple((first, last) for _, _, first, last in positions())


def _optimizers_of(frame: FrameType) -> frozenset[str]:
    """Names of a frame, and fields of its `self`, that hold an optimizer and are called like one."""
    code = frame.f_code
    every = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
    names = [one for one in every if lines.OPTIMIZER.search(one)]
    if not names:
        return frozenset()
    with locals_of(frame) as values:
        fields = kinds.fields_of(values.get("self"))
        known = ((one, values.get(one, frame.f_globals.get(one, fields.get(one)))) for one in names)
        return frozenset(one for one, value in known if kinds.is_a(value, Optimizer))
