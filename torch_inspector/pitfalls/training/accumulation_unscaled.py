"""Gradients of several batches are added up without dividing the loss."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, WindowFact, reading
from torch_inspector.facts.loss_scales import is_multiplied, scaled_loss
from torch_inspector.facts.lowered_rates import divided_rate
from torch_inspector.facts.modulus import modulus
from torch_inspector.facts.own_gradients import changes_gradients
from torch_inspector.facts.own_numbers import counted_by, is_divided_by, is_parted
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SCALED = ("MulBackward0", "DivBackward0")
# Weights are read in double precision, and may have been worked out in single.
_ROUNDED = 1e-6
# Optimizers whose step does not follow the length of the gradient.
_ADAPTIVE = ("Adam", "RMSprop", "Adagrad", "Adadelta", "Rprop", "Lion", "Muon", "Adafactor")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds windows of averaged losses none of which was divided by the size of the window."""
    for window in run.trace.windows:
        calls = [one for one in run.trace.backwards if one.place == window.backward_at and not one.is_grad_call]
        # Of gradients that are thrown away nothing adds up: `zero-grad-misplaced` tells it.
        lost = any(step.discarded_count for step in run.trace.steps if step.optimizer == window.optimizer)
        if (
            window.usual > 1
            and not lost
            and (
                _is_mean(calls, window.usual, scaled=is_multiplied(run, window.backward_at))
                or _is_sum_of_means(run, calls, window.usual)
            )
            and not is_parted(run, window.backward_at.cell, window.usual)
            and not any(changes_gradients(run, at.cell) for at in (window.backward_at, window.place))
        ):
            yield _finding(run, window, calls[0])


def _is_mean(calls: list[BackwardFact], size: int, *, scaled: bool) -> bool:
    graphs = [one.witness for one in calls if one.witness is not None]
    # A sum divided by as many as there are batches may be meant for the batches.
    twice = any(g.top[-1:] == ("SumBackward0",) and g.mean_shape[:1] == (size,) for g in graphs)
    # The first product is that of the loss scaler, which divides by as much again.
    own = [g.top[1:] if scaled and g.top[:1] == _SCALED[:1] else g.top for g in graphs]
    scalings = any(set(_SCALED) & set(top) for top in own)
    plain = all(g.mean_reduced is True for g in graphs) and not scalings
    return bool(graphs) and plain and not twice and not any(one.weighed for one in calls)


def _is_sum_of_means(run: Run, calls: list[BackwardFact], size: int) -> bool:
    """True for terms whose weights have no room for a division by the size of the window.

    Either they make up 1, and not as one part for each of so many terms, nor where a text divides by that size, or
    one of the terms has no weight at all.
    """
    graphs = [one.witness for one in calls if one.witness is not None]
    if not graphs or any(one.weighed for one in calls) or not all(len(one.weights) > 1 for one in graphs):
        return False
    whole = all(None not in one.weights for one in graphs)
    part = any(abs((weight or 0) * size - 1) < _ROUNDED for one in graphs for weight in one.weights)
    cells = {one.place.cell for one in calls}
    divided = whole and any(is_divided_by(run, cell, size, perhaps=part) for cell in cells)
    return not divided and all(_is_undivided(one.weights, size) for one in graphs)


def _is_undivided(weights: tuple[float | None, ...], size: int) -> bool:
    known = [weight for weight in weights if weight is not None]
    parts = all(weight > 0 for weight in known) and abs(sum(known) - 1) < _ROUNDED
    each = all(abs(weight * size - 1) < _ROUNDED for weight in known)
    return len(known) < len(weights) or (parts and not each)


def _finding(run: Run, window: WindowFact, backward: BackwardFact) -> Finding:
    size = window.usual
    step = next((one for one in run.trace.steps if one.optimizer == window.optimizer), None)
    scaled = scaled_loss(run, window.backward_at)
    count = modulus(run, window) or counted_by(run, window.backward_at.cell, size)
    name = (
        (scaled.loss if scaled is not None else backward.root)
        or reading.differentiated(run, window.backward_at)
        or "loss"
    )
    optimizer = run.optimizer_path(window.optimizer) or "optimizer"
    adaptive = step is not None and step.optimizer_kind.startswith(_ADAPTIVE) and not run.trace.clips
    lowered = divided_rate(run, window.backward_at.cell, size)
    return Finding(
        message=(
            f"`{optimizer}` steps after {size} backward calls whose losses are means, and `{name}` is not divided by "
            f"{size}: the gradient is {size} times that of one large batch."
            + (f" `{lowered}` may be meant to make up for it." if lowered else "")
        ),
        subject=name,
        fix=scaled.divided(count) if scaled is not None else f"({name} / {count}).backward()",
        line=window.backward_at.line,
        cell=window.backward_at.cell,
        severity="hint" if adaptive or lowered else "warning",
        evidence=(
            Evidence("backward calls per step", size, "count"),
            Evidence("steps like this, of those looked at", len(window.sizes), "count"),
            Evidence(
                "operation of the loss", backward.witness.top[-1] if backward.witness and backward.witness.top else ""
            ),
            *((Evidence("step at line", window.place.line),) if window.place.line is not None else ()),
        ),
    )
