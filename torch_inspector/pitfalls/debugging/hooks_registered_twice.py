"""The same hook, several times on one layer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import HookCountFact, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SHOWN = 3
_HOOK = re.compile(r"register_\w*hook")
_REGISTERS = re.compile(r"\.register_\w*hook\(")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds cells after which layers have a hook more often than before, twice or more."""
    before = {(one.path, one.kind, one.name): one.count for one in run.before.hook_counts}
    grown = [one for one in run.after.hook_counts if one.count > before.get((one.path, one.kind, one.name), 1)]
    names: dict[tuple[str, str], list[HookCountFact]] = {}
    for one in grown:
        if one.same or _was_run_before(run) or _adds_while_running(run):
            names.setdefault((one.kind, one.name), []).append(one)
    for several in names.values():
        yield _finding(run, several, _registering(run))


def _was_run_before(run: Run) -> bool:
    """True if the cell runs again, as it was or changed."""
    return any(
        past.cell.code == run.cell.code or (past.cell.id is not None and past.cell.id == run.cell.id)
        for past in run.earlier
    )


def _adds_while_running(run: Run) -> bool:
    """True if a loop of the cell registers hooks in each turn, removes none, and calls the model too."""
    tree = syntax.parse(run.cell.code)
    loops = [node for node in syntax.walk(tree) if isinstance(node, (ast.For, ast.While))] if tree is not None else []
    own = [*(one.place for one in run.trace.forwards), *(one.place for one in run.trace.backwards)]
    lines = [one.line - run.cell.line_offset for one in own if one.cell == run.cell.number and one.line is not None]
    makers = _makers(run)
    return any(
        _registers(loop, makers) and any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for line in lines)
        for loop in loops
    )


def _registers(node: ast.AST, makers: frozenset[str]) -> bool:
    called = [one.func for one in syntax.walk(node) if isinstance(one, ast.Call)]
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called}
    return "remove" not in names and any(name in makers or _HOOK.fullmatch(name) for name in names)


def _makers(run: Run) -> frozenset[str]:
    """Functions and classes of the notebook that register hooks and remove none."""
    trees = (syntax.parse(one.cell.code) for one in (run, *run.earlier) if "hook(" in one.cell.code)
    nodes = (node for tree in trees if tree is not None for node in syntax.walk(tree))
    return frozenset(
        node.name
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and _registers(node, frozenset())
    )


def _registering(run: Run) -> int | None:
    """The line of the cell that registers hooks, if it is in this cell."""
    lines = enumerate(run.cell.code.splitlines(), run.cell.line_offset + 1)
    return next((number for number, line in lines if _REGISTERS.search(line)), None)


def _finding(run: Run, several: list[HookCountFact], line: int | None) -> Finding:
    one = max(several, key=lambda fact: fact.count)
    where = ", ".join(f"`{fact.path}`" for fact in several[:_SHOWN]) + (", …" if len(several) > _SHOWN else "")
    again = ": running the cell again added it once more" if _was_run_before(run) else ""
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
