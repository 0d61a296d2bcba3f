"""A state dict that was kept without a copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torch_inspector.facts import AliasFact, CallFact, ExpressionFact, LoadFact, Place, Run
from torch_inspector.facts.deep_copies import copier, others_beside, with_copy
from torch_inspector.facts.read_first import is_read_first
from torch_inspector.facts.sole import called, sole
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Names for what should stay as it was.
_MEANT_TO_STAY = re.compile(
    r"best|snap|saved|backup|back_up|init|start|orig|before|prev|earlier|old|restore|rollback|reference|untrained|frozen",
    re.IGNORECASE,
)
# A save so close after the line uses the state while it is right.
_SAVE_LINES = 4
_SEVERAL = 2
_SLUG = "state-dict-alias"


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds kept state dicts, or models, that later steps have changed, and loads that give a model its own weights."""
    # Each turn of a loop may load the same.
    given_back = [_is_itself(run, load) for load in {(one.place, one.state): one for one in _loads(run)}.values()]
    known = {(one.path, one.key, one.count) for one in run.before.aliases if one.moved}
    kept = [one for one in run.after.aliases if one.moved and (one.path, one.key, one.count) not in known]
    follow = [_follows(run, one) for one in kept if _is_kept(run, one)]
    yield from (_with_its_loads(one, given_back) for one in follow)
    yield from (one for one in given_back if one.fix not in {other.fix for other in follow})
    for fact in run.expressions("second-name"):
        if run.trace.count("step") >= _SEVERAL:
            yield _is_second_name(run, fact)
    told = {one.path for one in kept if _is_kept(run, one)}
    said = told | {one.subject for past in run.earlier for one in past.findings if one.slug == _SLUG}
    yield from (_shows_the_same(fact) for fact in run.expressions("kept-weights") if fact.names[0] not in said)
    for fact in run.expressions("piled-weights"):
        if run.trace.count("step") >= _SEVERAL and fact.names[0] not in told and _is_new(run, fact):
            yield _is_piled(fact)
    for fact in run.expressions("namesake"):
        if run.trace.count("step") >= _SEVERAL and _is_new(run, fact):
            yield _is_namesake(run, fact)


def _is_new(run: Run, fact: ExpressionFact) -> bool:
    """True unless another cell has told the same: each cell that steps finds it again."""
    first = next((past for past in run.earlier if past.trace.count("step") >= _SEVERAL and _has(past, fact)), run)
    return first.cell.source == run.cell.source


def _has(run: Run, fact: ExpressionFact) -> bool:
    return any((one.place, one.names) == (fact.place, fact.names) for one in run.expressions(fact.kind))


def _loads(run: Run) -> list[LoadFact]:
    return [one for one in run.trace.loads if one.itself]


def _with_its_loads(follows: Finding, given_back: list[Finding]) -> Finding:
    """One finding for a state that is kept and loaded again: what the load does not do, where it was kept."""
    load = next((one for one in given_back if one.fix == follows.fix), None)
    if load is None:
        return follows
    line = (Evidence("loaded in line", load.line),) if load.line is not None else ()
    return replace(load, line=follows.line, cell=follows.cell, severity="error", evidence=(*load.evidence, *line))


def _is_kept(run: Run, one: AliasFact) -> bool:
    if one.count >= _SEVERAL:
        return True
    if _MEANT_TO_STAY.search(one.path):
        return not is_read_first(run, one)
    saved = one.saved or any(_saves(call, one) for call in _calls_of(run, one.place.cell))
    return one.conditional and not saved and not is_read_first(run, one)


def _calls_of(run: Run, cell: int | None) -> tuple[CallFact, ...]:
    for past in (run, *reversed(run.earlier)):
        if past.cell.number == cell:
            return past.trace.calls
    return ()


def _saves(call: CallFact, one: AliasFact) -> bool:
    line = one.place.line
    if line is None or call.name.rpartition(".")[2] not in ("save", "dump", "save_file", "load_state_dict"):
        return False
    return abs(call.line - line) <= _SAVE_LINES


def _copied(run: Run, place: Place | None, model: str) -> str:
    """The statement that keeps the state, with a copy; else what is to stand in it."""
    statement = with_copy(run, place) if place is not None else ""
    if statement and place is not None:
        return f"{statement}  # {place.said_in(run.cell.number)}"
    function, first = copier(run)
    return f"{first}{function}({model}.state_dict())  # in place of {model}.state_dict(), where it is kept"


def _follows(run: Run, one: AliasFact) -> Finding:
    model = one.module or one.kind
    several = one.count >= _SEVERAL
    beside = [name for name in others_beside(run, one.place, model) if name in _with_moments(run, one)]
    also = f" So does that of `{beside[0]}` beside it." if beside else ""
    what = f"All {one.count} state dicts in `{one.path}` are" if several else f"`{one.path}` is"
    return Finding(
        message=(
            f"{what} no {'copies: they show' if several else 'copy: it shows'} the weights of `{model}` as they are "
            f"now, after the steps that followed.{also}"
        ),
        subject=one.path,
        fix=_copied(run, one.place, model),
        line=one.place.line,
        cell=one.place.cell,
        severity="error" if several else "",
        evidence=(
            Evidence("model", f"{model} ({one.kind})"),
            Evidence("state dicts that share its memory", one.count, "count"),
            Evidence("changed since", "by steps written by hand" if one.by_hand else "by optimizer steps"),
        ),
    )


def _with_moments(run: Run, one: AliasFact) -> set[str]:
    """Optimizers that had moments when the state was taken: before the first step they give a dictionary of nothing."""
    stepped = {step.optimizer for past in (*run.earlier, run) for step in past.trace.steps} if one.step_count else set()
    # SGD may have no state; all others keep moments. Of several that step, nobody knows which had begun.
    known = [each for each in run.after.optimizers if each.kind != "SGD" and stepped == {each.key}]
    return {each.path for each in known}


def _is_second_name(run: Run, fact: ExpressionFact) -> Finding:
    kept, model = fact.names
    parameters = fact.text.startswith(("dict(", "list(", "[", "{"))
    what = f"the parameters of `{model}` themselves, no copy" if parameters else f"`{model}` itself, no copy"
    if _is_shallow(fact):
        what = f"a shallow copy of `{model}`, with the same parameters"
    return Finding(
        message=f"`{kept}` is given {what}: the steps of later turns of the loop change it as well.",
        subject=kept,
        fix=f"{_imported(run, fact)}  # what is kept then stays as it is",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="" if fact.sure else "hint",
        evidence=(Evidence("kept", fact.text),),
    )


def _imported(run: Run, fact: ExpressionFact) -> str:
    """The assignment of a copy, by the name that the cells have for the function, or after its import."""
    function, first = copier(run) if fact.detail.startswith("copy.deepcopy(") else ("", "")
    if _is_shallow(fact) and "copy.copy(" not in fact.text:
        function, first = "deepcopy", "from copy import deepcopy\n"  # `copy` is a function there
    return f"{first}{fact.names[0]} = {function}{fact.detail.removeprefix('copy.deepcopy')}"


def _is_shallow(fact: ExpressionFact) -> bool:
    return fact.detail.removeprefix("copy.deep") in fact.text


def _is_piled(fact: ExpressionFact) -> Finding:
    kept, model = fact.names
    count = fact.shapes[0][0]
    return Finding(
        message=(
            f"`{kept}` holds the weights of `{model}` {count} times, and none is a copy: all {count} show them as they "
            "are now, after the steps that followed."
        ),
        subject=kept,
        fix=f"{fact.detail}  # what is kept then stays as it is",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="" if fact.sure else "hint",
        evidence=(Evidence("kept", fact.text), Evidence("entries that share memory", count, "count")),
    )


def _shows_the_same(fact: ExpressionFact) -> Finding:
    kept, model, used = fact.names
    # What became of it: written back, compared, or nothing so far.
    does = (
        "writes them into themselves and changes nothing"
        if fact.target
        else ("compares them with themselves and never finds a difference")
    )
    return Finding(
        message=(
            f"`{kept}` is no copy: it shows the weights of `{model}` themselves, which steps have changed since."
            f"{f' `{used}` {does}.' if used else ''}"
        ),
        subject=kept,
        fix=f"{fact.detail}  # what is kept then stays as it is",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="" if fact.sure else "hint",
        evidence=(Evidence("kept", fact.text),),
    )


def _is_namesake(run: Run, fact: ExpressionFact) -> Finding:
    behind, model = fact.names
    shallow = (
        f"a shallow copy of `{model}`, with the same parameters" if _is_shallow(fact) else f"`{model}` itself, no copy"
    )
    return Finding(
        message=f"`{behind}` is {shallow}: each step of the optimizer moves both at once.",
        subject=behind,
        fix=f"{_imported(run, fact)}  # later: {behind}.load_state_dict({model}.state_dict())",
        line=fact.place.line,
        cell=fact.place.cell,
        # A shallow copy may be there for what it has of its own beside the weights.
        severity="hint" if _is_shallow(fact) else "",
        evidence=(Evidence("given", fact.text),),
    )


def _kept_at(run: Run, load: LoadFact) -> Place | None:
    """The line that took the state which is loaded, if it is known."""
    own = [one for one in run.after.aliases if one.key == load.module]
    named = [one.place for one in own if one.path == load.state]
    # Of several that are kept, only the name tells which was loaded.
    known = next(iter(named or [one.place for one in own if len(own) == 1]), None)
    if known is None and own:
        return None
    written = sole(run, lambda node: called(node) == "state_dict") if known is None else None
    return written.place if written is not None else known


def _is_itself(run: Run, load: LoadFact) -> Finding:
    model = run.module_path(load.module) or run.optimizer_path(load.module) or load.name or load.kind
    nothing = "leaves its moments as they are" if load.of_optimizer else "changes nothing"
    state = f"`{load.state}`" if load.state else "the state dict"
    return Finding(
        message=f"Loading {state} into `{model}` {nothing}: it is no copy and followed the training.",
        subject=load.state or model,
        fix=_copied(run, _kept_at(run, load), model),
        line=load.place.line,
        cell=load.place.cell,
        severity="warning" if load.of_optimizer else "error",
        evidence=(
            Evidence("model", f"{model} ({load.kind})"),
            Evidence("keys", load.state_count, "count"),
            Evidence("memory", f"that of the {'optimizer' if load.of_optimizer else 'model'}'s own tensors"),
        ),
    )
