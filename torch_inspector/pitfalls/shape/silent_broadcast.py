"""A column (N, 1) that met a row (N,) in a comparison or a calculation."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, instead
from torch_inspector.facts.receiver import receiver
from torch_inspector.facts.replaced import in_statement
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds operations that make an (N, N) table of N predictions and N targets."""
    facts = run.expressions("stretched")
    losses = {backward.made_at.line for backward in run.trace.backwards} if facts else set()
    for fact in facts:
        told = fact.place.line in losses or _is_told(run, fact)
        if len(fact.shapes) > 2 and len(fact.names) > 1 and not told:  # noqa: PLR2004
            yield _finding(run, fact)


def _is_told(run: Run, fact: ExpressionFact) -> bool:
    """True if these shapes meet in the graph of a loss, of which `loss-broadcast` tells."""
    patterns = (p for backward in run.trace.patterned if backward.witness for p in backward.witness.patterns)
    return any(p.name == "stretched-operands" and set(p.shapes) <= set(fact.shapes) for p in patterns)


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    first, second, result = fact.shapes[:3]
    one, two = fact.names[:2]
    column = one if len(first) > 1 else two
    row = two if column == one else one
    n = max(result, default=0)
    verb = "compares" if fact.detail == "compared" else "combines"
    return Finding(
        message=(
            f"`{fact.text}` {verb} {first} with {second}: both are stretched to {result}, "
            f"so each of the {n} values meets all {n} others instead of its own."
        ),
        subject=fact.target or column,
        fix=_fix(run, fact, column, row),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence(one, str(first)),
            Evidence(two, str(second)),
            Evidence("stretched to", str(result)),
        ),
    )


def _fix(run: Run, fact: ExpressionFact, column: str, row: str) -> str:
    remark = f"both sides need the same shape; or {receiver(row)}.unsqueeze(1)"
    if fact.text.count(column) != 1:
        return f"{receiver(column)}.squeeze(1)  # in place of {column}; {remark}"
    new = fact.text.replace(column, f"{receiver(column)}.squeeze(1)")
    line = in_statement(run, fact.place, fact.text, new)
    return f"{line}  # {remark}" if line != new else instead(run, fact.place, fact.text, new, remark)
