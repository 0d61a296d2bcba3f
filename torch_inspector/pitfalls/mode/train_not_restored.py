"""Training goes on in eval mode after a validation pass, or on a model that a library gave in eval mode."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, ModeFact, Place, Run, reading
from torch_inspector.facts.handed_out import hands_out, speaks_of_mode
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SLUG = "train-not-restored"
# A few calls may be a look at whether the loss can be computed.
_CALLS = 3
_EVAL = re.compile(r"\s*([\w.]+)\.eval\(\)")
_SAID = re.compile(r"([\w.]+)\.eval\(\)")
_MEANT = re.compile(
    r"frozen|freeze|teacher|target|fixed|stats|determin|reproduc|repeatab|asleep|no_?(dropout|noise)|in_?eval",
    re.IGNORECASE,
)
_DROPS = re.compile(r"Drop|^(RNN|LSTM|GRU|MultiheadAttention)$")
# Who writes one of these thinks of the mode.
_MODES = re.compile(r"\beval\b|\.train\b|\.training\b|\bmode\b")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds steps of a module whose mode-dependent layers all sleep, since an inference pass or from the start."""
    told: set[tuple[int, int | None, str]] = set()
    for call in run.trace.forwards:
        where = (call.module, call.place.cell, call.place.function)
        found = None if where in told else _judge(run, call)
        if found is not None:
            told.add(where)  # several calls in one step have one cause
            yield found


def _judge(run: Run, call: ForwardFact) -> Finding | None:
    if not _trains_asleep(call) or not _is_stepped(call, run):
        return None
    inference = _inference_before(call, run)
    if inference is not None and not _switched_between(run, call, *inference):
        return _finding(run, call, *inference)
    return _given_asleep(run, call) if inference is None and _came_asleep(run, call) else None


def _trains_asleep(call: ForwardFact) -> bool:
    if not call.grad_enabled or call.awake or not call.asleep:
        return False
    only_frozen = sum(count for _, count in call.asleep) == call.frozen_asleep
    # Calls in train mode are not asked whether backward reaches them: nearly all are there to be trained.
    return (call.reached is True or call.training) and not only_frozen


def _is_stepped(call: ForwardFact, run: Run) -> bool:
    after = (step for step in run.trace.steps if step.order > call.order)
    return any(step.parameter_keys & call.parameter_keys for step in after)


def _inference_before(call: ForwardFact, run: Run) -> tuple[int, ForwardFact] | None:
    """The last evaluation pass before the call with its position in this cell, 0 for one in an earlier cell."""
    own = [f for f in run.trace.forwards if f.order < call.order and _is_inference(f, call)]
    # A pass that feeds each step, as the old policy's answers in PPO, is no evaluation: eval mode is then the choice.
    own = [f for f in own if not run.trace.feeds_training(f)]
    if own:
        return own[-1].order, own[-1]
    seen = [f for past in run.earlier for f in past.trace.forwards if _is_inference(f, call)]
    return (0, seen[-1]) if seen else None


def _is_inference(other: ForwardFact, call: ForwardFact) -> bool:
    """True for a pass of the module, of what it wraps or of a part of it, in eval mode, that nothing learned from."""
    if other.training or not other.asleep or (other.grad_enabled and other.reached is not False):
        return False
    if other.module == call.module:
        return not call.training
    # A wrapper or the whole is in train mode of its own while the layers that it shares sleep.
    keys = other.parameter_keys
    return bool(keys) and (keys <= call.parameter_keys or call.parameter_keys <= keys)


def _switched_between(run: Run, call: ForwardFact, inference: int, other: ForwardFact) -> bool:
    """True if the user set the mode after the inference pass: training in eval mode is then meant.

    An `eval()` in the function that makes the pass belongs to the pass.
    """
    modes = [m for m in run.trace.modes if m.module == call.module and inference < m.order < call.order]
    function = other.place.scope
    return any(m.training or not m.place.function or m.place.scope != function for m in modes)


def _came_asleep(run: Run, call: ForwardFact) -> bool:
    """True if a model that learns as a whole was made in a watched cell, asleep, and no cell has a word about modes."""
    runs = (*run.earlier, run)
    known = any(module.key == call.module for module in runs[0].before.modules)
    told = any(f.slug == _SLUG and f.subject == run.path_of(call) for past in run.earlier for f in past.findings)
    handed = _handed_out(run, call)
    silent = not any(_says_mode(one, handed) for one in runs)
    whole = call.trainable_count == len(call.parameter_keys) and not call.training
    stepped = (step.parameter_keys for step in run.trace.steps)
    whole = whole and call.parameter_keys <= frozenset[int]().union(*stepped)
    return whole and silent and not known and not told and call.count >= _CALLS


def _says_mode(run: Run, handed: ModeFact | None) -> bool:
    """True if the cell has a word about modes, but for the line by which a function hands out the model."""
    lines = run.cell.source.splitlines()
    if handed is not None and handed.place.cell == run.cell.number and handed.place.line is not None:
        del lines[handed.place.line - 1]
    return any(map(_MODES.search, lines))


def _handed_out(run: Run, call: ForwardFact) -> ModeFact | None:
    """The `eval()` of the model by the function that made it and gives it back."""
    mode = _last_switch(run, call)
    if mode is None or mode.place.line is None or not mode.place.function or _MEANT.search(mode.place.function):
        return None
    source, line = run.source_of(mode.place.cell), mode.place.line
    if speaks_of_mode(source, line):
        return None
    here = source.splitlines()[line - 1 :]
    own = _EVAL.fullmatch(here[0].rstrip()) if here else None
    returned = own is not None and len(here) > 1 and here[1].strip() == f"return {own[1]}"
    return mode if returned or hands_out(source, line) else None


def _trained_awake(run: Run, call: ForwardFact) -> bool:
    """True if it was trained with these layers awake before: then eval mode is an oversight, not the plan."""
    past = [(f, earlier) for earlier in run.earlier for f in earlier.trace.forwards]
    own = [(f, run) for f in run.trace.forwards if f.order < call.order]
    return any(
        f.awake and f.training and f.grad_enabled and f.parameter_keys & call.parameter_keys and where.trace.steps
        for f, where in (*past, *own)
    )


def _layers(call: ForwardFact) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in call.asleep)


def _effect(call: ForwardFact) -> str:
    """What the layers did in place of what they are there for."""
    return ", ".join(f"{count} {kind} {_did(kind, count)}" for kind, count in call.asleep)


def _did(kind: str, count: int) -> str:
    if "Norm" in kind:
        return f"normalised with running statistics, which {'it' if count == 1 else 'they'} did not update"
    return "dropped nothing" if _DROPS.search(kind) else "behaved as for predictions"


def _given_asleep(run: Run, call: ForwardFact) -> Finding:
    name, layers, handed = run.path_of(call), _layers(call), _handed_out(run, call)
    made = f"as `{handed.place.function}()` returned it" if handed else "as it was made: no cell has set its mode"
    return Finding(
        message=f"`{name}` is trained in eval mode ({call.count} calls), {made}. {_effect(call)}.",
        subject=name,
        fix=f"{name}.train()  # before the loop",
        line=call.place.line,
        cell=call.place.cell,
        severity="hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("layers in eval mode", layers),
            Evidence("training calls in eval mode", call.count, "count"),
        ),
    )


def _finding(run: Run, call: ForwardFact, since: int, inference: ForwardFact) -> Finding:
    name, layers = run.path_of(call), _layers(call)
    known_as = f" of `{inference.name}`" if inference.module != call.module and inference.name else ""
    switch = _last_switch(run, call)
    evidence = [
        Evidence("module", f"{name} ({call.kind})"),
        Evidence("layers in eval mode", layers),
        Evidence("training calls in eval mode", call.count, "count"),
    ]
    if switch is not None and switch.place.line is not None:
        where = f"line {switch.place.line}" + (f" of cell {switch.place.cell}" if switch.place.cell else "")
        evidence.append(Evidence("eval() called at", where))
    return Finding(
        message=(
            f"`{name}` was trained in eval mode ({call.count} calls) after an evaluation pass{known_as}: "
            f"{_effect(call)}."
        ),
        subject=name,
        fix=_fix(run, call, since, inference),
        line=call.place.line,
        cell=call.place.cell,
        severity="" if _trained_awake(run, call) else "hint",
        evidence=tuple(evidence),
    )


def _fix(run: Run, call: ForwardFact, since: int, inference: ForwardFact) -> str:
    """Where `train()` is missing: the training loop may say it already, before an evaluation comes in between."""
    name, way = run.path_of(call), _evaluating(run, call, inference)
    said = any(m.module == call.module and m.training and m.order < since for m in run.trace.modes)
    if not said and not _begins_asleep(run, call):
        return f"{name}.train()  # at the start of each training epoch"
    if way:
        return f"{_named_at(run, call, way) or name}.train()  # at the end of {reading.function_at(run, way[0])}()"
    return f"{name}.train()  # after the evaluation"


def _begins_asleep(run: Run, call: ForwardFact) -> bool:
    """True if the cell evaluates before it first trains: what is said at the start of a turn is undone in that turn."""
    own = (f for f in run.trace.forwards if f.parameter_keys & call.parameter_keys)
    first = next(own, None)
    return first is not None and first is not call and _is_inference(first, call)


def _evaluating(run: Run, call: ForwardFact, inference: ForwardFact) -> tuple[Place, ...]:
    """The line of the function that both says `eval()` and makes a pass, then the lines on from there to the `eval()`.

    Empty where no function does both, or where it is the one that trains.
    """
    switch = _last_switch(run, call)
    passes = [inference, *(f for one in (run, *run.earlier) for f in one.trace.forwards if not f.training)]
    evaluates = {place.scope for one in passes for place in one.way if one is not call}
    trains = {place.scope for place in call.way}
    way = (switch.place, *switch.callers) if switch is not None else ()
    for index, place in enumerate(way):
        if place.function[:1] not in ("", "<") and place.scope in evaluates:
            return () if place.scope in trains else way[index::-1]
    return ()


def _named_at(run: Run, call: ForwardFact, way: tuple[Place, ...]) -> str:
    """What the first of the lines that lead to an `eval()` can call the module; empty if that is not plain.

    A method that is called there, `learner.rest()`, says `self.net.eval()`: the module is `learner.net` there.
    """
    name = _switched(run, call, way[-1])
    for here, there in zip(way[-2::-1], way[:0:-1], strict=True):
        owner = re.search(rf"([\w.]+)\.{re.escape(there.function)}\(", reading.line_at(run, here))
        if owner is None or not name.startswith("self."):
            return ""
        name = f"{owner[1]}.{name.removeprefix('self.')}"
    return name


def _switched(run: Run, call: ForwardFact, place: Place) -> str:
    """What a line that says `eval()` calls the module, unless it is one of a loop over several."""
    said = _SAID.findall(reading.line_at(run, place))
    own = said if len(said) == 1 else [one for one in said if one.split(".")[-1] == run.path_of(call).split(".")[-1]]
    looped = own and re.search(rf"\bfor\s(\w+, *)*{re.escape(own[0])}(, *\w+)*\sin\b", run.source_of(place.cell))
    return own[0] if own and not looped else ""


def _last_switch(run: Run, call: ForwardFact) -> ModeFact | None:
    """The latest `eval()` of the module: in this cell before the call, else in an earlier one."""
    own = [m for m in run.trace.modes if m.order < call.order]
    modes = [*(m for past in run.earlier for m in past.trace.modes), *own]
    return next((m for m in reversed(modes) if m.module == call.module and not m.training), None)
