"""Training on data that lie class by class, in that order."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import LoaderFact, Run, looped_over
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Samples of one class in a row; fewer are chance.
_ROW = 8
# Steps in one pass, and the part of its batches after which one is taken: else gradients of many batches are summed.
_STEPS, _SHARE = 3, 0.5
_SHOWN = 3


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds loaders without shuffling that give one class after the other to a loop that trains on each batch."""
    told = set()
    for loader in run.trace.loaders:
        if _is_sorted(loader) and loader.place not in told:
            told.add(loader.place)
            yield _finding(run, loader)


def _is_sorted(loader: LoaderFact) -> bool:
    counts = [count for _, count in loader.class_runs]
    if sum(count >= _ROW for count in counts) < 2 or not loader.class_batch:  # noqa: PLR2004
        return False
    batches = sum(counts) / loader.class_batch
    in_a_row = sum(counts) / len(counts) >= loader.class_batch / 2
    return in_a_row and loader.trained_count >= max(_STEPS, batches * _SHARE)


def _finding(run: Run, loader: LoaderFact) -> Finding:
    name, runs = looped_over(run, loader.place), loader.class_runs
    shown = ", then ".join(f"{count} of class {value}" for value, count in runs[:_SHOWN])
    more = f", and so on for {len(runs)} classes" if len(runs) > _SHOWN else ""
    return Finding(
        message=(
            f"{f'`{name}`' if name else 'The loader'} does not shuffle, and its data lie class by class: "
            f"{shown}{more}. "
            "The model learns one class at a time and forgets the one before."
        ),
        subject=name or loader.kind,
        fix=f"DataLoader(…, batch_size={loader.class_batch}, shuffle=True)  # for training",
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(
            Evidence("classes in the order of the loader", len(runs), "count"),
            Evidence("samples", sum(count for _, count in runs), "count"),
            Evidence("batch size", loader.class_batch, "count"),
        ),
    )
