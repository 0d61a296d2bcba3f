"""The graph behind a loss as a witness of what ran: leaves, patterns, bytes, and what the user calls the loss."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import Place, Shape, WitnessFact
from torch_inspector.observe import lines
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.patterns import find_patterns

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.recorder import Recorder

_NAMES_SEARCHED = 2_000


class Seen(NamedTuple):
    """One look at the graph of a loss."""

    fact: WitnessFact
    root: str
    made_at: Place | None
    shape: Shape
    numbers: frozenset[int]
    """Numbers of the nodes seen, to tell whether a forward call was reached."""


def roots_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that `backward` or `grad` was called on, as far as they have history."""
    given: Any = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
    some = list(given) if type(given) in (tuple, list) else [given]
    return [one for one in some if issubclass(type(one), torch.Tensor) and one.grad_fn is not None]


def look(roots: list[torch.Tensor], reader: GraphReader, recorder: Recorder, frame: FrameType) -> Seen | None:
    """Reads the graph behind a loss; None if that is not safe now."""
    walk = reader.walk([root.grad_fn for root in roots], recorder.budget.deadline())
    if walk is None:
        return None
    user = recorder.places.user_frame(frame)
    named = _names(user, roots[0]) if user is not None else ""
    return Seen(
        fact=WitnessFact(
            node_count=len(walk.nodes),
            complete=walk.complete,
            leaf_keys=frozenset(walk.leaf_keys),
            patterns=find_patterns(walk, lambda shape: _subtracted(recorder, user, shape)),
            saved_nbytes=walk.saved_nbytes(),
        ),
        root=named,
        made_at=_made_at(recorder, user, named),
        shape=tuple(roots[0].shape),
        numbers=frozenset(walk.numbers),
    )


def _names(frame: FrameType, tensor: torch.Tensor) -> str:
    """What the user's code calls this tensor; names that the code itself uses come first."""
    code: CodeType = frame.f_code
    with locals_of(frame) as values:
        for name in (*code.co_varnames, *code.co_names):
            if values.get(name) is tensor:
                return name
    return ""


def _made_at(recorder: Recorder, frame: FrameType | None, name: str) -> Place | None:
    """The line that gave the loss its value, in the function or cell that calls `backward`."""
    file = recorder.places.file_of(frame) if frame is not None else None
    if file is None or file.tree is None or frame is None or not name:
        return None
    return recorder.places.place(frame, lines.assignment_line(file.tree, name, frame.f_lineno))


def _subtracted(recorder: Recorder, frame: FrameType | None, shape: Shape) -> str:
    """A variable of this shape that the function or cell around the call subtracts."""
    file = recorder.places.file_of(frame) if frame is not None else None
    if file is None or file.tree is None or frame is None:
        return ""
    names = lines.subtracted_names(file.tree, frame.f_lineno)
    with locals_of(frame) as values:
        for name in sorted(names):
            value: Any = values.get(name)
            if issubclass(type(value), torch.Tensor) and tuple(value.shape) == shape:
                return name
    return ""
