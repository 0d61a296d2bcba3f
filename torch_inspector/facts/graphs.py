"""Autograd graphs: what is kept, and what stands behind a loss."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place, Shape
from torch_inspector.facts.values import OperationFact

# A state of several tensors without their history.
_DETACHED = {
    "tuple": "tuple(h.detach() for h in {})",
    "list": "[h.detach() for h in {}]",
    "dict": "{{k: h.detach() for k, h in {}.items()}}",
    "mixed tuple": "tuple(h.detach() if torch.is_tensor(h) else h for h in {})",
    "mixed list": "[h.detach() if torch.is_tensor(h) else h for h in {}]",
    "mixed dict": "{{k: h.detach() if torch.is_tensor(h) else h for k, h in {}.items()}}",
}


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
    sort: str = ""
    """Of a container that is no subclass: `tuple`, `list` or `dict`; `mixed dict` if it holds other things too."""
    nested: bool = False
    """True if the tensors sit in elements of the container: `log[3]['loss']`."""
    rows: bool = False
    """True if these elements are dictionaries with nothing but tensors in them."""
    parts: tuple[str, ...] = ()
    """Where in these elements the tensors are: `['loss']`, `['metrics']['photometric']`."""
    remedy: str = ""
    """That line, changed so that no history is kept; empty where that cannot be said from its text."""
    as_number: bool = True
    """False if the code asks of what is kept what a tensor has and a number has not."""
    feeds_loss: bool = False
    """True if the code calls `backward()` on what it makes of the collection or total, as of log-probabilities."""
    patterns: tuple[PatternFact, ...] = ()
    """What was found in a graph that was made in this cell."""
    made_at: Place | None = None
    """The line that gave the variable its value, where something was found."""
    leaf_count: int = 0
    """Parameters and other leaves that it goes back to, and numbers without history that were added to it."""

    @property
    def detached(self) -> str:
        """The statement that takes the history from all of it; empty for containers of which the kind is not known."""
        if not self.container:
            return f"{self.path} = {self.path}.detach()"
        return f"{self.path} = {_DETACHED[self.sort].format(self.path)}" if self.sort in _DETACHED else ""


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
    extent: tuple[float, float] | None = None
    """Smallest and largest number of the first of `shapes`, where they matter."""
    keys: frozenset[int] = frozenset()
    """Parameters that it is about, where it is about some."""


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
    settings: tuple[str, ...] = ()
    """Settings of these that torch refuses beside `sparse=True`: `mode="max"`, `scale_grad_by_freq=True`."""


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
    enlarged: bool = False
    """True if the loss in float16 is multiplied by a number above 1, or by one that is not known: a loss scale."""
    weights: tuple[float | None, ...] = ()
    """Weights of the means that the loss adds up, None for a term without one; empty if that is not known."""
    carried_count: int = 0
    """Leaves, of a few, that no optimizer holds, that were moved since the backward call before, and that still had a
    gradient when this one began."""
    edges: tuple[OperationFact, ...] = ()
    """Operations that were given numbers at which their slope is not finite, the oldest first; on the CPU only."""
    steep: tuple[str, ...] = ()
    """Operations that have no finite slope at some numbers, from which nothing in the graph keeps their operand."""


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
    """Keys of optimizers whose parameters it reaches and which have stepped since the pass that used these."""
    from_leaf: bool = False
    """True if the tensor has no history at all, so that the call fills its own gradient and nothing else."""
    number: int = -1
    """Number of the node behind the loss: equal only for calls on the same graph; -1 if unknown."""
    plain_inputs: bool = False
    """True for a `grad` call without `create_graph` that asks for nothing that an optimizer holds."""
    weighed: bool = False
    """True for a `backward` call that was given a gradient to begin with, which may scale all others."""

    @property
    def leaf_keys(self) -> frozenset[int]:
        """Keys of what wants a gradient and its graph reaches, as far as it was seen."""
        return self.witness.leaf_keys if self.witness is not None else frozenset()


class CutFact(NamedTuple):
    """An expression that gives a value without history, between a model and a loss."""

    place: Place
    text: str
    """The expression: `net(image).argmax(1)`; `@torch.no_grad()` for a decorator."""
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
    backwards: tuple[Place, ...] = ()
    """Lines of the backward calls on losses behind which it stands."""
    path: str = ""
    """What the user can type to get that part; empty where `module` and `part` say it."""
    term: str = ""
    """The term of a sum that it makes a number: `0.5 * variation(out).item()`."""
    elsewhere: bool = False
    """True if another method of the class uses that part too, perhaps for a loss of its own."""
    bare: bool = False
    """True if the term is a loss that was detached and has no weight on it: it may be there to be shown."""
