"""A small view keeps a large storage alive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import PinFact, Run
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# From here on it is a warning.
_LARGE_NBYTES = 64 << 20
_NAMED = 2


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds views that came to be the only holder of a storage many times larger, by the container that holds them."""
    before = {pin.key for pin in run.before.pins}
    groups: dict[str, list[PinFact]] = {}
    for pin in run.after.pins:
        if pin.paths and pin.key not in before:
            groups.setdefault(_owner(pin.paths[0]), []).append(pin)
    for owner, pins in groups.items():
        if sum(pin.storage_nbytes for pin in pins) >= max(run.min_nbytes, 1):
            yield _finding(owner, pins)


def _finding(owner: str, pins: list[PinFact]) -> Finding:
    paths = [path for pin in pins for path in pin.paths]
    shown, held = sum(pin.nbytes for pin in pins), sum(pin.storage_nbytes for pin in pins)
    subject = paths[0] if len(paths) == 1 else owner
    place, keeps = pins[0].made_at, "keeps" if len(paths) == 1 else "keep"
    return Finding(
        message=f"{_what(paths, owner)} {size_text(shown)} and {keeps} {size_text(held)} alive.",
        subject=subject,
        fix=f"{_cloned(paths, owner, mapping=pins[0].mapping)}  # copies what is shown, lets go of the rest",
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


def _what(paths: list[str], owner: str) -> str:
    if len(paths) == 1:
        return f"`{paths[0]}` is a view that shows"
    if len(paths) <= _NAMED:
        return f"`{paths[0]}` and `{paths[1]}` are views that show"
    return f"{len(paths)} views in `{owner}` show"


def _cloned(paths: list[str], owner: str, *, mapping: bool) -> str:
    if len(paths) == 1:
        return f"{paths[0]} = {paths[0]}.clone()"
    if mapping:
        return f"{owner} = {{key: view.clone() for key, view in {owner}.items()}}"
    return f"{owner} = [view.clone() for view in {owner}]"


def _owner(path: str) -> str:
    """The container of an element, else the variable itself."""
    return re.sub(r"\[[^\[\]]*\]$", "", path)
