"""A schedule that is made for all batches is stepped once per epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import isfinite
from typing import TypeGuard

from torch_inspector.facts import Run, ScheduleFact, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Optimizer steps between two calls from which on those are epochs; a few are an accumulation.
_STEPS = 5
_SEVERAL = 2
# The number that says how long a schedule is, by its kind, and where a call has it by position.
_SPANS = {
    "OneCycleLR": ("total_steps", 2),
    "CosineAnnealingLR": ("T_max", 1),
    "CosineAnnealingWarmRestarts": ("T_0", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
}
# Calls that leave a length what it is but for rounding.
_ROUNDS = frozenset(["int", "round", "float", "ceil", "floor"])
# How many names in a row a length is followed through.
_NAMES = 2


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds schedules whose length was computed from the number of batches, and whose calls are epochs."""
    seen: set[tuple[int | None, int | None]] = set()
    for fact in run.trace.schedules if run.error is None else ():
        span = _span(fact) if fact.kind in _SPANS else 0
        at = (fact.place.cell, fact.place.line) if span else None
        if at is not None and at not in seen and _counts_batches(run, fact, span) and _is_written_so(run, fact):
            seen.add(at)
            yield _finding(fact, span)


def _span(fact: ScheduleFact) -> int:
    """How many calls the schedule is made for; 0 for a kind that does not say."""
    name, _ = _SPANS.get(fact.kind, ("", 0))
    number = fact.setting(name) or 0
    return int(number) if isfinite(number) else 0


def _per_epoch(fact: ScheduleFact) -> int:
    """Optimizer steps between two calls, the same each time; 0 if there are only a few."""
    counts = fact.step_counts
    gaps = {later - earlier for earlier, later in zip((0, *counts), counts, strict=False)}
    return gaps.pop() if fact.count >= _SEVERAL and len(gaps) == 1 and min(gaps) >= _STEPS else 0


def _counts_batches(run: Run, fact: ScheduleFact, span: int) -> bool:
    """True if the length is that of an epoch in batches, or of all of them, and the calls will not come to its end."""
    steps = _per_epoch(fact)
    planned = fact.turns[0] if fact.turns else None
    calls = max(fact.count, planned or 0)
    if not steps or fact.told or not fact.turns or span <= calls or fact.siblings > 1:
        return False
    passes = run.trace.count("backward") // fact.count  # of an accumulation more than steps
    return any(span in (each, each * fact.count, each * calls) for each in (steps, passes))


def _is_written_so(run: Run, fact: ScheduleFact) -> bool:
    """True if the text that makes the schedule takes its length from that of a loader, `len(loader)`."""
    past = [run, *reversed(run.earlier)]
    for index, one in enumerate(past):
        tree = syntax.parse(one.cell.code) if fact.kind in one.cell.code else None
        nodes = syntax.walk(tree) if tree is not None else ()
        made = [node for node in nodes if isinstance(node, ast.Call) and syntax.name_of(node.func) == fact.kind]
        if tree is not None and made:
            trees = [syntax.parse(other.cell.code) for other in past[index + 1 :]]
            cells = [tree, *(other for other in trees if other is not None)]
            return all(_by_length(run, fact, call, cells) for call in made)
    return False


def _by_length(run: Run, fact: ScheduleFact, call: ast.Call, cells: list[ast.Module]) -> bool:
    """True if the length of a loader is asked for in the call, or where the names in it were given their values."""
    name, position = _SPANS[fact.kind]
    each = next((one.value for one in call.keywords if one.arg == "steps_per_epoch"), None)
    if each is not None:
        return not (isinstance(each, ast.Constant) and each.value == 1)
    given = [*call.args[position : position + 1], *(one.value for one in call.keywords if one.arg == name)]
    factors = [factor for value in given for factor in _factors(value, call, cells)]
    measured = {ast.unparse(one.args[0]) for one, multiplies in factors if multiplies and _is_length(one)}
    if any(_is_length(one) for one, multiplies in factors if not multiplies):
        return False  # batches, by the batches of an epoch, are epochs
    return bool(measured & _gone_through(run)) or any(_makes_loader(one, call, cells) for one in measured)


def _factors(
    node: ast.expr, call: ast.Call, cells: list[ast.Module], *, multiplies: bool = True, deep: int = _NAMES
) -> Iterator[tuple[ast.expr, bool]]:
    """What a number is proportional to, each with whether it multiplies or divides; names are looked up."""
    parts = _proportional(node)
    value = _value(node.id, call, cells) if isinstance(node, ast.Name) and deep else None
    if value is not None:
        yield from _factors(value, call, cells, multiplies=multiplies, deep=deep - 1)
    elif not parts:
        yield node, multiplies
    for part, upwards in parts:
        yield from _factors(part, call, cells, multiplies=multiplies is upwards, deep=deep)


def _proportional(node: ast.expr) -> list[tuple[ast.expr, bool]]:
    """The parts of a product, of a quotient, or of what is rounded; a small number that is added does not count."""
    if isinstance(node, ast.UnaryOp):
        return [(node.operand, True)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv)):
        return [(node.left, True), (node.right, isinstance(node.op, ast.Mult))]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [(node.left, True)]
    if isinstance(node, ast.Call) and syntax.name_of(node.func) in _ROUNDS:
        return [(one, True) for one in node.args[:1]]
    if isinstance(node, ast.Call) and syntax.name_of(node.func) == "max":
        rest = [one for one in node.args if not (isinstance(one, ast.Constant) and one.value in (0, 1))]
        return [(one, True) for one in rest if len(rest) == 1]
    return []


def _value(name: str, call: ast.Call, cells: list[ast.Module]) -> ast.expr | None:
    """What the variable was given last before the call, which is in the first of the cells."""
    function = syntax.function_around(cells[0], call.lineno)
    if function is not None and any(isinstance(one, ast.arg) and one.arg == name for one in syntax.walk(function.args)):
        return None
    for tree in cells:
        stored = (n for n in syntax.walk(tree) if isinstance(n, ast.Name) and n.id == name)
        lines = [n.lineno for n in stored if isinstance(n.ctx, ast.Store)]
        lines = [line for line in lines if tree is not cells[0] or line < call.lineno]
        assigned = (one for one in syntax.walk(tree) if isinstance(one, ast.Assign) and lines)
        own = (one for one in assigned if any(isinstance(t, ast.Name) and t.id == name for t in one.targets))
        if lines:
            return next((one.value for one in own if one.lineno == max(lines)), None)
    return None


def _is_length(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and syntax.name_of(node.func) == "len" and len(node.args) == 1


def _makes_loader(name: str, call: ast.Call, cells: list[ast.Module]) -> bool:
    value = _value(name, call, cells)
    return isinstance(value, ast.Call) and syntax.name_of(value.func).endswith("DataLoader")


def _gone_through(run: Run) -> set[str]:
    """What the loops that had batches of a loader go through: `loader` of `enumerate(loader)`."""
    found = set()
    for loader in run.trace.loaders:
        tree = syntax.parse(run.source_of(loader.place.cell))
        loops = (one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, ast.For))
        for source in (one.iter for one in loops if one.lineno == loader.place.line):
            inner = source
            while isinstance(inner, ast.Call) and syntax.name_of(inner.func) in ("enumerate", "tqdm") and inner.args:
                inner = inner.args[0]
            found.add(ast.unparse(inner))
    return found


def _finding(fact: ScheduleFact, span: int) -> Finding:
    name = fact.name or fact.kind
    setting, _ = _SPANS[fact.kind]
    first, last = fact.first_rate, fact.last_rate
    rates = f" The rate went from {first:.3g} to {last:.3g}." if first is not None and last is not None else ""
    return Finding(
        message=(
            f"`{name}.step()` ran {fact.count} times, once per epoch, but `{setting}={span}` counts batches: the "
            f"schedule has come to {fact.count} of {span} calls.{rates}"
        ),
        subject=fact.path or name,
        fix=f"{name}.step()  # in the loop over the batches, after the optimizer's step",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("schedule", fact.kind),
            Evidence(setting, span, "count"),
            Evidence("calls of the schedule", fact.count, "count"),
            Evidence("optimizer steps", fact.optimizer_steps, "count"),
        ),
    )
