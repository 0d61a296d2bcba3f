"""What keeps memory alive beside the variables."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place, Shape


class HolderFact(NamedTuple):
    """What something that is no variable of the user keeps alive: an entry of IPython's output history."""

    path: str
    """How to reach it: `Out[12]`."""
    kind: str
    """Name of the class of what is held."""
    nbytes: int
    """Bytes that nothing else reachable holds."""
    shape: Shape | None
    dtype: str
    device: str
    key: int
    graph_nbytes: int = 0
    """Part of `nbytes` that only an autograd graph behind it holds."""
    names: tuple[str, ...] = ()
    """Paths that led to the same memory before, the shortest first."""
    element_nbytes: int = 0
    """Bytes of the elements of a single tensor; less than `nbytes` for a view."""


class LocalFact(NamedTuple):
    """A variable of a function that failed, and what only its frame keeps."""

    path: str
    """What the function calls it: `hidden`, `batch['image']`."""
    function: str
    place: Place
    """The line that the function had come to; empty if it is not the user's own."""
    nbytes: int
    """Bytes that only this frame keeps, those of `graph_nbytes` included."""
    graph_nbytes: int = 0
    """Part of `nbytes` that only the autograd graph behind it holds."""
    shape: Shape | None = None
    """Of a single tensor."""
    device: str = ""


class TracebackFact(NamedTuple):
    """An exception that is kept, and with it the frames of the functions that failed."""

    path: str
    """How to reach it: `sys.last_value` for the one that ended the latest failing cell, `errors[2]`."""
    kind: str
    """Class of the exception."""
    key: int
    """Stands for this exception with this traceback; compare it only while it is kept."""
    cell: int | None
    """The cell whose execution raised it."""
    nbytes: int
    """Bytes of tensors, and of graphs behind them, that only these frames keep."""
    locals: tuple[LocalFact, ...] = ()
    """The variables that hold most of it, the largest first."""
    others: tuple[str, ...] = ()
    """Other paths to the same exception."""


class ElderFact(NamedTuple):
    """A module that a variable named until another one of its class was put in its place, and that is still alive."""

    path: str
    """The variable."""
    kind: str
    nbytes: int
    """Bytes of parameters and buffers that nothing else reachable holds."""
    holder: str
    """Variable that leads to it through what is no container: a closure, a bound method; empty if none does."""
    key: int
    count: int = 1
    """How many there are, where a loop of the cell made one after the other; `nbytes` is the sum."""
    in_loop: bool = False
    attribute: str = ""
    """The attribute of a plain object that is the only way to it, as `evaluation.net`; `holder` is that object."""
    successor: int = 0
    """Key of the module that the variable names now."""
    circular: bool = False
    """True if it is proven that nothing refers to them but a circle of which they are part."""
    registry: str = ""
    """The container of a class, or of the notebook, that leads to it: `Learner.callbacks`."""
    methods: bool = False
    """True if there is nothing in that container but methods of objects such as the one that the variable names."""


class HookFact(NamedTuple):
    """A container of tensors that registered hooks make longer."""

    path: str
    """What the user can type to get it; what the hook calls it if no variable leads there."""
    named: bool
    """True if `path` can be typed."""
    alone: bool
    """True if it is proven that nothing but the hooks leads to it."""
    function: str
    """Name of the hook: `remember`, `<lambda>`, the class of an object."""
    kind: str
    """`forward`, `backward` or `gradient`."""
    layer: str
    """What the first of the hooks is registered on."""
    module: int
    """Key of the model around it."""
    hook_count: int
    entry_count: int
    """Elements that hold memory of their own."""
    nbytes: int
    new_nbytes: int
    """Part of it that was not there when the last cell ended."""
    new_count: int
    old_kept: bool
    """True if all that was there when the last cell ended is still there."""
    has_history: bool
    handle: str = ""
    """What the user can type to get the handle of the hook: `handle`, `tap.handle`."""
    mapping: bool = False
    """True for a dictionary."""
    unread: bool = False
    """True if it does not grow: it has what is left of the last call, and the code of its hook does not read it."""


class DeletionFact(NamedTuple):
    """Something that the cell deleted or set to None, and of which memory is held still."""

    path: str
    line: int
    """Line as typed."""
    kind: str
    """Its class."""
    is_module: bool
    nbytes: int
    """Bytes that it led to."""
    held_nbytes: int
    """Those of them that the holder holds."""
    holder: str
    """The variable."""
    how: str
    """`graph`, `spent graph`, `optimizer`, `schedule`, `function`, `object`, `other`, `alias`, `part`, `view`,
    `shared`, or the registry of the hooks that hold it: `_forward_hooks`, …"""
    holder_kind: str
    """Class of the holder."""
    wants_memory: bool
    """True if the cell collects garbage or empties a cache."""
    alone: bool
    """True if the cell does nothing but let go of things."""
    others: tuple[str, ...] = ()
    """Further variables that lead to what the holder holds; the holder's own if another part of it does."""
    views: tuple[str, ...] = ()
    """If a view holds it: the variables that are views of it."""
    shown_nbytes: int = 0
    """Bytes that copies of all these views, and of those in containers, would take."""


class CircleFact(NamedTuple):
    """Modules or objects of one class that only a circle of references holds, of which they are part."""

    path: str
    """What the user called the first of them; empty if it had no global name."""
    kind: str
    nbytes: int
    """Bytes that they lead to and no variable does."""
    key: int
    """Key of the first of them."""
    count: int = 1
    ring: tuple[str, ...] = ()
    """Attributes through which the first leads back to itself, each with its class; empty if that is not known."""
    made_at: int | None = None
    """The line of the cell that led to them, of objects that no variable has ever named."""
    through: tuple[str, ...] = ()
    """What each attribute of the ring leads through: a `method`, a `function`, a container of `many`; else empty."""
