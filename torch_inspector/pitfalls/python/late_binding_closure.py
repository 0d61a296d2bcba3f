"""Functions made in a loop share the loop variable."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import LoopFunctionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds functions that are kept and will all see the last value of the loop variable."""
    for fact in run.trace.loop_functions:
        if fact.names:
            yield _finding(fact)


def _finding(fact: LoopFunctionFact) -> Finding:
    names = " and ".join(f"`{name}`" for name in fact.names)
    first = fact.names[0]
    bound = ", ".join(f"{name}={name}" for name in fact.names)
    fix = f"lambda ..., {bound}: ..." if fact.kind == "lambda" else f"def ...(..., {bound}):"
    return Finding(
        message=(
            f"this {fact.kind} reads {names} when it is called, not when it is made: "
            f"after the loop every one of them sees the last {first}."
        ),
        subject=first,
        fix=f"{fact.bound or fix}  # a default argument is bound now",
        line=fact.line,
        severity="" if fact.sure else "hint",
        evidence=(
            Evidence("reads late", ", ".join(fact.names)),
            Evidence("kept by", fact.kept_by),
            Evidence("function", fact.text),
        ),
    )
