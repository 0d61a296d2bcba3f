"""`scaler.update()` is missing, or `unscale_()` was called twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import ErrorFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_CALL = re.compile(r"([A-Za-z_][\w.\[\]'\"]*)\.(?:step|unscale_|update)\(\s*([A-Za-z_][\w.]*)?")


class _Case(NamedTuple):
    """What one message of torch means, in the names of the failing line."""

    says: str
    means: str
    remedy: str


_CASES = (
    _Case(
        "step() has already been called since the last update()",
        "`{scaler}.step({optimizer})` ran again without `{scaler}.update()` after the step before",
        "{scaler}.step({optimizer})\n{scaler}.update()  # after every step",
    ),
    _Case(
        "unscale_() has already been called on this optimizer",
        "`{scaler}.unscale_({optimizer})` ran twice for one `{scaler}.update()`",
        "{scaler}.unscale_({optimizer})  # once, after the last backward() of a step; {scaler}.update() ends the step",
    ),
    _Case(
        "unscale_() is being called after step()",
        "`{scaler}.unscale_({optimizer})` ran after `{scaler}.step({optimizer})`, and no `{scaler}.update()` before",
        "{scaler}.unscale_({optimizer})\n{scaler}.step({optimizer})\n{scaler}.update()",
    ),
    _Case(
        "No inf checks were recorded prior to update",
        "`{scaler}.update()` ran although `{scaler}.step()` had looked at no gradient since the last one",
        "{scaler}.update()  # after {scaler}.step({optimizer}), and once per step",
    ),
    _Case(
        "No inf checks were recorded for this optimizer",
        "`{scaler}.step({optimizer})` found no gradient in the parameters of `{optimizer}`",
        "{scaler}.scale(loss).backward()  # before {scaler}.step({optimizer})",
    ),
)


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Explains the errors that a scaler raises where its calls do not follow each other as they must."""
    error = run.error
    case = next((case for case in _CASES if case.says in error.message), None) if error is not None else None
    if error is not None and case is not None:
        yield _finding(run, error, case)


def _finding(run: Run, error: ErrorFact, case: _Case) -> Finding:
    scaler, optimizer = _names(run, error)
    counts = (
        (name, sum(fact.count for fact in run.trace.counts if fact.kind == f"scaler.{name}"))
        for name in ("unscale_", "step", "update")
    )
    return Finding(
        message=case.means.format(scaler=scaler, optimizer=optimizer) + ".",
        subject=scaler,
        fix=case.remedy.format(scaler=scaler, optimizer=optimizer),
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(Evidence(f"calls of {name} in this cell", count, "count") for name, count in counts),
    )


def _names(run: Run, error: ErrorFact) -> tuple[str, str]:
    """What the failing line calls the scaler and the optimizer."""
    known = (*run.earlier, run)
    sources = [one.cell.source for one in known if one.cell.number == error.place.cell]
    lines = sources[-1].splitlines() if sources else []
    line = error.place.line or 0
    call = _CALL.search(lines[line - 1]) if 0 < line <= len(lines) else None
    return (call.group(1), call.group(2) or "optimizer") if call else ("scaler", "optimizer")
