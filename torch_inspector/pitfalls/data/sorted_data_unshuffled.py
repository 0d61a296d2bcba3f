"""Training on data that lie class by class, in that order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch_inspector.facts import ExpressionFact, LoaderFact, Run, Shape, looped_over
from torch_inspector.facts.loader_anew import loader_with
from torch_inspector.facts.targeted import targets_of
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Samples of one class in a row; fewer are chance.
_ROW = 8
# Steps in one pass, and the part of its batches after which one is taken: else gradients of many batches are summed.
_STEPS, _SHARE = 3, 0.5
_SHOWN = 3

_Runs = tuple[tuple[int, int], ...]


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds loaders without shuffling that give one class after the other to a loop that trains on each batch."""
    told = set()
    for loader in run.trace.loaders:
        runs = _runs_of(run, loader)
        if _is_sorted(loader, runs) and loader.place not in told:
            told.add(loader.place)
            yield _finding(run, loader, runs)
    for cut in run.expressions("cut-batches"):
        (size, *_), *cuts = cut.shapes
        counts = [count for _, count in cuts]
        long = sum(count >= _ROW for count in counts) >= 2 and sum(counts) / len(counts) >= size / 2  # noqa: PLR2004
        if long and sum(counts) >= _STEPS * size and _steps_in(run, cut):
            yield _of_slices(cut, size, cuts)


def _steps_in(run: Run, cut: ExpressionFact) -> bool:
    """True if steps in the lines of a loop moved weights, and nothing else set these or stepped in between."""
    first, last = cut.place.line or 0, int(cut.detail)
    inside = [s for s in run.trace.steps if s.place.cell == cut.place.cell and first < (s.place.line or 0) <= last]
    if not inside or all(one.rate_is_zero or one.unmoved or one.idle for one in inside):
        return False
    span, keys = (inside[0].order, inside[-1].order), {one.optimizer for one in inside}
    loads = [one.order for one in run.trace.loads]
    others = [s.order for s in run.trace.steps if s not in inside and s.optimizer in keys]
    return not any(span[0] < order < span[1] for order in (*loads, *others))


def _of_slices(cut: ExpressionFact, size: int, runs: list[Shape]) -> Finding:
    targets, together = cut.names[0], ", ".join(sorted(cut.names))
    mixed = ", ".join(f"{one}[order]" for one in sorted(cut.names))
    return Finding(
        message=(
            f"the loop cuts its batches in the order of `{targets}`, which lies class by class: {_told(runs)}. "
            "The model learns one class at a time and forgets the one before."
        ),
        subject=targets,
        fix=f"order = torch.randperm(len({targets}))\n{together} = {mixed}  # before this loop, in each epoch",
        line=cut.place.line,
        cell=cut.place.cell,
        evidence=(
            Evidence("classes in the order of the data", len(runs), "count"),
            Evidence("samples", sum(count for _, count in runs), "count"),
            Evidence("batch size", size, "count"),
        ),
    )


def _told(runs: Sequence[Shape]) -> str:
    shown = ", then ".join(f"{count} of class {value}" for value, count in runs[:_SHOWN])
    return shown + (f", and so on for {len(runs)} classes" if len(runs) > _SHOWN else "")


def _runs_of(run: Run, loader: LoaderFact) -> _Runs:
    """The classes of the targets in their order; where the batches do not tell which part that is, the loss does."""
    if loader.class_runs or not loader.part_runs:
        return loader.class_runs
    targets = targets_of(run, loader.place)
    return next((runs for key, runs in loader.part_runs if key in targets), ())


def _is_sorted(loader: LoaderFact, runs: _Runs) -> bool:
    if not loader.class_batch or not runs:
        return False
    counts = [count for _, count in runs]
    if sum(count >= _ROW for count in counts) < 2:  # noqa: PLR2004
        return False
    batches = sum(counts) / loader.class_batch
    in_a_row = sum(counts) / len(counts) >= loader.class_batch / 2
    return in_a_row and loader.trained_count >= max(_STEPS, batches * _SHARE)


def _finding(run: Run, loader: LoaderFact, runs: _Runs) -> Finding:
    name = looped_over(run, loader.place) or loader.known_as
    other = loader.known_as if loader.place.function and loader.known_as != name else ""
    also = f" (`{other}` in the notebook)" if other else ""
    return Finding(
        message=(
            f"{f'`{name}`' if name else 'The loader'}{also} does not shuffle, and its data lie class by class: "
            f"{_told(runs)}. "
            "The model learns one class at a time and forgets the one before."
        ),
        subject=other or name or loader.kind,
        fix=f"{loader_with(run, loader.place, name, loader.class_batch, shuffle=True)}  # for training",
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(
            Evidence("classes in the order of the loader", len(runs), "count"),
            Evidence("samples", sum(count for _, count in runs), "count"),
            Evidence("batch size", loader.class_batch, "count"),
        ),
    )
