"""What mends a line that loses the history of a tensor, in the words of the line where that can be said."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.decorated import called_itself, decorated_name
from torch_inspector.facts.from_scores import from_chances, from_scores
from torch_inspector.facts.functional import functional
from torch_inspector.facts.in_torch import in_torch
from torch_inspector.facts.remade import made_again, made_around
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.severed import PUT_IN
from torch_inspector.facts.wrapped import out_of_block, unwrapped

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

# `loss` in `loss.item()` and in `float(loss)`.
_NUMBER = re.compile(r"(?P<method>[^….][^…]*)\.item\(\)|float\((?P<given>[\w.]+)\)")
# The same for what leaves the values as they are.
_VALUES = re.compile(
    r"(?P<method>[^….][^…]*?)(?P<cut>\.item\(\)|\.detach\(\)|\.data)"
    r"|float\((?P<given>[^…,]+)\)"
)
# Kinds of cuts whose fix is lines of code.
_LINES = ("leaf", "data", "detach")
DETACHED_LEAF = re.compile(r"\.detach\(\)(\.clone\(\))?\.requires_grad_\(")
# What each kind of cut does, with its text.
_HOW = {
    "detach": "`{}` gives the values without their history",
    "data": "`{}` gives the values without their history",
    "item": "`{}` gives a plain number",
    "numpy": "`{}` leaves PyTorch, and NumPy keeps no history",
    "tensor": "`{}` makes a new tensor from the values",
    "leaf": "`{}` takes the values without their history",
    "argmax": "`{}` gives positions, which have no gradient",
    "whole": "`{}` gives whole numbers, which have no gradient",
    "compare": "`{}` gives true or false, which has no gradient",
    "drawn": "`{}` draws numbers, which have no gradient",
    "parameter": "`{}` makes a new leaf from the values, without their history",
    "written": "`{}` takes over the values without their history",
    "no_grad": "`{}` is around it",
}
_LEFT = "leave the values as they are between model and loss"
_FIXES = {
    "argmax": "compute the loss from the scores or from softmax; keep argmax for measuring",
    "compare": "compute the loss from the scores or from sigmoid; keep the threshold for measuring",
    "whole": "compute the loss from the scores; round only for measuring",
    "no_grad": "compute the training pass outside it",
    "numpy": "stay in PyTorch on this way: a function of torch in the place of each of NumPy, and no .numpy()",
    "tensor": "use the tensor itself, or torch.stack for several",
}


def how(cut: CutFact) -> str:
    """What the cut does: "`loss.item()` gives a plain number"; its text alone where the kind has no words."""
    return _HOW.get(cut.kind, "`{}`").format(cut.text)


def given_to(run: Run, cut: CutFact, root: str) -> str:
    """The words `pred`, for the variable that the line of a cut gives its value; empty for the loss.

    For a decorator inside of another one: `wrapper` of `@timed`.
    """
    tree = syntax.parse(run.source_of(cut.place.cell))
    if cut.text.startswith("@") and tree is not None:
        name = decorated_name(run, cut)
        return _wrapper_at(run, tree, cut.place.line or 0) or (f"`{name}`, " if name else "")
    stored = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign)] if tree is not None else []
    targets = [one.targets[0] for one in stored if one.lineno == cut.place.line and len(one.targets) == 1]
    names = [one.id for one in targets if isinstance(one, ast.Name) and one.id != root]
    return f"`{names[0]}`, " if len(names) == len(targets) == 1 else ""


def _decorated(run: Run, cut: CutFact) -> str:
    name = decorated_name(run, cut)
    return f"{name}()" if name else "the function"


def _wrapper_at(run: Run, tree: ast.Module, line: int) -> str:
    """`wrapper` of `@timed`, if the decorator in a line is that of a function which a decorator makes."""
    functions = (one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    inner = next((one for one in functions if any(each.lineno == line for each in one.decorator_list)), None)
    outer = syntax.function_around(tree, line) if inner is not None else None
    texts = [past.cell.source for past in (run, *run.earlier)]
    if inner is None or outer is None or inner is outer or not any(f"@{outer.name}" in text for text in texts):
        return ""
    return f"`{inner.name}` of `@{outer.name}`, "


def uncut(run: Run, cut: CutFact | None, cell: int | None, root: str = "", cuts: tuple[CutFact, ...] = ()) -> str:
    """The mended line, or words for it; `cell` is the one that is spoken of, `root` the loss, `cuts` all behind it."""
    if cut is None:
        return _LEFT
    if cut.text.startswith("@"):
        other = called_itself(run, cut, cell)
        return other or f"take {cut.text} away from {_decorated(run, cut)}  # {cut.place.said_in(cell)}"
    call = _NUMBER.fullmatch(cut.text)
    if call is not None and cut.kind == "item":
        return f"{call['method'] or call['given']}  # in place of {cut.text}"
    whole = unwrapped(run, cut, cuts)
    if whole or cut.kind == "leaf":
        return whole or _unwrapped(run, cut)
    if cut.kind in ("detach", "data") and attached(cut):
        return f"{in_statement(run, cut.place, cut.text, attached(cut))}  # without {_cut_in(cut)}"
    kind = "numpy" if cut.text.startswith("torch.from_numpy(") else cut.kind
    return _rewritten(run, cut, kind, root) or _FIXES.get(kind, _LEFT)


def _unwrapped(run: Run, cut: CutFact) -> str:
    """The line of a `Variable(loss, requires_grad=True)` without it."""
    call = syntax.expression(cut.text)
    if not isinstance(call, ast.Call) or not call.args:
        return f"# without {cut.text}"
    new = in_statement(run, cut.place, cut.text, ast.unparse(call.args[0]))
    target, _, value = new.partition(" = ")
    return f"# take this line out: {target} = {cut.text}" if target == value else f"{new}  # without {cut.text}"


def _rewritten(run: Run, cut: CutFact, kind: str, root: str) -> str:
    """The lines of the user with another way in the place of the cut; empty where that cannot be said."""
    if kind == "drawn":
        return from_chances(run, cut, root)
    if kind in PUT_IN:
        return functional(run, cut)
    if kind == "argmax":
        return from_scores(run, cut)
    return in_torch(run.source_of(cut.place.cell), cut.place.line) if kind == "numpy" else ""


def telling(cuts: tuple[CutFact, ...]) -> CutFact | None:
    """Of several cuts the one that says most: a draw, or a wrapped value after `no_grad`; else the nearest."""
    drawn = next((one for one in cuts if one.kind == "drawn"), None)
    after = next((one for one in cuts if one.kind != "no_grad"), None)
    wrapped = after is not None and after.kind == "leaf" and "requires_grad=True" in after.text
    return drawn or (after if wrapped else next(iter(cuts), None))


def also_off(run: Run, cut: CutFact | None, cuts: tuple[CutFact, ...], cell: int | None, fix: str) -> tuple[str, str]:
    """Words and the whole fix for gradients that were off as well behind a cut; no words where they were not."""
    off = next((one for one in cuts if one.kind == "no_grad"), None)
    if off is None or cut is None or cut.kind == "no_grad":
        return "", fix
    words = f", and `{off.text}` ({off.place.said_in(cell)}) is around what these come from"
    if off.text.startswith("@"):
        return words, f"{fix}\n# {uncut(run, off, cell)}"
    block = out_of_block(run, off.place, cut.place) if cut.kind in _LINES else ""
    return words, f"{block}\n{fix}" if block else f"{fix}\n# outside of {off.text} ({off.place.said_in(cell)})"


def attached(cut: CutFact) -> str:
    """`loss` of `loss.item()`, `loss.detach()`, `loss.data` and `float(loss)`; empty for other texts."""
    found = _VALUES.fullmatch(cut.text)
    return (found["method"] or found["given"]) if found is not None else ""


def _cut_in(cut: CutFact) -> str:
    found = _VALUES.fullmatch(cut.text)
    return (found["cut"] or "float()") if found is not None else cut.text


def term_kept(run: Run, cut: CutFact) -> str:
    """The line of a term that a loss takes as a number, as it keeps the history; else words for it."""
    value = attached(cut)
    if not value or cut.kind not in ("item", "detach", "data"):
        return uncut(run, cut, cut.place.cell)
    made = made_around(run.source_of(cut.place.cell), cut.place.line, cut.text)
    again = made_again(cut.term)
    if made is not None:
        new = f"{value}.reshape(1)" if made.many else value
        return f"{in_statement(run, cut.place, made.text, new)}  # without {made.by}()"
    also = f", and {again.given} in place of {again.text}" if again is not None and cut.text not in again.text else ""
    return f"{in_statement(run, cut.place, cut.text, value)}  # without {_cut_in(cut)}{also}"


def handed_on(run: Run, line: int | None, cell: int | None) -> str:
    """What keeps the history in a line that makes a leaf of values."""
    text = run.source_of(cell).splitlines()[(line or 1) - 1]
    if DETACHED_LEAF.search(text):
        return "take `.detach()` and `.requires_grad_()` out of this line"
    if "torch.tensor(" in text:
        return "torch.stack(…) of the tensors themselves, without requires_grad, in place of torch.tensor(…)"
    return "hand on the tensors themselves, without requires_grad"
