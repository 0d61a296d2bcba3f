"""A layer is made anew in each forward pass."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BuiltFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds layers made while a model runs, where each pass was seen to have parameters that the one before had not."""
    if run.trace.unheld:
        return
    told = set()
    for fact in run.trace.built:
        if fact.place not in told and fact.count > 0:
            told.add(fact.place)
            yield _finding(fact)


def _finding(fact: BuiltFact) -> Finding:
    return Finding(
        message=(
            f"`{fact.text}` is made inside `{fact.function}`: each pass starts with new weights, and no optimizer ever "
            f"holds them ({fact.count} new parameters in each of {fact.pass_count} passes looked at)."
        ),
        subject=fact.function,
        fix=f"make it once, in `__init__`: self.layer = {fact.text}",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("made in", fact.function),
            Evidence("new parameters in each pass", fact.count, "count"),
            Evidence("passes compared", fact.pass_count, "count"),
        ),
    )
