"""The exception that ended a cell."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from torch_inspector.facts.graphs import CutFact
from torch_inspector.facts.place import Place, Shape


class OperandFact(NamedTuple):
    """Something that the failing line named, moved as the line moves it."""

    path: str
    kind: str
    """`tensor` or the class of a module."""
    devices: tuple[str, ...]
    shape: Shape | None
    dtype: str
    nested: bool = False
    """True if it went into a part of the line that had its result before the failure."""
    parts: tuple[tuple[str, str], ...] = ()
    """Of a module whose parts must be told apart: the first parameter or buffer on each device, and the device."""
    weight_dtype: str = ""
    """Of a module whose floating point parameters all have one type: that type."""
    requires_grad: bool = False
    is_leaf: bool = False
    inference: bool = False
    """True for a tensor that was made under `inference_mode()`."""
    known_as: str = ""
    """What the code that made the call calls the same object: `features` for the `x` of a function."""
    made_at: Place | None = None
    """The line that gave the variable its value, in the same function or cell."""
    buffer_dtypes: tuple[tuple[str, str], ...] = ()
    """Of a module without parameters, such as a loss: its floating point buffers and their types."""


class ForeignFact(NamedTuple):
    """An argument of the failing call that is no tensor where torch wanted one."""

    text: str
    """As written: `x`, `x[:8]`."""
    kind: str
    """`array`, `list`, `tuple`, or `table` of pandas."""
    dtype: str = ""
    """Of an array."""
    axes: int = 0
    inside: str = ""
    """What a list or tuple has in it: `numbers`, `arrays`, `tensors`, `tensors of one shape`; empty for others."""
    count: int = 0
    """How many."""
    known_as: str = ""
    """What the code that made the call calls the same object."""


class LayerFact(NamedTuple):
    """A layer that was running when an exception was raised."""

    root: str
    """What the code calls the module whose call failed; empty if it has no name there."""
    root_kind: str
    path: str
    """Dotted name of the layer in that module; empty for the module itself."""
    kind: str
    training: bool
    tracks: bool
    """False for a normalisation that keeps no running statistics."""
    family: str = ""
    """The class of torch that it is or inherits from: `Linear`."""
    settings: tuple[tuple[str, str], ...] = ()
    """What its constructor was given, as text, without what is usual: `("in_features", "400")`."""
    owner: str = ""
    """The class of the notebook that holds it as an attribute; empty for a container of torch or a library's class."""
    got: Shape | None = None
    """Shape of the input that its `forward` was given."""
    extremes: tuple[int, int] | None = None
    """Smallest and largest number in that input, if a table of embeddings on the CPU refused it."""
    maker: str = ""
    """What is given these settings to build one: `nn.Linear`, or a class of the user's that inherits the constructor.

    Empty for a class that has a constructor of its own.
    """


class ShortageFact(NamedTuple):
    """An allocation that failed, with the numbers that the allocator gave; None where it gave none."""

    device: str
    """`cpu`, `cuda:0`, `mps:0`."""
    asked_nbytes: int
    total_nbytes: int | None = None
    free_nbytes: int | None = None
    in_use_nbytes: int | None = None
    """What this process has taken."""
    allocated_nbytes: int | None = None
    """What torch has handed out to tensors."""
    unallocated_nbytes: int | None = None
    """What torch has taken from the device and not handed out."""
    place: Place = Place()
    """Innermost line of the user's own code."""
    operation: str = ""
    """The expression in that line, or the function of torch that it led to."""


class NamedFact(NamedTuple):
    """A variable that has to do with an error of autograd."""

    path: str
    kind: str = "tensor"
    """`tensor`, or the class of the container that holds the tensors: `tuple`, `list`."""
    shape: Shape | None = None
    made_at: Place | None = None
    """The line that gives it its value."""
    cached: str = ""
    """The statement that computes it from parameters once and for all, if there is one."""
    detached: str = ""
    """Of a container: the statement that takes its tensors out of the graph, where one can be said."""
    added_to: str = ""
    """The list that holds it, where newer tensors of the same graph are in that as well."""


class OutsideFact(NamedTuple):
    """The prediction that a loss of probabilities refused."""

    low: float
    """The smallest number in it; NaN is left out."""
    high: float
    nan_count: int
    count: int
    """Elements in all."""


class StaleStateFact(NamedTuple):
    """What an optimizer had taken down for a weight before the weight was given another type or another place."""

    path: str
    """What the code calls the optimizer; empty if it has no name there."""
    kind: str
    state: str
    """Its name among the states: `exp_avg`."""
    state_dtype: str
    dtype: str
    """Of the weight now."""
    state_device: str
    device: str


class ChangeFact(NamedTuple):
    """A statement that changes a tensor in place."""

    path: str
    """What is changed: `h`, `self.cache`."""
    place: Place
    text: str
    """The statement."""
    remedy: str = ""
    """The same without a change in place; empty where that cannot be said from its text."""
    sure: bool = False
    """True if the variable was found to be the tensor that autograd complained of."""


class RefusalFact(NamedTuple):
    """What is behind an error that autograd raised in `backward()` or `grad()`."""

    root: str = ""
    """Name of the tensor that was differentiated, or the expression that gave it."""
    named: bool = False
    """True if `root` is a variable."""
    known_as: str = ""
    """Another name for it, in the code that called the function."""
    shape: Shape | None = None
    number: int = -1
    """Number of the node behind it."""
    made_at: Place | None = None
    is_old: bool = False
    """True if it was made before an earlier backward call."""
    carried: tuple[NamedFact, ...] = ()
    """Variables that take the graph of one step to the next."""
    olds: tuple[NamedFact, ...] = ()
    """Variables from before an earlier backward call whose graph is part of this one, the newest first."""
    changes: tuple[ChangeFact, ...] = ()
    """Statements that may have changed what backward needs, the likeliest first."""
    recorded: tuple[str, ...] = ()
    """Names at that line of tensors that require grad, or of containers with one, where the root has no history."""
    frozen: tuple[str, ...] = ()
    """Names of plain tensors that an optimizer holds and that want no gradient, where the root has no history."""
    in_loop: bool = False

    def states(self) -> list[NamedFact]:
        """Carried variables that are a state: a single number that is carried is a sum of losses."""
        return [one for one in self.carried if one.shape is not None and prod(one.shape) != 1 and one.path != self.root]


class FrozenFact(NamedTuple):
    """A module of which an optimizer was to be given what wants a gradient, and nothing of it does."""

    path: str
    """As the failing code calls it."""
    count: int
    """Its parameters."""


@dataclass(frozen=True)
class ErrorFact:
    """The exception that ended the cell."""

    kind: str
    message: str
    place: Place
    """Innermost line of the user's own code."""
    operands: tuple[OperandFact, ...] = ()
    interrupted: bool = False
    device_names: tuple[tuple[str, str], ...] = ()
    """Variables at that line which hold a device: `("device", "cuda:0")`."""
    shortage: ShortageFact | None = None
    """The allocation that failed, if the exception, or one that it was raised from, says so."""
    cuts: tuple[CutFact, ...] = ()
    """Where the text loses the history, if the cell failed because a loss has none."""
    constants: tuple[CutFact, ...] = ()
    """Calls of `grad` without `create_graph` in that case, mended, whose result was differentiated again."""
    root: str = ""
    """The loss in that case, as written."""
    statement: str = ""
    """The statement at `place` on one line; empty if it is long or compound."""
    expression: str = ""
    """The expression in it that failed, where that is known."""
    caller: str = ""
    """The expression that called the function which holds `place`; empty at the top level."""
    way: tuple[Place, ...] = ()
    """The user's lines that led to `place`, the innermost first."""
    refusal: RefusalFact | None = None
    """What is behind it, if autograd raised it in `backward()` or `grad()`."""
    layer: LayerFact | None = None
    """The layer that refused a batch with one value per channel."""
    leafless: NamedFact | None = None
    """The computed tensor that was refused, where only a leaf is taken; without a path if no name leads to it."""
    outside: OutsideFact | None = None
    """What a binary loss was given, if that is what it refused."""
    foreign: tuple[ForeignFact, ...] = ()
    """Arguments that are no tensors, if that is what torch complained of."""
    stale_state: StaleStateFact | None = None
    """What an optimizer remembers from before, if its step was refused and that does not go with its weights."""
    frozen: FrozenFact | None = None
    """The model whose parameters a filter has left out, if an optimizer was given none."""
