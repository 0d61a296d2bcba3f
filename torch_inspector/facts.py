"""What was seen, as frozen plain values: the language between observers, pitfalls and views.

No tensor, module or optimizer is ever inside a fact, so a `Run` can be kept, compared and drawn again later.
Kinds of facts that are made in large numbers are `NamedTuple`s, the others frozen dataclasses.

A *key* is an integer that stands for one live object. Keys of modules and optimizers are never reused; keys of
parameters are addresses and may only be compared between facts that were taken while both objects were alive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
    version: int = 0
    """Changes of the parameters of `frozen_awake` so far."""
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
    """`zero_grad()` of an optimizer or a module, counted per line."""

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
    complete: bool = True
    """False if the time budget ended the look: everything is then "at least"."""
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
    findings: tuple[Finding, ...] = ()

    def steps_by_optimizer(self) -> dict[int, list[StepFact]]:
        """Steps of this cell by key of the optimizer."""
        steps: dict[int, list[StepFact]] = {}
        for step in self.trace.steps:
            steps.setdefault(step.optimizer, []).append(step)
        return steps

    def module_path(self, key: int) -> str:
        """What the user calls this module, or its class if no variable leads to it; empty if unknown."""
        fact = self.after.module(key) or self.before.module(key)
        return (fact.path or fact.kind) if fact else ""

    def optimizer_path(self, key: int) -> str:
        """What the user calls this optimizer, globally or where it steps; empty if it has no name."""
        fact = self.after.optimizer(key) or self.before.optimizer(key)
        if fact is not None and fact.path:
            return fact.path
        return next((step.name for step in self.trace.steps if step.optimizer == key and step.name), "")
