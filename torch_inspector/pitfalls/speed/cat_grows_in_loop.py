"""A tensor joined piece by piece in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Turns of the loop from which it is told; where the size is not known; and for a warning.
_TURNS, _TURNS_UNSEEN, _TURNS_WARNED = 32, 100, 200
# Bytes copied in vain, in units of what counts as much memory: less takes no time that anybody feels. For a warning.
_COPIED, _COPIED_WARNED = 16, 1 << 30


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds `all = torch.cat([all, piece])` in a loop that does not need the joined tensor before its end."""
    for fact in run.expressions("growing"):
        if not fact.names or not fact.shapes or not fact.shapes[0]:
            continue
        turns = fact.shapes[0][0]
        copied = fact.nbytes * (turns + 1) // 2
        enough = copied >= _COPIED * run.min_nbytes and turns >= _TURNS
        if enough if fact.nbytes else turns >= _TURNS_UNSEEN:
            warned = turns >= _TURNS_WARNED and copied >= _COPIED_WARNED
            yield _finding(fact, turns, copied, warned=warned)


def _finding(fact: ExpressionFact, turns: int, copied: int, *, warned: bool) -> Finding:
    name = fact.names[0]
    end = f": about {size_text(copied)} copied for the {size_text(fact.nbytes)} at the end" if copied else ""
    return Finding(
        message=f"Line {fact.place.line} copies all of `{name}` in each of {turns} turns of the loop{end}.",
        subject=name,
        fix=_fix(fact, name),
        line=fact.place.line,
        cell=fact.place.cell,
        severity="warning" if warned else "",
        evidence=(
            Evidence("turns of the loop", turns, "count"),
            *((Evidence("at the end", fact.nbytes, "bytes"), Evidence("copied", copied, "bytes")) if copied else ()),
        ),
    )


def _fix(fact: ExpressionFact, name: str) -> str:
    in_method = fact.place.function and name.startswith("self.")
    when = ("at first", "here", "where all of it is read") if in_method else ("before the loop", "in it", "after it")
    return "\n".join(f"{line}  # {one}" for line, one in zip(fact.detail.splitlines(), when, strict=False))
