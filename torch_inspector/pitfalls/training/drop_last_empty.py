"""A loader that drops its only batch."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, LoaderFact, Run, looped_over
from torch_inspector.facts.loader_anew import loader_with
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loops over a loader with `drop_last=True` and fewer samples than one batch."""
    told = set()
    for fact in run.expressions("remainder"):
        if fact.detail == "empty" and fact.names and fact.shapes and len(fact.shapes[0]) > 1:
            told.add(fact.place)
            yield _counted(run, fact)
    for loader in run.trace.loaders:
        if loader.drained and not loader.batch_count and loader.batch_size and loader.place not in told:
            yield _watched(run, loader)


def _counted(run: Run, fact: ExpressionFact) -> Finding:
    """Of a dataset that says how much it holds."""
    (count, size), name = fact.shapes[0][:2], fact.names[0]
    return Finding(
        message=(
            f"The loop over `{name}` never runs: it has {count} samples, a batch takes {size}, "
            "and `drop_last=True` drops a batch that is not full."
        ),
        subject=name,
        fix=f"{loader_with(run, fact.place, name, size, drop_last=False)}  # or batch_size of at most {count}",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("samples", count, "count"), Evidence("batch size", size, "count")),
    )


def _watched(run: Run, loader: LoaderFact) -> Finding:
    """Of any other: it was asked for batches, and had none."""
    name = looped_over(run, loader.place)
    return Finding(
        message=(
            f"{f'`{name}`' if name else 'A loader'} came to its end without a batch: it has fewer samples than the "
            f"{loader.batch_size} of a batch, and `drop_last=True` drops a batch that is not full."
        ),
        subject=name or loader.kind,
        fix=f"{loader_with(run, loader.place, name, loader.batch_size, drop_last=False)}  # or smaller batches",
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(Evidence("batches", 0, "count"), Evidence("batch size", loader.batch_size or 0, "count")),
    )
