"""A new loss scaler is made in each turn of a loop, for one and the same optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, ScalerFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One more may replace the first on purpose; the same line twice for the same optimizer is a loop.
_SCALERS = 2


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds lines that made several scalers which stepped the same optimizer, without taking over the scale."""
    if "load_state_dict" in run.cell.code or "init_scale" in run.cell.code:
        return  # the scale that was found is handed on
    for fact in run.trace.scalers:
        if fact.scaler_count >= _SCALERS:
            yield _finding(run, fact)


def _finding(run: Run, fact: ScalerFact) -> Finding:
    name = fact.name or "scaler"
    optimizer = run.optimizer_path(fact.optimizer) or fact.optimizer_name or "the optimizer"
    return Finding(
        message=(
            f"this line made {fact.scaler_count} loss scalers for `{optimizer}`: each begins with its first scale, "
            "and may skip steps until it has found one that fits."
        ),
        subject=name,
        fix=f"make `{name}` once, next to `{optimizer}`, and use it for the whole training",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("scalers from this line", fact.scaler_count, "count"),
            *((Evidence("step at line", fact.step_place.line),) if fact.step_place.line is not None else ()),
            Evidence("steps by scalers", run.trace.count("scaler.step"), "count"),
        ),
    )
