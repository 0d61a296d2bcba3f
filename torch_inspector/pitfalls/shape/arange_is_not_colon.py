"""Row numbers and a colon are different selections."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Bytes of a number in float32.
_FLOAT = 4


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds `x[:, numbers]` with a number for each row, and large `x[torch.arange(n), 2]` where a colon is a view."""
    for fact in run.expressions("picks"):
        if len(fact.names) > 1 and len(fact.shapes) > 1 and fact.shapes[0]:
            if fact.detail in ("crossed", "perhaps"):
                yield _crossed(fact)
            elif fact.detail == "colon" and prod(fact.shapes[1]) * _FLOAT >= run.min_nbytes:
                yield _copied(fact)


def _crossed(fact: ExpressionFact) -> Finding:
    owner, index = fact.names[:2]
    shape, result = fact.shapes[:2]
    rows = shape[0]
    return Finding(
        message=(
            f"`{fact.text}` takes all {rows} numbers of `{index}` in every row and has shape {result}; "
            f"one number for each of the {rows} rows of `{owner}` {shape} gives {(rows, *shape[2:])}."
        ),
        subject=fact.target or owner,
        fix=f"{owner}[torch.arange(len({owner})), {index}]  # pairs row and number; the colon crosses them",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence(owner, str(shape)), Evidence(index, str(shape[:1])), Evidence("result", str(result))),
    )


def _copied(fact: ExpressionFact) -> Finding:
    owner, index = fact.names[:2]
    return Finding(
        message=f"`{fact.text}` copies one column of `{owner}` {fact.shapes[0]}: row numbers always make a copy.",
        subject=fact.target or owner,
        fix=f"{owner}[:, {index}]  # the same numbers as a view",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence(owner, str(fact.shapes[0])), Evidence("result", str(fact.shapes[1]))),
    )
