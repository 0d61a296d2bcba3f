"""A loader that drops its only batch."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loops over a loader with `drop_last=True` and fewer samples than one batch."""
    for fact in run.expressions("remainder"):
        if fact.detail == "empty" and fact.names and fact.shapes and len(fact.shapes[0]) > 1:
            count, size = fact.shapes[0][:2]
            name = fact.names[0]
            yield Finding(
                message=(
                    f"The loop over `{name}` never runs: it has {count} samples, a batch takes {size}, "
                    "and `drop_last=True` drops a batch that is not full."
                ),
                subject=name,
                fix=f"DataLoader(…, batch_size={size}, drop_last=False)  # or batch_size of at most {count}",
                line=fact.place.line,
                cell=fact.place.cell,
                evidence=(Evidence("samples", count, "count"), Evidence("batch size", size, "count")),
            )
