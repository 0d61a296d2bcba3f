"""Samples of different sizes that a loader was to stack into one batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import LoaderFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_STACK = re.compile(
    r"stack expects each tensor to be equal size, but got \[([\d, ]*)\] at entry (\d+) and \[([\d, ]*)\] at entry (\d+)"
)
# What the loop, or `next(iter(…))`, asks for batches.
_ASKED = re.compile(r"\bin\s+(?:enumerate\(|tqdm\(|iter\()*([A-Za-z_][\w.]*)|\biter\(([A-Za-z_][\w.]*)\)")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the loader that failed to make a batch, with the sizes of the two samples that differ."""
    error = run.error
    told = _STACK.search(error.message) if error is not None else None
    if error is None or told is None:
        return
    loader = next((one for one in run.trace.loaders if one.failed and one.place == error.place), None)
    if loader is None:
        return
    first, second = _shape(told[1]), _shape(told[3])
    name = _name(run, loader)
    yield Finding(
        message=(
            f"samples of {f'`{name}`' if name else f'a {loader.kind}'} differ in size, {first} and {second}: "
            "a batch is a stack of equal ones."
        ),
        subject=name,
        fix=_fix(told[1], told[3]),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(
            Evidence(f"sample {told[2]} of the batch", first),
            Evidence(f"sample {told[4]} of the batch", second),
            Evidence("batch size", str(loader.batch_size)),
        ),
    )


def _shape(text: str) -> str:
    return f"({text},)" if "," not in text else f"({text})"


def _name(run: Run, loader: LoaderFact) -> str:
    """What the line calls the loader; empty if it does not stand there alone."""
    lines = run.source_of(loader.place.cell).splitlines()
    line = loader.place.line
    found = _ASKED.search(lines[line - 1]) if line is not None and 0 < line <= len(lines) else None
    return (found[1] or found[2]) if found else ""


def _fix(first: str, second: str) -> str:
    one, two = first.split(","), second.split(",")
    if len(one) == len(two) and one[1:] == two[1:]:
        return (
            "collate_fn=lambda samples: torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)"
            "  # for the loader; of tuples pad the part that differs, and keep the lengths"
        )
    return "collate_fn=list  # for the loader; or bring every sample to one size in the data set"
