"""`torch.Tensor(…)` where `torch.tensor(…)` was meant."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds old constructors that read a number as a size, or turn whole numbers into floating point."""
    for fact in run.expressions("legacy"):
        if len(fact.names) > 1:
            yield _finding(fact)


def _finding(fact: ExpressionFact) -> Finding:
    given, name = fact.names[:2]
    if fact.detail == "size":
        said = f"takes {given} for a size: the result has {given} numbers of whatever was in memory"
        fix = f"torch.tensor({given})  # the number; torch.empty({given}) for so many without values"
    else:
        said = "makes float32 of whole numbers, which as class numbers or row numbers are refused"
        fix = f"torch.tensor({given})  # keeps them whole; with dtype=torch.float32 where floats are meant"
    return Finding(
        message=f"`{fact.text}` {said}.",
        subject=fact.target,
        fix=fix,
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("constructor", f"torch.{name}"), Evidence("given", given)),
    )
