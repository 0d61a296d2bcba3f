"""Gradients that were switched off for good."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import CallFact, ForwardFact, Place, Run
from torch_inspector.facts.blind_loss import NO_HISTORY, blind_loss
from torch_inspector.facts.made_blind import Blind
from torch_inspector.facts.switching import Switching, by_constructor, restores_off, switches, switching
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SWITCHES_ON = re.compile(r"set_grad_enabled\((?!\s*(mode\s*=\s*)?False)|enable_grad")
# Last parts of calls that can leave gradients off.
_SWITCHES = ("set_grad_enabled", "__enter__", "enter_context", "inference_mode", "no_grad")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds training while gradients are off from before, or from a call in the same cell that nothing took back."""
    made = blind_loss(run)
    if made is not None and run.after.grad_enabled:
        yield _too_late(run, made)
        return
    if run.before.grad_enabled and run.after.grad_enabled:
        return
    line = _needs_history(run)
    if line is not None and not (run.error is not None and run.after.grad_enabled):
        yield _in_vain(run, line)
    elif run.before.grad_enabled and not run.after.grad_enabled and _is_left(run):
        yield _left_off(run)


def _needs_history(run: Run) -> Place | None:
    """Where a graph was wanted: a `backward()` that failed, or steps that nothing reached."""
    if run.error is not None and NO_HISTORY in run.error.message:
        return run.error.place
    steps = [step for step in run.trace.steps if step.empty_gradients or step.unreached]
    for call in run.trace.forwards:
        stepped = [step for step in steps if step.parameter_keys & call.parameter_keys and step.order > call.order]
        if stepped and _is_blind(call):
            return call.place
    return None


def _is_blind(call: ForwardFact) -> bool:
    return call.training and not call.grad_enabled and not call.output_requires_grad


def _is_left(run: Run) -> bool:
    return _has_trained(run) or _leaks(run) or restores_off(run) or _is_hidden(run)


def _is_hidden(run: Run) -> bool:
    """True if a constructor did it where an optimizer is at hand, and nothing of the notebook sets them again."""
    text = "\n".join(one.cell.source for one in (run, *run.earlier))
    return bool(run.after.optimizers) and not _SWITCHES_ON.search(text) and by_constructor(run)


def _has_trained(run: Run) -> bool:
    """True if an optimizer is at hand that has made steps, or one of a function of the cell has made some."""
    steps = [one.trace.count("step") for one in (run, *run.earlier)]
    return bool(steps[0]) or (bool(run.after.optimizers) and any(steps))


def _leaks(run: Run) -> bool:
    """True if a function that switched gradients off for what it does called a model that is to be trained."""
    made = {(one.function, one.place.cell) for one in switches(run)}
    blind = (call for call in run.trace.forwards if not call.grad_enabled and call.trainable_count)
    calls = [call for call in blind if (call.place.function, call.place.cell) in made]
    again = any(
        m.training and m.module == call.module and m.order > call.order for call in calls for m in run.trace.modes
    )
    text = "\n".join(one.cell.source for one in (run, *run.earlier))
    # Who trains may switch them on before: then both functions do their own.
    if not calls or _SWITCHES_ON.search(text):
        return False
    return again or bool(run.after.optimizers) or ".backward(" in text


def _switched_in(run: Run) -> tuple[int | None, CallFact | None]:
    """The cell that left gradients off, and the call in its text that may have done it."""
    for one in (run, *reversed(run.earlier)):
        if one.before.grad_enabled and not one.after.grad_enabled:
            calls = [call for call in _all_calls(run, one) if _switches(call)]
            return one.cell.number, calls[-1] if calls else None
    return None, None


def _all_calls(run: Run, one: Run) -> tuple[CallFact, ...]:
    """Calls in the text of a cell; where it calls a function of an earlier cell, of all cells before it too."""
    own = one.trace.calls
    if any(_switches(call) for call in own):
        return own
    return tuple(call._replace(line=0) for past in run.earlier for call in past.trace.calls)


def _by_function(run: Run) -> Switching | None:
    """The function of an earlier cell that did it, where the cell that left gradients off has no such call itself."""
    one = next((one for one in (run, *reversed(run.earlier)) if one.before.grad_enabled), None)
    if one is None or one.after.grad_enabled or any(_switches(call) for call in one.trace.calls):
        return None
    return switching(run, one)


def _switches(call: CallFact) -> bool:
    return call.name.rpartition(".")[2] in _SWITCHES


def _origin(run: Run) -> str:
    cell, call = _switched_in(run)
    by = _by_function(run)
    if by is not None:
        where = "here" if cell == run.cell.number else f"in cell {cell}"
        return f"by `{by.name}(...)` in `{by.said}()` ({by.place.said_in(run.cell.number)}), called {where},"
    name = f"`{call.name}(...)`" if call is not None else "a call"
    if cell is None:
        return "before"
    if cell == run.cell.number:
        return f"by {name} in this cell"
    return f"by {name} in cell {cell}"


def _too_late(run: Run, made: Blind) -> Finding:
    """Of gradients that are on again, and a loss from before that."""
    error = run.error
    root, place = (error.root or "the loss", error.place) if error is not None else ("the loss", Place())
    here = made.run is run
    what = f"`{root}`" if root != "the loss" else root
    what = what if made.name in ("", root) else f"{what} comes from `{made.name}`, which"
    where = "here" if here else f"in cell {made.run.cell.number}"
    return Finding(
        message=f"{what} was computed {where} while gradients were off: it has no graph, though they are on again.",
        subject="torch.set_grad_enabled",
        fix=_again(run, made.run, made.name or root),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("gradients before the cell" if here else "gradients after that cell", "off"),
            Evidence("gradients after this cell", "on"),
        ),
    )


def _again(run: Run, made: Run, root: str) -> str:
    """How the loss gets a graph: a cell that switches gradients off itself would only do it again."""
    if made is run:
        return f"# compute {root} after the line that switches gradients on"
    once_more = f"run cell {made.cell.number} once more"
    own = [Place(made.cell.number, call.line).said_in(run.cell.number) for call in made.trace.calls if _switches(call)]
    by = switching(run, made)
    where = own[0] if own else by.place.said_in(run.cell.number) if by is not None else ""
    if not where and not made.before.grad_enabled:
        return f"# compute {root} again, now that gradients are on: {once_more}"
    taken = f"take out what switches gradients off ({where or f'in cell {made.cell.number}'}), or put"
    return f"# {taken} `with torch.no_grad():` around what needs none; then {once_more}"


def _in_vain(run: Run, place: Place) -> Finding:
    again = "not on again before this line" if run.after.grad_enabled else "not on again"
    return Finding(
        message=f"Gradients were switched off {_origin(run)} and {again}: there is no graph for training here.",
        subject="torch.set_grad_enabled",
        fix="torch.set_grad_enabled(True)  # here; and `with torch.no_grad():` around what needs no gradients",
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("gradients before the cell", "on" if run.before.grad_enabled else "off"),
            Evidence("gradients after the cell", "on" if run.after.grad_enabled else "off"),
            Evidence("switched off", _origin(run).rstrip(",")),
            *((Evidence("error", run.error.message[:80]),) if run.error is not None else ()),
        ),
    )


def _back_by_itself(run: Run) -> str:
    by = _by_function(run)
    if by is not None and restores_off(run):
        return f"with torch.enable_grad():  # in {by.said}(), in place of both calls; it switches back by itself"
    return "with torch.no_grad():  # around what needs no gradients; it switches back by itself"


def _left_off(run: Run) -> Finding:
    _, call = _switched_in(run)
    names = [one.path or one.kind for one in run.after.optimizers[:3]]
    return Finding(
        message=f"Gradients were switched off {_origin(run)} and are still off at the end of the cell.",
        subject="torch.set_grad_enabled",
        fix=_back_by_itself(run),
        line=call.line or None if call is not None else None,
        severity="hint",
        evidence=(
            Evidence("gradients before the cell", "on"),
            Evidence("gradients after the cell", "off"),
            *((Evidence("optimizers", ", ".join(names)),) if names else ()),
        ),
    )
