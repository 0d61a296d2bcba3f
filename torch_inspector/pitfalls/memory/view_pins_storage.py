"""A small view keeps a large storage alive."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run
from torch_inspector.facts.pinned_together import Together, together
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# From here on it is a warning.
_LARGE_NBYTES = 64 << 20


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds views that came to be the only holder of a storage many times larger, by the container that holds them."""
    before = {pin.key for pin in run.before.pins}
    new = (pin for pin in run.after.pins if pin.paths and pin.key not in before)
    for group in together(new):
        if sum(pin.storage_nbytes for pin in group.pins) >= max(run.min_nbytes, 1):
            yield _finding(group)


def _finding(group: Together) -> Finding:
    pins = group.pins
    shown, held = sum(pin.nbytes for pin in pins), sum(pin.storage_nbytes for pin in pins)
    place, keeps = pins[0].made_at, "keeps" if len(group.paths) == 1 else "keep"
    return Finding(
        message=f"{group.named} {size_text(shown)} and {keeps} {size_text(held)} alive.",
        subject=group.subject,
        held=group.subject,
        fix=f"{group.copied}  # copies what is shown, lets go of the rest",
        line=place.line if place is not None else None,
        cell=place.cell if place is not None else None,
        severity="warning" if held >= _LARGE_NBYTES else "",
        evidence=(
            Evidence("shown", shown, "bytes"),
            Evidence("kept alive", held, "bytes"),
            Evidence("storages", len(pins), "count"),
            Evidence("device", pins[0].device),
        ),
    )
