"""Calls of modules, and of what sets their mode and state."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import LayerCounts, Place, Shape


class BuiltFact(NamedTuple):
    """A layer that is made while a model runs, so that it is another one in each pass."""

    place: Place
    text: str
    """What makes it: `nn.Linear(8, 2)`."""
    function: str
    """Where: `Net.forward`, `predict`."""
    count: int
    """Parameters in the graph of one pass that were not in the one before, and that no optimizer holds."""
    pass_count: int
    """Passes that were compared."""
    name: str = ""
    """The variable that is given it there."""


class CallerFact(NamedTuple):
    """One frame of the user's own code on the way to a call."""

    place: Place
    loops: tuple[tuple[int, int], ...] = ()
    """First and last line of each loop around that line in its function, innermost first.

    Left empty for calls of modules whose layers all sleep.
    """


class DropoutFact(NamedTuple):
    """A call of `F.dropout`, or one of its kind, that does not know the mode, in the code that a module runs."""

    place: Place
    kind: str
    """Class of the layer whose code it is."""
    name: str
    """The function as written: `F.dropout`."""
    text: str
    """The whole call as written."""
    is_layer: bool = False
    """True for a layer `nn.Dropout(…)` that is made in the pass; the text makes it."""
    rate: str = ""
    """Of attention, which cannot be told the mode: the probability as written, `self.p`."""
    told: str = ""
    """Of a call that is told `training=True`: how it reads when it is told the mode."""
    own: str = "self"
    """What the function calls its module."""
    tested: bool = False
    """True if it stands under tests of anything else than the mode."""
    alone: bool = True
    """True if nothing else in the code of the module, as far as it was read, draws random numbers."""


class NormsFact(NamedTuple):
    """The BatchNorm layers of a module at one of its calls."""

    count: int
    kinds: tuple[str, ...]
    """Their classes."""
    frozen_awake: tuple[str, ...] = ()
    """Dotted names of those that go on with their statistics while their own weights need no gradient."""
    frozen_keys: frozenset[int] = frozenset()
    """Parameters of these."""
    learning_asleep: tuple[str, ...] = ()
    """Those in eval mode whose weights need gradients."""
    learning_keys: frozenset[int] = frozenset()
    untracked: tuple[str, ...] = ()
    """Those that keep no statistics and use those of the batch in both modes."""
    others_frozen: int = 0
    """Parameters of other layers that need no gradient."""
    others_trainable: int = 0
    mark: tuple[tuple[float, ...], ...] = ()
    """Changes of the parameters of the first of `frozen_awake` so far, and some of their values."""
    moved: bool = False
    """True if these had changed when the module was called again: it follows another model, or they train in turns."""
    frozen_parts: tuple[tuple[str, int], ...] = ()
    """Dotted names and keys of parts that are frozen as a whole and have all of `frozen_awake`, outermost first."""


class ZeroedRows(NamedTuple):
    """Rows in float16 that a norm has made zero, which they were not."""

    count: int
    total: int
    largest: float
    """The number farthest from zero in what it was given."""


class TeacherFact(NamedTuple):
    """A called module, or a frozen part of it, that is named as a teacher is; layers in it are in train mode."""

    path: str
    """Dotted name in the module; empty for the module itself."""
    awake: LayerCounts
    """Those after the calls that were looked at."""
    mark: tuple[tuple[float, ...], ...] = ()
    """Changes of the first of its parameters so far, and some of their values."""
    moved: bool = False
    """True if these had changed when the module was called again: it follows another model."""


class ForwardFact(NamedTuple):
    """All top-level calls of one module from one line in one mode."""

    order: int
    place: Place
    module: int
    """Key of the module."""
    kind: str
    training: bool
    grad_enabled: bool
    count: int
    awake: LayerCounts
    asleep: LayerCounts
    frozen_asleep: int
    input_shapes: tuple[Shape, ...]
    input_devices: tuple[str, ...]
    input_requires_grad: bool
    """True if a tensor argument wanted a gradient (saliency, adversarial examples)."""
    output_requires_grad: bool
    output_shape: Shape | None
    graph_nbytes: int
    """Activations that the graph of one output held when the call returned; 0 if none was looked at."""
    reached: bool | None
    """True if a backward call reached an output, None if that is not known."""
    same_input: bool
    """True if several calls were given the very same tensor."""
    caller: str
    """Dotted name of the Python module whose code made the call."""
    trained: bool
    """True if the module had been trained or loaded when it was called."""
    last_order: int = 0
    """Position of the latest of the calls that was looked at."""
    parameter_keys: frozenset[int] = frozenset()
    name: str = ""
    """What the code that made the call calls the module: `net`, `self.encoder`; empty if that is not known."""
    callers: tuple[CallerFact, ...] = ()
    """The user's frames around the first call, innermost first."""
    followed: bool = True
    """True if `backward()` or `grad()` was called, on whatever, after the latest call that was looked at."""
    hooked: bool = False
    """True if one of its layers has hooks."""
    trainable_count: int = 0
    """Parameters that wanted a gradient when it was first called."""
    dropouts: tuple[DropoutFact, ...] = ()
    """Calls of `F.dropout` in its code that are not told the mode; looked for in eval mode and without gradients."""
    drew: bool | None = None
    """True if random numbers were drawn during the first call; None if that was not looked at."""
    norms: NormsFact | None = None
    """Its BatchNorm layers; None if it has none."""
    by_name: bool = False
    """True for `model.forward(x)`, of which only the layers are seen: the count is that of the first one."""
    recut: tuple[Shape, ...] = ()
    """Sizes before and after, of an argument that a view has brought from its own sizes into another order."""
    teachers: tuple[TeacherFact, ...] = ()
    """What in it is named as a teacher is, in train mode."""
    zeroed: ZeroedRows | None = None
    """What it has made zero of finite numbers, if it is a norm of the user's in float16."""
    awake_parts: tuple[str, ...] = ()
    """Where some layers sleep: dotted names of the largest parts in which none does and some layer is awake."""
    copy_of: int = 0
    """Key of the trained model that the module is a copy of, if it counts as trained for that only."""

    @property
    def way(self) -> tuple[Place, ...]:
        """The line of the call and the user's lines around it, innermost first."""
        return (self.place, *(caller.place for caller in self.callers))

    @property
    def only_norms(self) -> bool:
        """True if no other layers than those that normalise are awake."""
        return all("Norm" in kind for kind, _ in self.awake)


class ModeFact(NamedTuple):
    """One call of `train()` or `eval()` by the user on one module."""

    order: int
    place: Place
    module: int
    training: bool
    callers: tuple[Place, ...] = ()
    """Of an `eval()`: the user's lines that led to it, innermost first, without its own."""
    at_s: float = 0.0
    """Seconds since the cell began."""


class LoadFact(NamedTuple):
    """One call of `load_state_dict()` of a module."""

    order: int
    place: Place
    module: int
    kind: str
    name: str
    """What the code there calls the module; empty if it has no name."""
    state: str
    """The same for the state dict."""
    strict: bool
    state_count: int
    """Keys in the state dict."""
    missing: tuple[str, ...]
    """Keys of the module that the state dict lacks."""
    unexpected: tuple[str, ...]
    """Keys that the module does not know."""
    used: bool
    """True if the code does something with what the call returns."""
    itself: bool = False
    """True if the tensors given are the module's own, and optimizer steps had changed them since they were taken."""
    own_count: int = 0
    """Keys whose tensors are the module's own, unchanged: for these nothing was loaded."""
    of_optimizer: bool = False
    """True for the state of an optimizer; `module` is its key then."""
    given: str = ""
    """What was given as written, of whatever kind, where keys are missing; empty for more than a line."""
    given_keys: tuple[tuple[str, Shape], ...] = ()
    """What the state dict holds, with shapes; as the next, only where keys are missing."""
    own_keys: tuple[tuple[str, Shape], ...] = ()
    """What the module would save."""
    entries: tuple[str, ...] = ()
    """Keys of the state dict under which states have all these keys, of their shapes: a whole checkpoint was given."""
    entries_in_part: bool = False
    """True if those have only half of them or more: some layers are new."""
