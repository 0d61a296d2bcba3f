"""Modules as they stand after a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch_inspector.facts.place import LayerCounts, Place, Shape


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
    gradient_nbytes: int = 0
    """Bytes of gradients that its parameters have; looked at after cells that only call trained modules."""


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
    element: str = ""
    """`[0]` or `['a']` where the attribute is a plain container of tensors, and this is the first of them."""
    container: str = ""
    """What that container is: `list`, `tuple`, `dict`."""
    owner_dtypes: tuple[str, ...] = ()
    """Floating point types of the parameters of the whole module."""
    method: str = "__init__"
    """What sets it: `__init__`, or a method that only this calls."""


class UnsavedFact(NamedTuple):
    """A tensor attribute of a loaded model that differs from that of a model with the same weights."""

    path: str
    """What the user can type: `again.mean`."""
    other: str
    """The same of the other model: `net.mean`."""
    owner: str
    """The variable of the loaded model."""
    kind: str
    """Class whose attribute it is."""
    name: str
    setters: tuple[str, ...] = ()
    """Methods besides `__init__` that set it; `forward` does not lead to them."""
    place: Place = Place()
    """The line of `__init__` that sets it."""


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
    over: str = ""
    """`list` or `tuple`, if it is a variable of a loop over just that; empty for others, and if it is not known."""


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
    """True if steps have changed the model since."""
    conditional: bool = False
    """True if that line stands under an `if`."""
    saved: bool = False
    """True if what the line gives its value is handed on to be written, after it in the same block."""
    step_count: int = 0
    """Steps of all optimizers that had been made when the first of them was taken."""
    by_hand: bool = False
    """True if steps that the text writes itself have changed it, and no optimizer."""


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
    held_nbytes: int = 0
    """Bytes of tensors that they know and no variable leads to; what several layers' hooks know is at the first."""


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
    inner: str = ""
    """Class of the containers in it that hold them: `list`; empty if it holds them itself, or one holds both."""
    inner_count: int = 0
    loose: bool = False
    """True for parameters that stand in it themselves, without a layer."""
    odd_keys: bool = False
    """True for a dictionary, or what has some in it, with keys that `nn.ModuleDict` refuses: numbers, dots, `type`."""
    mixed: bool = False
    """True for parameters among tensors that are none, which `nn.ParameterList` would make some."""


class RepeatedFact(NamedTuple):
    """One layer that stands several times in a list of layers."""

    path: str
    """The list: `net.blocks`; of layers with a name each, the first: `net.hidden0`."""
    container: str
    """`ModuleList`, `Sequential`, `ModuleDict`, `ParameterList`, `list`; `names` for layers with a name each.

    `mirror` for a row that holds the layers of another in reverse.
    """
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
    entry_count: int = 0
    """Entries with parameters, where there are others among them; 0 where all are this layer."""
    mirrored: str = ""
    """The list whose layers it holds in reverse, for `mirror`; then `count` are all of them."""
