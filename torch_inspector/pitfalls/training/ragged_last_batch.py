"""A last batch of few samples that counts as much as a full one."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run
from torch_inspector.facts.loader_anew import loader_with
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What BatchNorm says of a batch of one sample.
_ONE_SAMPLE = "value per channel"


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds training loops over a loader whose last batch is less than a quarter of the others."""
    if run.error is not None and _ONE_SAMPLE in run.error.message:
        return  # told by `batchnorm_single_sample`: that batch made no step
    for fact in run.expressions("remainder"):
        if fact.detail == "ragged" and fact.names and fact.shapes and len(fact.shapes[0]) > 2:  # noqa: PLR2004
            count, size, last = fact.shapes[0][:3]
            name = fact.names[0]
            samples = "sample" if last == 1 else "samples"
            yield Finding(
                message=(
                    f"The last batch of `{name}` has {last} {samples}, the others {size}: "
                    "its step is as large as theirs, on a much noisier gradient."
                ),
                subject=name,
                fix=f"{loader_with(run, fact.place, name, size, shuffle=True, drop_last=True)}  # for training only",
                line=fact.place.line,
                cell=fact.place.cell,
                evidence=(
                    Evidence("samples", count, "count"),
                    Evidence("batch size", size, "count"),
                    Evidence("last batch", last, "count"),
                ),
            )
