"""A mixed mode that is restored as if it were one."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, LayerCounts, ModeFact, Place, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds training with layers awake that slept in the training before an evaluation."""
    said: set[Place] = set()
    for call in run.trace.forwards:
        if not call.awake or not _trains(call, run):
            continue
        found = _woken(run, call)
        if found is not None and found[1].place not in said:
            said.add(found[1].place)
            yield _finding(run, call, *found)


def _trains(call: ForwardFact, run: Run) -> bool:
    if not call.training or not call.grad_enabled:
        return False
    return any(step.parameter_keys & call.parameter_keys for step in run.trace.steps)


def _woken(run: Run, call: ForwardFact) -> tuple[LayerCounts, ModeFact] | None:
    """The layers that woke since the training pass before, and the `train()` that woke them."""
    earlier = _pass_before(run, call)
    if earlier is None:
        return None
    order, before = earlier
    if before.trainable_count != call.trainable_count:
        return None  # the next stage of a training that unfreezes layers
    woken = _difference(before.asleep, call.asleep)
    own = [m for m in run.trace.modes if order < m.order < call.order]
    here = [m for m in own if m.module == call.module]
    if not woken or len(here) < 2 or not here[-1].training or here[-2].training:  # noqa: PLR2004
        return None
    parts = [m for m in own if m.module != call.module and m.order > here[-2].order]
    return None if parts or _is_usual(run, here[-1], order) else (woken, here[-1])


def _pass_before(run: Run, call: ForwardFact) -> tuple[int, ForwardFact] | None:
    """The training pass before a call, and its position in this cell; 0 for one of an earlier cell."""
    own = [f for f in run.trace.forwards if f.order < call.order and f.module == call.module and f.training]
    own = [f for f in own if f.grad_enabled]
    if own:
        return own[-1].order, own[-1]
    past = [f for one in run.earlier for f in one.trace.forwards if f.module == call.module]
    past = [f for f in past if f.training and f.grad_enabled]
    return (0, past[-1]) if past else None


def _difference(before: LayerCounts, after: LayerCounts) -> LayerCounts:
    now = dict(after)
    return tuple((kind, count - now.get(kind, 0)) for kind, count in before if count > now.get(kind, 0))


def _is_usual(run: Run, mode: ModeFact, order: int) -> bool:
    """True if the same line had been reached before: then the layers were put to sleep after it, and now are not."""
    own = (m for m in run.trace.modes if m.order < order)
    past = (m for one in run.earlier for m in one.trace.modes)
    return any((m.place, m.module, m.training) == (mode.place, mode.module, True) for m in (*past, *own))


def _finding(run: Run, call: ForwardFact, woken: LayerCounts, mode: ModeFact) -> Finding:
    name = run.path_of(call)
    layers = ", ".join(f"{count} {kind}" for kind, count in woken)
    are = "is" if sum(count for _, count in woken) == 1 else "are"
    return Finding(
        message=f"`train()` on the whole of `{name}` woke {layers} that slept before the evaluation and {are} on now.",
        subject=name,
        fix=(
            f"modes = [(layer, layer.training) for layer in {name}.modules()]  # before {name}.eval()\n"
            "for layer, mode in modes:  # instead of train()\n"
            "    layer.training = mode"
        ),
        line=mode.place.line,
        cell=mode.place.cell,
        evidence=(
            Evidence("layers that woke", layers),
            Evidence("training pass after it", f"line {call.place.line}"),
        ),
    )
