"""The last batches of an accumulation are fewer than the window, and no step uses them as they are."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, WindowFact, syntax
from torch_inspector.facts.hand_counters import HandCounter, hand_counters
from torch_inspector.facts.last_turn import also_last
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds backward calls after the last step of a loop, or windows into which those of the last epoch went."""
    if run.error is not None:
        return
    for window in run.trace.windows:
        # With `i % n == 0 and i > 0` the first window holds one more, which belongs to no later one.
        left = window.call_count - window.step_count * (size := _size(window)) - (window.size - size)
        # A loop over the parts of one batch is a function of its own, and leaves nothing.
        if window.place.scope != window.backward_at.scope:
            continue
        counter = _counter(run, window)
        # What such a counter has counted is still there when the loop begins again.
        if counter is not None and ("." in counter.name or not counter.begins_anew):
            continue
        # More than half of all calls would be another way of counting, not a remainder.
        if window.step_count and size > 1 and 0 < left <= window.call_count / 2:
            yield _finding(run, window, left, counter)


def _size(window: WindowFact) -> int:
    """Backward calls in a window; those before the first step, unless all later ones hold one less."""
    return window.usual if window.usual == window.size - 1 else window.size


def _counter(run: Run, window: WindowFact) -> HandCounter | None:
    """The counter that is counted up by hand under whose test the step stands; None of another test."""
    tree, line = syntax.parse(run.source_of(window.place.cell)), window.place.line or 0
    found = (one for one in (hand_counters(tree) if tree is not None else ()) if one.line <= line <= one.end_line)
    return next(found, None)


def _fix(run: Run, window: WindowFact, optimizer: str, counter: HandCounter | None) -> str:
    step = f"{optimizer}.step(); {optimizer}.zero_grad()"
    if counter is not None:
        return f"if {counter.name}: {counter.step or step}  # after the loop, for what is left"
    test = also_last(run, window)
    if test:
        return f"{test}  # and divide the last losses by their own number"
    return f"{step}  # after the loop, where batches are left over; their losses divided by their own number"


def _finding(run: Run, window: WindowFact, left: int, counter: HandCounter | None) -> Finding:
    size, first = _size(window), window.size
    optimizer = run.optimizer_path(window.optimizer) or "optimizer"
    largest = max(window.sizes[1:] if size < first else window.sizes, default=size)
    if largest > size:
        what = (
            f"some steps of `{optimizer}` follow {size} backward calls and others {largest}: what is left of an epoch"
        )
        message = f"{what} goes into the first window of the next"
    else:
        windows = f"windows of {size}, the first of {first}," if size < first else f"windows of {size}"
        message = (
            f"{window.call_count} backward calls in {windows} leave {left} over: "
            f"no step of `{optimizer}` in this cell has used their gradients"
        )
    return Finding(
        message=message + ".",
        subject=optimizer,
        fix=_fix(run, window, optimizer, counter),
        line=window.place.line,
        cell=window.place.cell,
        evidence=(
            Evidence("backward calls", window.call_count, "count"),
            Evidence("backward calls per step", size, "count"),
            Evidence("steps", window.step_count, "count"),
            # Where windows hold fewer than the first, what is left of several epochs is not known.
            *((Evidence("left over", left, "count"),) if min(window.sizes, default=size) >= size else ()),
        ),
    )
