"""The graph behind a loss as a witness of what ran: leaves, patterns, bytes, and what the user calls the loss."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import PatternFact, Place, Shape, TableFact, WitnessFact
from torch_inspector.observe import as_torch, lines, private
from torch_inspector.observe.carried import carried
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.origins import edges
from torch_inspector.observe.other_side import Reader
from torch_inspector.observe.patterns import find_patterns
from torch_inspector.observe.precision import precision_of
from torch_inspector.observe.tables import find_tables
from torch_inspector.observe.traps import steep
from torch_inspector.observe.unheld import Mark, bare_marks, marks_of

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader, Walk
    from torch_inspector.observe.recorder import Recorder


_NOTHING: frozenset[int] = frozenset()


class Seen(NamedTuple):
    """One look at the graph of a loss."""

    fact: WitnessFact
    root: str
    made_at: Place | None
    shape: Shape
    numbers: frozenset[int]
    """Numbers of the nodes seen, to tell whether a forward call was reached."""
    uses: dict[int, int]
    """Number of the newest operation on each leaf, by key."""
    unheld: dict[int, Mark]
    """Parameters that no optimizer holds, and what tells whether they change."""
    bare: dict[int, Mark]
    """The same of plain tensors that are used as weights."""
    number: int = -1
    """Number of the node behind the loss."""


def roots_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that `backward` or `grad` was called on, as far as they have history."""
    given: Any = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
    some = list(given) if is_one_of(given, (tuple, list)) else [given]
    return [one for one in some if issubclass(type(one), torch.Tensor) and as_torch.grad_fn(one) is not None]


def look(
    roots: list[torch.Tensor],
    reader: GraphReader,
    recorder: Recorder,
    frame: FrameType,
    held: frozenset[int] = _NOTHING,
) -> Seen | None:
    """Reads the graph behind a loss; None if that is not safe now. `held` are the parameters that optimizers hold."""
    walk = reader.walk([as_torch.grad_fn(root) for root in roots], recorder.budget.deadline())
    if walk is None:
        return None
    user = recorder.places.user_frame(frame)
    precision = precision_of(as_torch.grad_fn(roots[0]), walk)
    patterns, tables = _found_in(walk, roots[0], recorder, frame, user)
    named, made_at = name_of(roots[0], recorder, frame)
    return Seen(
        fact=WitnessFact(
            node_count=len(walk.nodes),
            complete=walk.complete,
            leaf_keys=frozenset(walk.leaf_keys),
            patterns=patterns,
            saved_nbytes=walk.saved_nbytes(),
            tables=tables,
            leaf_nbytes=walk.leaf_nbytes,
            edges=edges(walk),
            steep=steep(walk),
            carried_count=carried(walk, held, recorder.leaf_values),
            half_nbytes=walk.half_nbytes(),
            **precision._asdict(),
        ),
        root=named,
        made_at=made_at,
        shape=tuple(as_torch.shape(roots[0])),
        numbers=frozenset(walk.numbers),
        uses=walk.uses(),
        unheld=marks_of(walk, held) if held else {},
        bare=bare_marks(walk, held) if held else {},
        number=private.node_number(as_torch.grad_fn(roots[0])),
    )


def _found_in(
    walk: Walk, root: torch.Tensor, recorder: Recorder, frame: FrameType, user: FrameType | None
) -> tuple[tuple[PatternFact, ...], tuple[TableFact, ...]]:
    """Patterns and tables; not looked for again in a graph like one from the same line in which there were none."""
    line = id(frame.f_code), frame.f_lasti
    like = (tuple(as_torch.shape(root)), walk.saved_nbytes(), *(id(type(node)) for node in walk.nodes.values()))
    if recorder.plain_graphs.get(line) == like:
        return (), ()
    code = Reader(recorder.places, user)
    patterns = find_patterns(walk, code.other_side, code.name_of, code.factor, roots=[root])
    tables = find_tables(walk, Consumers(walk))
    if not patterns and not tables:
        recorder.plain_graphs[line] = like
    return patterns, tables


def name_of(root: torch.Tensor, recorder: Recorder, frame: FrameType) -> tuple[str, Place | None]:
    """What the user's code calls a loss, and the line there that gave it its value."""
    user = recorder.places.user_frame(frame)
    named = _names(user, root) if user is not None else ""
    return named, _made_at(recorder, user, named)


def _names(frame: FrameType, tensor: torch.Tensor) -> str:
    """What the user's code calls this tensor; names that the code itself uses come first."""
    code: CodeType = frame.f_code
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
    with locals_of(frame) as values:
        known = [(name, values[name]) for name in names if name in values]
        found = (name for name, value in known if value is tensor)
        owners = ((owner, fields_of(value)) for owner, value in known if not is_a(value, torch.Tensor))
        inside = (f"{owner}.{name}" for owner, fields in owners if fields for name in _held(code, fields, tensor))
        return next(found, None) or next(inside, "")


def _held(code: CodeType, fields: dict[str, Any], tensor: torch.Tensor) -> Iterator[str]:
    return (name for name in code.co_names if fields.get(name) is tensor)


def _made_at(recorder: Recorder, frame: FrameType | None, name: str) -> Place | None:
    """The line that gave the loss its value, in the function or cell that calls `backward`; None if it is not there."""
    file = recorder.places.file_of(frame) if frame is not None else None
    if file is None or file.tree is None or frame is None or not name:
        return None
    line = lines.assignment_line(file.tree, name, frame.f_lineno)
    return recorder.places.place(frame, line) if line is not None else None
