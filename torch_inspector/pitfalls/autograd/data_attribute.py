"""A change through `.data` between a forward pass and its backward pass."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, DataEditFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What has a twin that gives a new tensor.
_IN_PLACE = re.compile(r"\.data\.(clamp|mul|add|sub|div|round|abs|neg|floor|ceil|pow|masked_fill)_\(([^()]*)\)")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds changes that autograd does not see, on a tensor that the graph of the `backward()` after them has used."""
    if run.error is not None:
        return
    for one in (run, *run.earlier):
        for edit in one.trace.data_edits:
            calls = _calls(run, edit, one.cell.number)
            if calls and edit.made_by:
                yield from _of_result(run, edit, one.cell.number)
            elif calls:
                yield _finding(edit, one.cell.number, is_leaf=any(_reached(run, edit, call) for call in calls))


def _of_result(run: Run, edit: DataEditFact, cell: int | None) -> Iterator[Finding]:
    """A result that its own function needs again, if it is one with a history."""
    if cell != run.cell.number:
        return
    if any(one.path == edit.path and one.requires_grad and not one.is_leaf for one in run.after.tensors):
        yield Finding(
            message=(
                f"`{edit.text}` changes `{edit.path}` unseen by autograd, and `{edit.made_by}` (line "
                f"{edit.forward_line}) works out its gradient from the numbers that it gave: it is wrong without an "
                "error."
            ),
            subject=edit.path,
            fix=_seen(edit),
            line=edit.line,
            cell=cell,
            evidence=(Evidence("backward() in line", edit.backward_line),),
        )


def _seen(edit: DataEditFact) -> str:
    """The same change as a new tensor."""
    call = _IN_PLACE.fullmatch(edit.text.removeprefix(edit.path))
    if call is not None:
        return f"{edit.path} = {edit.path}.{call[1]}({call[2]})  # in place of {edit.text}"
    return f"# give {edit.path} a new value in this line, which autograd sees: {edit.path} = {edit.path} * 2"


def _later(edit: DataEditFact) -> str:
    """The same change where autograd counts it, once it does no harm."""
    call = _IN_PLACE.fullmatch(edit.text.removeprefix(edit.path))
    if call is not None:
        return f"with torch.no_grad():  # after backward()\n    {edit.path}.{call[1]}_({call[2]})"
    return f"change {edit.path} itself under torch.no_grad(), after backward()"


def _calls(run: Run, edit: DataEditFact, cell: int | None) -> list[BackwardFact]:
    """The calls of that `backward()` in this run."""
    here = (cell, edit.backward_line, edit.function)
    return [b for b in run.trace.backwards if (b.place.cell, b.place.line, b.place.function) == here]


def _reached(run: Run, edit: DataEditFact, call: BackwardFact) -> bool:
    """True if the graph ends in that tensor, or in a parameter of the module that it belongs to."""
    keys = call.leaf_keys
    of_tensors = {one.key for one in run.after.tensors if one.path == edit.path}
    of_modules = {key for one in run.after.modules if one.path == edit.owner for key in one.parameter_keys}
    return bool(keys & (of_tensors | of_modules))


def _finding(edit: DataEditFact, cell: int | None, *, is_leaf: bool) -> Finding:
    when = f"after the forward pass (line {edit.forward_line}) and before backward() (line {edit.backward_line})"
    what = "gradients that need its old value are wrong without an error"
    return Finding(
        message=f"`{edit.text}` changes `{edit.path}` {when}, unseen by autograd: {what}.",
        subject=edit.path,
        fix=_later(edit),
        line=edit.line,
        cell=cell,
        evidence=(
            Evidence("forward pass in line", edit.forward_line),
            Evidence("backward() in line", edit.backward_line),
        ),
        # Whether the old value is needed is not seen for a tensor that is no leaf.
        severity="" if is_leaf else "hint",
    )
