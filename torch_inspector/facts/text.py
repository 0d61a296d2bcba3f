"""What the text of a cell says."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place, Shape


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
    bound: str = ""
    """The lambda, or the first line of the `def`, with the names as default arguments; empty if it is long."""


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
    nbytes: int = 0
    """Of what it makes on the way; 0 where that does not matter."""


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
    looped: str = ""
    """What the loop goes through whose own variable it is, if nothing reads it after that: `net.parameters()`."""


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
    made_by: str = ""
    """Of a result that goes on to the loss: the function that gave it, and works out its gradient from it."""


class GradReadFact(NamedTuple):
    """A place in the source of the cell that reads `.grad` of a name."""

    path: str
    line: int
