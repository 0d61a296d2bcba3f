"""The same hook, several times on one layer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import HookCountFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SHOWN = 3
_REGISTERS = re.compile(r"\.register_\w*hook\(")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds cells after which layers have a hook more often than before, twice or more."""
    before = {(one.path, one.kind, one.name): one.count for one in run.before.hook_counts}
    grown = [one for one in run.after.hook_counts if one.count > before.get((one.path, one.kind, one.name), 1)]
    names: dict[tuple[str, str], list[HookCountFact]] = {}
    for one in grown:
        if one.same or _was_run_before(run):
            names.setdefault((one.kind, one.name), []).append(one)
    for several in names.values():
        yield _finding(run, several, _registering(run))


def _was_run_before(run: Run) -> bool:
    """True if the cell runs again, as it was or changed."""
    return any(
        past.cell.code == run.cell.code or (past.cell.id is not None and past.cell.id == run.cell.id)
        for past in run.earlier
    )


def _registering(run: Run) -> int | None:
    """The line of the cell that registers hooks, if it is in this cell."""
    lines = enumerate(run.cell.code.splitlines(), run.cell.line_offset + 1)
    return next((number for number, line in lines if _REGISTERS.search(line)), None)


def _finding(run: Run, several: list[HookCountFact], line: int | None) -> Finding:
    one = max(several, key=lambda fact: fact.count)
    where = ", ".join(f"`{fact.path}`" for fact in several[:_SHOWN]) + (", …" if len(several) > _SHOWN else "")
    again = "" if one.same and not _was_run_before(run) else ": running the cell again added it once more"
    layers = f"{where} has" if len(several) == 1 else f"{where} have"
    return Finding(
        message=f"{layers} the hook `{one.name}` {one.count} times{again}; it runs as often in each pass.",
        subject=one.owner,
        fix="handles = [...]  # keep what register_..._hook() returns\nfor handle in handles:\n    handle.remove()",
        line=line,
        evidence=(
            Evidence("hook", one.name),
            Evidence("kind", one.kind),
            Evidence("times on one layer", one.count, "count"),
            Evidence("layers", len(several), "count"),
        ),
    )
