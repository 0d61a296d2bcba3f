"""What was seen, as frozen plain values: the language between observers, pitfalls and views.

No tensor, module or optimizer is ever inside a fact, so a `Run` can be kept, compared and drawn again later.
Kinds of facts that are made in large numbers are `NamedTuple`s, the others frozen dataclasses.

A *key* is an integer that stands for one live object. Keys of modules and optimizers are never reused; keys of
parameters are addresses and may only be compared between facts that were taken while both objects were alive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_inspector.account import MemoryReport
    from torch_inspector.findings import Finding

Shape = tuple[int, ...]
LayerCounts = tuple[tuple[str, int], ...]
"""Kinds of layers and how many of each: `(("Dropout", 2), ("BatchNorm1d", 1))`."""


class Place(NamedTuple):
    """A line of the user's own code."""

    cell: int | None = None
    """Number of the cell which holds the line; None outside notebooks."""
    line: int | None = None
    """Line as typed in that cell or file, from 1; None where it is not known."""
    function: str = ""
    """Function which holds the line; empty at the top level of a cell."""


@dataclass(frozen=True)
class Cell:
    """One execution, as far as it is known when it starts."""

    number: int | None
    """Execution count; None outside notebooks."""
    id: str | None
    """The front end's id of the cell, where it sends one."""
    source: str
    """The text as typed."""
    code: str
    """The Python that runs: magics replaced, leading blank lines gone."""
    line_offset: int = 0
    """What to add to a line of `code` to get the line of `source`."""
    body_offset: int = 0
    """The same for code that a cell magic such as `%%time` runs on its own."""
    wants_report: bool = False
    """True if the cell asked for the full report (`%%torchcheck`)."""


class TensorFact(NamedTuple):
    """One tensor that the user can name."""

    path: str
    """What the user can type to get it: `history['loss'][3]`."""
    shape: Shape
    dtype: str
    device: str
    nbytes: int
    storage_nbytes: int
    """Bytes of the whole storage behind it; larger than `nbytes` for a view."""
    requires_grad: bool
    is_leaf: bool
    made_by: str
    """Name of the autograd node which made it; empty for leaves."""
    key: int
    first_seen_cell: int | None = None


class PinFact(NamedTuple):
    """A storage that only small views of it keep alive."""

    paths: tuple[str, ...]
    """The views."""
    nbytes: int
    """Bytes that they show together."""
    storage_nbytes: int
    device: str
    key: int
    """Identity of the storage."""
    made_at: Place | None = None
    """The line of the cell that made the first of them."""


@dataclass(frozen=True)
class ModuleFact:
    """One `nn.Module`."""

    key: int
    path: str
    """What the user can type to get it; empty if no variable leads there."""
    kind: str
    """Name of its class."""
    training: bool
    awake: LayerCounts = ()
    """Layers below it whose behaviour depends on the mode, and which are in train mode."""
    asleep: LayerCounts = ()
    """The same in eval mode."""
    frozen_asleep: int = 0
    """How many of `asleep` belong to a part of the module whose parameters all need no gradient."""
    devices: tuple[str, ...] = ()
    parameter_count: int = 0
    """Numbers in all its parameters, not parameter tensors."""
    trainable_count: int = 0
    parameter_nbytes: int = 0
    parameter_keys: frozenset[int] = frozenset()
    parameter_names: tuple[tuple[int, str], ...] = ()
    """Key and dotted name of each parameter: `(140…, "head.weight")`."""
    softmax_layers: tuple[str, ...] = ()
    """Paths of `nn.Softmax` layers inside it, in order: `model.out`, `net[3]`."""
    trained: bool = False
    """True if an optimizer step has changed its parameters, or a state dict was loaded into it, in this session."""
    squashing_layers: tuple[tuple[str, str, int | None], ...] = ()
    """Paths of `Softmax`, `Softmax2d`, `LogSoftmax` and `Sigmoid` layers, what they are, and `dim` if it was given."""
    frozen_keys: frozenset[int] = frozenset()
    """Parameters that need no gradient."""


@dataclass(frozen=True)
class OptimizerFact:
    """One `torch.optim.Optimizer`."""

    key: int
    path: str
    kind: str
    learning_rate: float | None
    parameter_keys: frozenset[int]
    parameter_count: int
    """Parameter tensors it holds."""
    state_nbytes: int = 0
    state_devices: tuple[str, ...] = ()
    parameter_devices: tuple[str, ...] = ()
    gradient_nbytes: int = 0
    """Bytes of gradients that its parameters have; as the state, not looked at after a cell that trains."""


class GraphFact(NamedTuple):
    """The autograd history that one variable, or all tensors of one container, keeps alive."""

    path: str
    """The variable or the container: `running_loss`, `history['loss']`."""
    tensor_count: int
    """Tensors with history at that path."""
    node_count: int
    saved_nbytes: int
    """Activations kept for a backward pass, parameters left out, each storage once."""
    scalar: bool
    """True if every one of the tensors holds a single number."""
    spent: bool
    """True if backward has already freed what the nodes had saved."""
    sum_length: int
    """Links of the chain of additions (`total += loss`) that ends in the tensor; 0 if it is none."""
    differentiated: bool
    """True if what was collected or added is a loss that `backward()` was called on."""
    complete: bool
    """False if the walk stopped at a limit: counts are then "at least"."""
    container: bool
    """True for tensors collected in a list, dict, deque, set or tuple."""
    newest_nodes: int
    """How many of the tensors were made while this cell ran."""
    key: int
    """Number of the newest node, for comparison with the snapshot before."""
    grown_at: Place | None = None
    """The line that collects or adds."""
    nbytes: int = 0
    """Bytes of the tensors themselves, each storage once."""
    step_count: int = 1
    """Stretches between backward calls in which its nodes were made: 16 for the losses of 16 training steps."""
    pass_count: int = 0
    """Parts of the history that share no node, such as forward passes of several batches; 0 if not looked at."""
    derived_from: str = ""
    """Path of a collection or total that is part of this history."""
    grown_by: str = ""
    """What that line does: `append`, `hook`, `item`, `named`, `comprehension`, `joined`, `sum`, `carried`, `display`,
    `assigned`; empty if no line was found."""
    nested: bool = False
    """True if the tensors sit in elements of the container: `log[3]['loss']`."""
    remedy: str = ""
    """That line, changed so that no history is kept; empty where that cannot be said from its text."""
    patterns: tuple[PatternFact, ...] = ()
    """What was found in a graph that was made in this cell."""
    made_at: Place | None = None
    """The line that gave the variable its value, where something was found."""


class AttributeFact(NamedTuple):
    """A tensor that a module holds as a plain attribute, set in `__init__` and read by another method."""

    path: str
    """What the user can type: `warp.grid`, `net.body.scale`."""
    owner: str
    """The variable that names the module around it."""
    kind: str
    """Class whose attribute it is."""
    name: str
    shape: Shape
    dtype: str
    device: str
    owner_devices: tuple[str, ...]
    """Devices of the parameters of the whole module."""
    wants_gradient: bool
    """True for a leaf that requires grad: it was meant to be learned."""
    stepped: bool
    """True if an optimizer holds it."""
    owner_stepped: bool
    """True if an optimizer holds parameters of the module."""
    moved: bool
    """True if the code of the class may move it."""
    place: Place = Place()
    """The line that sets it."""


class DiscardFact(NamedTuple):
    """A statement such as `x.to(device)` whose result is thrown away."""

    place: Place
    path: str
    """What it was called on, as written: `batch`, `batch['image']`."""
    text: str
    wanted: str
    """Device or type of numbers that was asked for: `cuda:0`, `float32`; empty if not known."""
    device: str
    """Of the tensor after the cell; empty if it is not known to be one."""
    dtype: str
    is_tensor: bool
    fed: bool = False
    """True if the function around it uses the name as one uses a tensor."""
    shown: bool = False
    """True for the last statement of the cell, which the notebook displays."""


class AliasFact(NamedTuple):
    """State dicts at one path whose tensors are those of a model that is alive."""

    path: str
    """The variable, or the container without the index: `best`, `snapshots`, `checkpoint['model']`."""
    module: str
    """What the user calls the model; empty if it has no name."""
    kind: str
    key: int
    """Key of the module."""
    place: Place
    """The line that called `state_dict()`."""
    count: int
    """State dicts of this model there."""
    moved: bool
    """True if optimizer steps have changed the model since."""
    conditional: bool = False
    """True if that line stands under an `if`."""


class HookCountFact(NamedTuple):
    """A hook that a layer has more than once."""

    path: str
    """The layer: `model.body.0`."""
    owner: str
    """The variable that names the module around it."""
    kind: str
    """`forward_hooks`, `forward_pre_hooks`, …"""
    name: str
    """The function's own name."""
    count: int
    same: bool
    """True if it is one and the same function each time."""


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
    """Variable that holds the handle of the hook."""


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
    """`graph`, `spent graph`, `optimizer`, `schedule`, `function`, `object`, `other`, `alias`, `part`, `view` or
    `shared`."""
    holder_kind: str
    """Class of the holder."""
    wants_memory: bool
    """True if the cell collects garbage or empties a cache."""
    alone: bool
    """True if the cell does nothing but let go of things."""


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


class MemoryFact(NamedTuple):
    """Memory of one device or of the host process."""

    device: str
    """`host`, `cuda:0`, `mps:0`, …"""
    allocated_nbytes: int
    """In use: resident set of the process, or what torch has handed out on the device."""
    reserved_nbytes: int | None = None
    """Taken from the device by torch's allocator."""
    peak_nbytes: int | None = None
    """Highest `allocated_nbytes` so far, as the process or torch counts it."""
    free_nbytes: int | None = None
    total_nbytes: int | None = None


class PatternFact(NamedTuple):
    """A shape in an autograd graph which a pitfall is interested in."""

    name: str
    """`softmax-before-log-softmax` or `stretched-operands`."""
    nodes: tuple[str, ...]
    """Names of the nodes from the loss side on."""
    shapes: tuple[Shape, ...] = ()
    """Shapes that belong to it: result first, then operands, unknown ones left out."""
    operands: tuple[str, ...] = ()
    """Variables which are these operands, where the user's code names them."""
    rivals: int = 0
    """Softmax nodes in the same graph, the one that was found included; 0 if the graph was not seen whole."""
    nbytes: int = 0
    """Bytes of the first of `shapes`, where they matter."""


class TableFact(NamedTuple):
    """A large leaf of a graph that was used only by looking up rows or picking elements, with a dense gradient."""

    key: int
    shape: Shape
    nbytes: int
    """Bytes of the leaf, and so of its gradient."""
    element_count: int
    used_count: int
    """Elements that can have been used, at most."""
    nodes: tuple[str, ...]
    """Kinds of the operations that used it: `EmbeddingBackward0`, `IndexBackward0`."""


class WitnessFact(NamedTuple):
    """What the graph behind one backward call says."""

    node_count: int
    complete: bool
    leaf_keys: frozenset[int]
    patterns: tuple[PatternFact, ...]
    saved_nbytes: int
    tables: tuple[TableFact, ...] = ()
    leaf_nbytes: int = 0
    """Bytes of the leaves, each storage once."""
    half_nbytes: int = 0
    """Part of `saved_nbytes` in 16-bit numbers, which autocast makes; 0 if a leaf that is used has such numbers too."""
    float16_count: int = 0
    """Operations whose result is in float16, of those that were looked at."""
    float16_leaf_count: int = 0
    """Leaves in float16."""
    top: tuple[str, ...] = ()
    """Names of the first operations from the loss side on, as long as each has one operand and a single number."""
    mean_reduced: bool | None = None
    """True if the operation below these scalings is a loss that averages; None if it is not known to be one or not."""
    mean_shape: Shape = ()
    """Shape of what it averages; empty if it does not, or that is not known."""


class BackwardFact(NamedTuple):
    """One call of `backward()` or `torch.autograd.grad()` that was looked at in full."""

    order: int
    """Position among all facts of the cell."""
    place: Place
    index: int
    """How often this line has called it, this call included."""
    root: str
    """Name of the loss in the user's code; empty if it has none."""
    made_at: Place
    """Where the loss was assigned; the place of the call if that is not known."""
    shape: Shape
    retain_graph: bool
    is_grad_call: bool
    witness: WitnessFact | None
    autocast: str = ""
    """Type of the numbers of the autocast block that the call was made in: `bfloat16`; empty outside of one."""
    device: str = ""
    """Kind of device of the loss: `cpu`, `cuda`."""
    stale: tuple[int, ...] = ()
    """Keys of optimizers whose parameters it reaches and which have stepped since the loss was computed."""
    from_leaf: bool = False
    """True if the tensor has no history at all, so that the call fills its own gradient and nothing else."""
    number: int = -1
    """Number of the node behind the loss: equal only for calls on the same graph; -1 if unknown."""


class StepFact(NamedTuple):
    """One optimizer step that was looked at in full."""

    order: int
    place: Place
    index: int
    """How many steps this optimizer has made in this cell, this one included."""
    optimizer: int
    """Key of the optimizer."""
    optimizer_kind: str
    has_closure: bool
    backward_count: int
    """Backward calls since this optimizer's last step that changed one of its gradients."""
    kept_gradients: bool
    """True if the gradient of the last step was still there when the first of them began."""
    empty_gradients: bool
    """True if no parameter has a gradient now."""
    parameter_count: int
    cleared_at: Place | None
    """Where gradients were cleared after the last backward call; None if they were not."""
    discarded_count: int
    """Backward calls since the last step whose gradients were cleared before anything used them."""
    discarded_at: Place | None
    """Where such a clearing happened."""
    unreached: bool
    """True if backward calls since the last step reached other parameters only (and were seen whole)."""
    parameter_keys: frozenset[int]
    leaf_keys: frozenset[int]
    """Parameters which the backward calls since the last step reached."""
    backward_at: Place | None
    """Line of the last backward call before the step."""
    name: str = ""
    """What the code that calls `step()` calls the optimizer; empty if it has no name there."""
    idle: bool = False
    """True if no parameter had a gradient and no weight was written: the step did nothing."""
    frozen_count: int = 0
    """Parameters of the optimizer that want no gradient."""
    unmoved: bool = False
    """True if there were gradients, and yet the values that were compared are the same after the step, bit for bit."""
    maximizes: bool = False
    """True if a group of the optimizer is told to go uphill."""
    rate_is_zero: bool = False
    """True if the learning rate of every group is 0."""
    gradients_are_zero: bool = False
    """True if every gradient is 0 in all its numbers; looked at where a step has not moved what was compared."""


class UnlistedFact(NamedTuple):
    """Layers that a module keeps in a plain container, so that it does not know of their parameters."""

    module: str
    """Path of the module that keeps them: `net`, `net.decoder`."""
    kind: str
    """Class of that module."""
    attribute: str
    container: str
    """`list`, `tuple`, `dict`, …"""
    count: int
    """Layers in it that have parameters and that the module does not know from elsewhere."""
    layer_kind: str
    """Class of the first of them."""
    parameter_count: int
    """Numbers in their parameters."""
    trainable_keys: frozenset[int]
    """Those of their parameters that want gradients."""
    named_elsewhere: bool
    """True if a variable of its own leads to one of them, as to a teacher that is hidden on purpose."""
    held: bool
    """True if an optimizer holds one of their parameters."""
    training: bool
    """True if the first of them is in train mode."""
    new: bool = True
    """False if the module was there before the cell."""
    place: Place | None = None
    """The line that gives the attribute its value; None if no cell has it."""


class RepeatedFact(NamedTuple):
    """One layer that stands several times in a list of layers."""

    path: str
    """The list: `net.blocks`."""
    container: str
    """`ModuleList`, `Sequential`, `ModuleDict`, `ParameterList`, `list`."""
    count: int
    """How often it stands there."""
    layer_kind: str
    parameter_count: int
    """Numbers in its parameters."""
    place: Place
    """The line that repeats it."""
    text: str
    """What does so there: `[nn.Linear(8, 8)] * 4`."""
    in_call: bool = True
    """True if the layer is made in that expression; False if a variable is repeated."""


class UnheldFact(NamedTuple):
    """Parameters of one module that get gradients again and again, stay as they are, and are in no optimizer."""

    order: int
    place: Place
    """Line of the step that was taken without them."""
    optimizer: int
    """Key of the optimizer that made it."""
    module: str
    """Path of the module that owns them; empty for parameters that are variables of their own."""
    kind: str
    """Class of that module."""
    names: tuple[str, ...]
    """Paths of the first of them: `net.0.weight`."""
    keys: frozenset[int]
    late: str = ""
    """`unfrozen` if they wanted no gradient when the optimizer was made, `added` if the module had not got them."""
    held_count: int = 0
    """Parameters of the module that an optimizer holds."""
    held_parts: int = 0
    """Direct parts of the module that an optimizer holds something of."""
    training: bool = True
    settled: bool = False
    """True if they were loaded, or an earlier optimizer had them."""
    compared: bool = True
    """False if only the version counters say that they stay as they are, as for a device."""
    unlisted: UnlistedFact | None = None
    """The plain container they are in, if they are."""


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


class CutFact(NamedTuple):
    """An expression that gives a value without history, between a model and a loss."""

    place: Place
    text: str
    """The expression: `net(image).argmax(1)`."""
    kind: str
    """`detach`, `item`, `numpy`, `argmax`, `tensor`, `no_grad`, `compare`, …"""
    sources: tuple[str, ...]
    """Names of the modules whose results go in: `encoder`, `self.body`."""
    optional: bool = False
    """True if it stands in a branch, which not every pass has to take."""
    module: int = 0
    """Key of the called module of which it keeps a part from learning; 0 if it is not known to."""
    part: str = ""
    """Path of that part in the module; empty for all of it."""
    keys: frozenset[int] = frozenset()
    """Parameters of that part; none if it is not known."""


class CallerFact(NamedTuple):
    """One frame of the user's own code on the way to a call."""

    place: Place
    loops: tuple[tuple[int, int], ...] = ()
    """First and last line of each loop around that line in its function, innermost first."""


class DropoutFact(NamedTuple):
    """A call of `F.dropout`, or one of its kind, that is not told the mode, in the code that a module runs."""

    place: Place
    kind: str
    """Class of the layer whose code it is."""
    name: str
    """The function as written: `F.dropout`."""
    text: str
    """The whole call as written."""


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
    """True if random numbers were drawn on the CPU during the first call; None if that was not looked at."""
    norms: NormsFact | None = None
    """Its BatchNorm layers; None if it has none."""


class ModeFact(NamedTuple):
    """One call of `train()` or `eval()` by the user on one module."""

    order: int
    place: Place
    module: int
    training: bool


class ClearFact(NamedTuple):
    """`zero_grad()` of an optimizer or a module, counted per line and owner."""

    order: int
    place: Place
    kind: str
    owner: int
    count: int


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


class GeneratorFact(NamedTuple):
    """A generator of random numbers that a data set holds and draws from."""

    path: str
    """The attribute: `rng`, `transform.rng`."""
    kind: str
    """`numpy.random.Generator`"""
    owner: str
    """Class whose attribute it is."""


class LoaderFact(NamedTuple):
    """One DataLoader that was iterated."""

    place: Place
    kind: str
    batch_size: int | None
    worker_count: int
    pin_memory: bool
    batch_count: int
    waited_s: float
    generators: tuple[GeneratorFact, ...] = ()
    """Of its data set, if it has several workers and none is prepared."""


class CountFact(NamedTuple):
    """How often one kind of call was made from one line."""

    kind: str
    """`backward`, `step`, `zero_grad`, `forward`, `scheduler`, `scaler.step`, …"""
    place: Place
    name: str
    """Class of what was called, where that says something."""
    count: int


class EmptiedFact(NamedTuple):
    """All calls of `empty_cache()` from one line."""

    place: Place
    name: str
    """`torch.cuda.empty_cache`"""
    count: int
    spent_s: float
    started: bool
    """True if the process uses an accelerator at all; without one the call does nothing."""


class CheckpointFact(NamedTuple):
    """All calls of `checkpoint()` in its old variant, told to use it or not, with one block from one line."""

    place: Place
    kind: str
    """Class of the block; empty for a function."""
    count: int
    fed: bool
    """True if a tensor argument wanted a gradient in one of the first calls: else no gradient can come back."""
    training: bool
    parameter_keys: frozenset[int]
    """Parameters of the block that want gradients, the first of them."""


class LoopFunctionFact(NamedTuple):
    """A function made in a loop which reads the loop's variable when it is called, and is kept."""

    line: int
    names: tuple[str, ...]
    """The loop variables that it reads."""
    kind: str
    """`lambda` or `function`."""
    kept_by: str
    """How it outlives its turn: `append`, `register_forward_hook`, `assignment`, `comprehension`."""
    text: str
    """The function's own source, first line."""
    sure: bool = True
    """False if it may be that nothing is kept, or that every turn gives the names an equal value."""


class CallFact(NamedTuple):
    """A call in the source of the cell."""

    name: str
    """Dotted name as written."""
    line: int


class MentionFact(NamedTuple):
    """An attribute that stands as a statement of its own in the source of the cell, and so does nothing."""

    name: str
    """Dotted name as written: `model.eval`."""
    line: int
    function: str = ""
    """Function that it stands in; empty at the top level."""
    shown: bool = False
    """True for the last statement of the cell, which the notebook displays."""


class IndexingFact(NamedTuple):
    """An index in the source of the cell that may copy, as a mask or a list does, and what keeps the result."""

    line: int
    source: str
    """Dotted name of what is indexed."""
    index: str
    """The index as written."""
    target: str
    """Variable in which the result ends up."""


class ExpressionFact(NamedTuple):
    """An expression of the cell, or of a function that it calls, with what its operands are after the cell."""

    kind: str
    """What it may be: `stretched`, `shuffled`, `wrapped`, `lost`, `axis`, …; each is made by one file in `observe/`."""
    place: Place
    text: str
    """The expression as written."""
    names: tuple[str, ...] = ()
    """Its operands as written."""
    shapes: tuple[Shape, ...] = ()
    """Shapes of the operands, then of the result, as far as they are known."""
    target: str = ""
    """The variable that is given the value; empty if none is."""
    detail: str = ""
    """What else there is to say, in a word of the kind's own."""
    share: float = 0.0
    """Part of the elements that it is about, 0 to 1; 0 if that is not known."""
    sure: bool = True
    """False if the text alone says so."""


class RebindFact(NamedTuple):
    """An assignment in the source of the cell that gives a name a value computed from it: `w = w - step`."""

    path: str
    line: int
    text: str
    function: str = ""
    """Function that holds it; empty at the top level."""
    in_no_grad: bool = False
    reads_grad: bool = False
    """True if the value reads a `.grad`."""
    remedy: str = ""
    """What keeps the leaf."""
    made: bool = False
    """True if it does not rebind but computes from a new tensor: `torch.rand(3, requires_grad=True) * 0.1`."""


class CopyFact(NamedTuple):
    """A call of `torch.tensor` in the source of the cell, on something that has a name, on the way to a loss."""

    line: int
    text: str
    """The call."""
    names: tuple[str, ...]
    """What it was given: `loss`, `losses`."""
    target: str
    """Variable that gets the copy, or what is computed from it."""
    function: str
    differentiated_line: int
    """Line of the `backward()` that the copy leads to."""
    is_root: bool
    """True if `backward()` is called on the copy itself."""


class DataEditFact(NamedTuple):
    """A change through `.data` in the source of the cell, after a forward pass that reads it, before `backward()`."""

    path: str
    """What is changed: `w`, `net.weight`."""
    line: int
    text: str
    function: str
    owner: str
    """What the forward pass reads: `w`, `net`."""
    forward_line: int
    backward_line: int


class GradReadFact(NamedTuple):
    """A place in the source of the cell that reads `.grad` of a name."""

    path: str
    line: int


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
    raised_as: str = ""


class ScheduleFact(NamedTuple):
    """One learning-rate schedule that was stepped."""

    order: int
    place: Place
    """Line of the first call of its `step()` in this cell."""
    schedule: int
    """Key of the schedule."""
    kind: str
    name: str
    """What the code that steps it calls it; empty if it has no name there."""
    optimizer: int = 0
    """Key of its optimizer; 0 if it has none."""
    optimizer_name: str = ""
    first_ever: bool = False
    """True if the first of these calls is the first of its life, and its optimizer had made no step at all before."""
    told: bool = False
    """True if `step()` was given an argument: an epoch, or the value that a plateau is looked for in."""
    turns: tuple[int | None, ...] = ()
    """Turns that each loop around the call was going to make, the innermost first; None where that is not known."""
    settings: tuple[tuple[str, float], ...] = ()
    """`(("step_size", 30.0), ("gamma", 0.1))`."""
    milestones: tuple[int, ...] = ()
    count: int = 0
    """Calls in this cell."""
    step_counts: tuple[int, ...] = ()
    """Steps that its optimizer had made in this cell before the first three calls, those from `place` only."""
    optimizer_steps: int = 0
    """Steps that its optimizer made in this cell."""
    first_rate: float | None = None
    """Learning rate of the first group before the first call."""
    last_rate: float | None = None
    """The same at the end of the cell."""
    rates: tuple[tuple[int, float], ...] = ()
    """The same after 0, 1, 2, 3, 7, 15, … calls: `((0, 0.1), (1, 0.09))`."""
    siblings: int = 1
    """Schedules that were stepped from this line in this cell."""

    def setting(self, name: str) -> float | None:
        """What it was made with; None if it has no such setting."""
        return dict(self.settings).get(name)


class ClipFact(NamedTuple):
    """One call of `clip_grad_norm_` or `clip_grad_value_` that was looked at."""

    order: int
    place: Place
    function: str
    limit: float | None
    """What it clips to."""
    norm: float | None
    """The total norm that it returned; None if that lies on a device, or for a clip by value."""
    spoiled_keys: frozenset[int] = frozenset()
    """Parameters that it clipped and whose gradients were not finite before."""
    parameter_keys: frozenset[int] = frozenset()
    """All parameters of the optimizers whose gradients it changed."""
    scale: float = 0.0
    """Scale of the scaler whose `step` was given just these gradients, still scaled; 0 if there was none."""
    scaler_name: str = ""
    optimizer: int = 0
    """Key of the optimizer which that scaler stepped."""
    optimizer_name: str = ""
    step_place: Place = Place()
    """Where it did."""

    def spreads(self) -> bool:
        """True if the norm was not finite because of some gradients, and made all others so."""
        bad = self.norm is not None and not isfinite(self.norm)
        return bad and 0 < len(self.spoiled_keys) < len(self.parameter_keys)


class ScalerFact(NamedTuple):
    """Loss scalers that one line of this cell made, and which stepped one optimizer."""

    place: Place
    """The line that made them."""
    name: str
    step_place: Place
    """Where the first of them stepped the optimizer."""
    optimizer: int
    optimizer_name: str
    scaler_count: int = 1


class SpoiledFact(NamedTuple):
    """A parameter whose values, or whose gradient, are not finite."""

    key: int
    """Address of the parameter."""
    nan_count: int
    inf_count: int
    count: int
    """Elements in all."""


class ExtremeFact(NamedTuple):
    """Values of one variable on the CPU."""

    path: str
    dtype: str
    count: int
    """Elements in all."""
    inf_count: int = 0
    """How many are plus infinity."""
    negative_inf_count: int = 0
    nan_count: int = 0
    computed: bool = False
    """True if it needs a gradient: it was computed from weights, or is one."""


class LossFact(NamedTuple):
    """The value of one loss on the CPU that `backward()` was called on, and what the call left."""

    order: int
    place: Place
    index: int
    """How often this line has called it, this call included."""
    value: float
    origins: tuple[ExtremeFact, ...] = ()
    """Variables around the first loss that is not finite which are not finite either."""
    spoiled_weights: tuple[SpoiledFact, ...] = ()
    """Weights that were not finite at that moment."""
    spoiled_gradients: tuple[SpoiledFact, ...] = ()
    """Gradients that this call left, of a loss that was finite; looked for until some were found."""
    zero_gradients: int = 0
    """Gradients that are zero everywhere, if all that were read are; else 0."""
    gradient_count: int = 0


class SeriesFact(NamedTuple):
    """A list of plain numbers that the user's code collected."""

    path: str
    count: int
    first_bad: int | None
    """Position of the first number that is not finite, if the last one is not either."""
    first: float | None
    last: float | None
    """The last number, or the one before the first that is not finite."""
    lowest: float | None
    bad: str = ""
    """That number: `nan` or `inf`."""


class WindowFact(NamedTuple):
    """The steps of one optimizer that come each after several backward calls of one line, under a modulo test."""

    optimizer: int
    place: Place
    """Line of the step."""
    backward_at: Place
    size: int
    """Backward calls before the first step."""
    sizes: tuple[int, ...]
    """Backward calls before each of the steps that were looked at."""
    call_count: int
    """Backward calls from that line in this cell."""
    step_count: int
    """Steps in this cell; 0 if several lines make some."""


class NamedFact(NamedTuple):
    """A variable that has to do with an error of autograd."""

    path: str
    kind: str = "tensor"
    """`tensor`, or the class of the container that holds the tensors: `tuple`, `list`."""
    shape: Shape | None = None
    made_at: Place | None = None
    """The line that gives it its value."""


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
    in_loop: bool = False


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
    root: str = ""
    """The loss in that case, as written."""
    statement: str = ""
    """The statement at `place` on one line; empty if it is long or compound."""
    expression: str = ""
    """The expression in it that failed, where that is known."""
    caller: str = ""
    """The expression that called the function which holds `place`; empty at the top level."""
    refusal: RefusalFact | None = None
    """What is behind it, if autograd raised it in `backward()` or `grad()`."""
    layer: LayerFact | None = None
    """The layer that refused a batch with one value per channel."""


@dataclass(frozen=True)
class Snapshot:
    """What held at one moment."""

    tensors: tuple[TensorFact, ...] = ()
    modules: tuple[ModuleFact, ...] = ()
    optimizers: tuple[OptimizerFact, ...] = ()
    graphs: tuple[GraphFact, ...] = ()
    holders: tuple[HolderFact, ...] = ()
    memory: tuple[MemoryFact, ...] = ()
    tracebacks: tuple[TracebackFact, ...] = ()
    pins: tuple[PinFact, ...] = ()
    elders: tuple[ElderFact, ...] = ()
    spoiled_weights: tuple[SpoiledFact, ...] = ()
    """Weights that are not finite, of optimizers and modules that were used in the cell."""
    extremes: tuple[ExtremeFact, ...] = ()
    """Variables in float16 that are new and not finite everywhere."""
    series: tuple[SeriesFact, ...] = ()
    """Lists of numbers, after a cell that trains."""
    complete: bool = True
    """False if the time budget ended the look: everything is then "at least"."""
    hooks: tuple[HookFact, ...] = ()
    deleted: tuple[DeletionFact, ...] = ()
    circles: tuple[CircleFact, ...] = ()
    expressions: tuple[ExpressionFact, ...] = ()
    """What the text of the cell does to the values that its names have now."""
    unlisted: tuple[UnlistedFact, ...] = ()
    repeated: tuple[RepeatedFact, ...] = ()
    grad_enabled: bool = True
    """False if autograd records nothing in what runs next."""
    attributes: tuple[AttributeFact, ...] = ()
    """Of modules that are new, or may have been moved or got an optimizer in the cell."""
    discards: tuple[DiscardFact, ...] = ()
    """What the text of the latest cell throws away."""
    aliases: tuple[AliasFact, ...] = ()
    hook_counts: tuple[HookCountFact, ...] = ()
    anomaly: bool = False
    """True if anomaly detection is on for what runs next."""

    def module(self, key: int) -> ModuleFact | None:
        """The module with this key, if it was seen."""
        return next((m for m in self.modules if m.key == key), None)

    def optimizer(self, key: int) -> OptimizerFact | None:
        """The optimizer with this key, if it was seen."""
        return next((o for o in self.optimizers if o.key == key), None)


@dataclass(frozen=True)
class Trace:
    """What happened while the cell ran, in order."""

    backwards: tuple[BackwardFact, ...] = ()
    steps: tuple[StepFact, ...] = ()
    forwards: tuple[ForwardFact, ...] = ()
    modes: tuple[ModeFact, ...] = ()
    clears: tuple[ClearFact, ...] = ()
    loaders: tuple[LoaderFact, ...] = ()
    counts: tuple[CountFact, ...] = ()
    emptied: tuple[EmptiedFact, ...] = ()
    checkpoints: tuple[CheckpointFact, ...] = ()
    loop_functions: tuple[LoopFunctionFact, ...] = ()
    calls: tuple[CallFact, ...] = ()
    indexings: tuple[IndexingFact, ...] = ()
    graph_nodes_made: int = 0
    """Autograd nodes that this thread made while the cell ran."""
    schedules: tuple[ScheduleFact, ...] = ()
    clips: tuple[ClipFact, ...] = ()
    scalers: tuple[ScalerFact, ...] = ()
    losses: tuple[LossFact, ...] = ()
    windows: tuple[WindowFact, ...] = ()
    unheld: tuple[UnheldFact, ...] = ()
    built: tuple[BuiltFact, ...] = ()
    cuts: tuple[CutFact, ...] = ()
    """Where the text loses the history of a loss; looked for only where a backward call did not reach a model."""

    def steps_come_first(self, optimizer: int) -> bool:
        """True if an optimizer's steps come between the forward pass and the backward call that it is made for."""
        first = next((step for step in self.steps if step.optimizer == optimizer), None)
        if first is None or first.index != 1 or first.has_closure:
            return False
        mine = [b for b in self.backwards if b.witness is not None and b.witness.leaf_keys & first.parameter_keys]
        late = [b for b in mine if optimizer in b.stale and b.order > first.order]
        return bool(late) and late == mine

    rebinds: tuple[RebindFact, ...] = ()
    grad_reads: tuple[GradReadFact, ...] = ()
    copies: tuple[CopyFact, ...] = ()
    data_edits: tuple[DataEditFact, ...] = ()
    mentions: tuple[MentionFact, ...] = ()
    loads: tuple[LoadFact, ...] = ()

    def training_places(self) -> frozenset[Place]:
        """Lines of the steps and backward calls that were looked at."""
        return frozenset({step.place for step in self.steps} | {backward.place for backward in self.backwards})

    def feeds_training(self, call: ForwardFact) -> bool:
        """True if the innermost loop that both calls and trains calls first: `fake = net(z)`, then the step.

        Evaluation comes after the steps of its loop, or in a function of its own.
        """
        places = self.training_places()
        for here, loops in call.callers:
            lines = [p.line for p in places if (p.cell, p.function) == (here.cell, here.function)]
            for first, last in loops:
                inside = [line for line in lines if line is not None and first <= line <= last]
                if inside and here.line is not None:
                    return any(line > here.line for line in inside)
        return False

    def count(self, kind: str, place: Place | None = None) -> int:
        """Calls of one kind in the whole cell, or from one line of it."""
        return sum(fact.count for fact in self.counts if fact.kind == kind and place in (None, fact.place))


# A loss that has grown this often before the end is divergence; one that has not ended, only beyond the second, and
# beyond the third for each call: a total of all losses grows with their number.
_GREW_RATIO, _EXPLODED_RATIO, _EXPLODED_EACH = 10.0, 1e3, 20.0
_FEW_LOSSES = 5


# A part that no gradient reaches in this many steps of its own optimizer is cut off in each.
_CUT_STEPS = 3


def _growth(first: float | None, last: float | None, *, index: int, ended: bool) -> tuple[float, float] | None:
    """First and last value of a loss that is positive and grew; None if it did not."""
    if first is None or last is None or not first > 0:
        return None
    ratio = last / first
    enough = ratio >= max(_EXPLODED_RATIO, _EXPLODED_EACH * index) and index >= _FEW_LOSSES
    return (first, last) if enough or (ended and ratio >= _GREW_RATIO) else None


@dataclass(frozen=True)
class Run:
    """One cell with everything that was seen of it."""

    cell: Cell
    before: Snapshot = field(default_factory=Snapshot)
    trace: Trace = field(default_factory=Trace)
    after: Snapshot = field(default_factory=Snapshot)
    error: ErrorFact | None = None
    duration_s: float = 0.0
    inspection_s: float = 0.0
    """Seconds that the inspector itself took before and after the cell."""
    earlier: tuple[Run, ...] = ()
    """Runs before this one, oldest first; they hold no earlier ones themselves."""
    min_nbytes: int = 1 << 20
    """Memory findings below this many bytes stay silent."""
    account: MemoryReport | None = None
    """Who holds all memory; only where the cell ran out of it or asked for the report. Earlier runs have none."""
    findings: tuple[Finding, ...] = ()

    def backward_before(self) -> BackwardFact | None:
        """The backward call before the one that failed: the one on the same graph, or else the latest."""
        refusal, error = self.error.refusal if self.error else None, self.error
        if refusal is None or error is None:
            return None
        own = list(self.trace.backwards)
        if own and own[-1].place == error.place and own[-1].number == refusal.number:
            own.pop()
        calls = [call for run in self.earlier for call in run.trace.backwards] + own
        same = [call for call in calls if call.number == refusal.number >= 0]
        return (same or calls)[-1] if calls else None

    def steps_by_optimizer(self) -> dict[int, list[StepFact]]:
        """Steps of this cell by key of the optimizer."""
        steps: dict[int, list[StepFact]] = {}
        for step in self.trace.steps:
            steps.setdefault(step.optimizer, []).append(step)
        return steps

    def squashing_layers(self, kind: str) -> tuple[str, ...]:
        """Paths of layers of one such kind in the modules that were called in this cell, each once."""
        called = {call.module for call in self.trace.forwards}
        modules = [module for module in self.after.modules if module.key in called]
        found = (path for module in modules for path, own, _ in module.squashing_layers if own == kind)
        return tuple(dict.fromkeys(found))

    def losses_with(self, name: str) -> tuple[tuple[PatternFact, str, Place], ...]:
        """Patterns of one name, with the loss whose graph has them and the line that made it, each line once.

        Losses that nothing was called on count too, if the cell made them and a variable keeps them.
        """
        looked = [(b.witness.patterns, b.root, b.made_at) for b in self.trace.backwards if b.witness is not None]
        kept = [(g.patterns, g.path, g.made_at) for g in self.after.graphs if g.made_at is not None and g.scalar]
        found: dict[Place, tuple[PatternFact, str, Place]] = {}
        for patterns, root, place in (*looked, *kept):
            pattern = next((p for p in patterns if p.name == name), None)
            if pattern is not None and place is not None and place not in found:
                found[place] = (pattern, root, place)
        return tuple(found.values())

    def cut_parts(self) -> Iterator[tuple[CutFact, list[StepFact]]]:
        """Parts that are called, that an optimizer holds and steps, and that a cut keeps from every gradient.

        With each the steps of that optimizer. Only where every graph was seen whole, and the optimizer moves others.
        """
        witnesses = [one.witness for one in self.trace.backwards if one.witness is not None]
        if not all(witness.complete for witness in witnesses):
            return
        reached = frozenset[int]().union(*(witness.leaf_keys for witness in witnesses))
        for steps in self.steps_by_optimizer().values():
            own, useless = steps[0].parameter_keys, any(step.has_closure or step.idle for step in steps)
            if len(steps) < _CUT_STEPS or useless or not own & reached:
                continue
            # What a branch cuts off may be let through later, and then other cuts of it are meant as well.
            switched = frozenset[int]().union(*(cut.keys for cut in self.trace.cuts if cut.optional))
            cuts = [cut for cut in self.trace.cuts if cut.keys and cut.keys <= own - reached - switched]
            yield from ((cut, steps) for cut in cuts[:1])

    def part_path(self, cut: CutFact) -> str:
        """What the user can type to get the part that a cut keeps from learning: `net.blocks[0]`."""
        steps = (f"[{one}]" if one.isdigit() else f".{one}" for one in cut.part.split(".") if one)
        return (self.module_path(cut.module) or "model") + "".join(steps)

    def expressions(self, kind: str) -> tuple[ExpressionFact, ...]:
        """Expressions of one kind that the cell came to, each line once."""
        failed = self.error.place if self.error is not None else None
        found: dict[Place, ExpressionFact] = {}
        for fact in self.after.expressions:
            late = (
                failed is not None and failed.cell == fact.place.cell and (failed.line or 0) <= (fact.place.line or 0)
            )
            if fact.kind == kind and not late:
                found.setdefault(fact.place, fact)
        return tuple(found.values())

    def operand_of(self, pattern: PatternFact) -> str:
        """The variable that was given to a loss: as the code calls it, or the only one that could be; else empty."""
        made = (pattern.nodes[-1:], pattern.shapes[:1])
        fitting = [t.path for t in self.after.tensors if ((t.made_by,), (t.shape,)) == made]
        return pattern.operands[0] if pattern.operands else fitting[0] if len(fitting) == 1 else ""

    def module_path(self, key: int) -> str:
        """What the user calls this module, or its class if no variable leads to it; empty if unknown."""
        fact = self.after.module(key) or self.before.module(key)
        return (fact.path or fact.kind) if fact else ""

    def parameter_path(self, key: int) -> str:
        """What the user can type to get this parameter; empty if no variable leads there."""
        for module in self.after.modules:
            name = dict(module.parameter_names).get(key)
            if name is not None and module.path:
                return f"{module.path}.{name}"
        return next((tensor.path for tensor in self.after.tensors if tensor.key == key), "")

    def owner_path(self, keys: frozenset[int]) -> str:
        """The first named module that has some of these parameters, or the variable that is one; empty if unknown."""
        owners = [module.path for module in self.after.modules if module.path and module.parameter_keys & keys]
        called = [call.name for call in self.trace.forwards if call.name and call.parameter_keys & keys]
        tensors = [tensor.path for tensor in self.after.tensors if tensor.key in keys]
        return next(iter((*owners, *called, *tensors)), "")

    def divergence(self) -> tuple[float, float] | None:
        """A loss that grew at least tenfold before it was not finite any more, or without end: first and last value."""
        if any(step.maximizes for step in self.trace.steps):
            return None
        ends = bool(self.after.spoiled_weights)
        listed = self.bad_series()
        if listed is not None and (pair := _growth(listed.first, listed.last, index=listed.count, ended=True)):
            return pair
        for place in dict.fromkeys(loss.place for loss in self.trace.losses):
            losses = [loss for loss in self.trace.losses if loss.place == place]
            finite = [loss.value for loss in losses if isfinite(loss.value)]
            if finite and finite == sorted(finite):
                ended = ends or len(finite) < len(losses)
                if pair := _growth(finite[0], finite[-1], index=losses[-1].index, ended=ended):
                    return pair
        return None

    def nonfinite_cause(self) -> str:
        """What was not finite first: `clip`, `gradient`, `weights`, `loss`, or `rate` if the loss grew until then.

        Empty if all that was looked at is finite, or if a loss scaler deals with it.
        """
        losses = self.trace.losses
        if not self._stays_nonfinite():
            return ""
        spoiled = any(loss.spoiled_gradients for loss in losses)
        if any(fact.kind.startswith("scaler.") for fact in self.trace.counts) and not self.after.spoiled_weights:
            return ""
        if spoiled:
            return "clip" if any(clip.spreads() for clip in self.trace.clips) else "gradient"
        return self._late_cause()

    def _late_cause(self) -> str:
        """The same where every gradient that was looked at is finite."""
        bad = self.first_nonfinite_loss()
        if bad is not None and bad.spoiled_weights and bad is self.trace.losses[0]:
            return "weights"
        if self.divergence() is not None:
            return "rate" if bad or self.after.spoiled_weights or self.bad_series() else ""
        if bad is not None or self.bad_series() is not None:
            return "loss"
        return "weights" if self.after.spoiled_weights else ""

    def bad_series(self) -> SeriesFact | None:
        """A list of losses that ends in NaN or infinity; other lists may, where weights and losses are finite."""
        seen = bool(self.after.spoiled_weights) or self.first_nonfinite_loss() is not None
        named = (one for one in self.after.series if seen or (not self.trace.losses and "loss" in one.path.lower()))
        return next((one for one in named if one.first_bad is not None), None)

    def _stays_nonfinite(self) -> bool:
        """True unless whatever was not finite was skipped: a bad batch, a step without effect."""
        if self.after.spoiled_weights or self.bad_series() is not None:
            return True
        asks = "isfinite" in self.cell.code or "isnan" in self.cell.code
        last = self.trace.losses[-1].value if self.trace.losses else 0.0
        return not asks and (not isfinite(last) or not self.trace.steps)

    def graph_in_half(self, loss: LossFact) -> bool:
        """True if the graph of a loss computed in float16."""
        graphs = [backward.witness for backward in self.trace.backwards if backward.place == loss.place]
        return any(graph is not None and graph.float16_count > 0 for graph in graphs)

    def first_nonfinite_loss(self) -> LossFact | None:
        """The first loss that was looked at and was not finite."""
        return next((loss for loss in self.trace.losses if not isfinite(loss.value)), None)

    def underflowed(self) -> tuple[LossFact, ...]:
        """Losses in float16 that are not zero and left gradients which are zero everywhere, if all of them did."""
        losses = [loss for loss in self.trace.losses if loss.gradient_count and self.graph_in_half(loss)]
        empty = [loss for loss in losses if loss.zero_gradients == loss.gradient_count and loss.value]
        return tuple(empty) if len(empty) == len(losses) else ()

    def overflowed(self) -> bool:
        """True if a loss was not finite, its weights and inputs were, and its graph computed in float16."""
        loss = self.first_nonfinite_loss() if self.nonfinite_cause() == "loss" else None
        given = loss is not None and any(not one.computed for one in loss.origins)
        return loss is not None and not given and not loss.spoiled_weights and self.graph_in_half(loss)

    def source_of(self, cell: int | None) -> str:
        """Text of this cell or an earlier one; empty if it is not known."""
        known = (one.cell.source for one in (self, *reversed(self.earlier)) if one.cell.number == cell)
        return next(known, "")

    def optimizer_path(self, key: int) -> str:
        """What the user calls this optimizer, globally or where it steps; empty if it has no name."""
        fact = self.after.optimizer(key) or self.before.optimizer(key)
        if fact is not None and fact.path:
            return fact.path
        return next((step.name for step in self.trace.steps if step.optimizer == key and step.name), "")
