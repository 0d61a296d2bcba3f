"""A value that was put into what indexing had copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds assignments to an index of an index, of which the inner one makes a copy."""
    for fact in run.expressions("lost"):
        if len(fact.names) > 1:
            yield _finding(fact)


def _finding(fact: ExpressionFact) -> Finding:
    name, index = fact.names[:2]
    return Finding(
        message=(
            f"`{fact.text}` does not change `{name}`: `{name}[{index}]` makes a copy, "
            "and the value goes into the copy, which nobody keeps."
        ),
        subject=name,
        fix=_fix(name, index, is_call=fact.text.endswith(")")),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("index that copies", index), *(Evidence(name, str(shape)) for shape in fact.shapes[:1])),
        severity="" if fact.sure else "hint",
    )


def _fix(name: str, index: str, *, is_call: bool) -> str:
    if is_call:
        return f"{name}[{index}] = …  # a single index that is assigned to changes {name} itself"
    part = "rows" if not re.search(r"\brows\b", f"{name} {index}") else "picked"
    return f"{part} = {name}[{index}]; {part}[…] = …; {name}[{index}] = {part}  # or one index: {name}[…, …] = …"
