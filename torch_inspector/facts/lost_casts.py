"""Conversions in a function that were thrown away, where what the function gave back is of the wrong type."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.lost_moves import LostMove

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact
    from torch_inspector.facts.modules import DiscardFact
    from torch_inspector.facts.run import Run


def lost_cast(run: Run, error: ErrorFact, operand: OperandFact | None, home: str) -> LostMove | None:
    """`image.float()` in the only function that failed to give what was needed, and that returns `image`.

    Args:
        run: The cell that failed, and those before.
        error: Why.
        operand: What is of the wrong type; None where the failing expression computes it.
        home: The type that was needed.
    """
    called = _called(_text(run, error, operand))
    noted = {one.place: one for past in (*run.earlier, run) for one in past.after.discards if one.wanted == home}
    found = [one for one in noted.values() if one.place.function in called and _is_returned(run, one)]
    if len(found) != 1:
        return None
    where = found[0].place.said_in(error.place.cell)
    said = f"the result of `{found[0].text}` in {where} is thrown away"
    return LostMove(said, f"{found[0].path} = {found[0].text}  # {where}")


def _text(run: Run, error: ErrorFact, operand: OperandFact | None) -> str:
    """What made the operand: the failing expression that it went into, or the line that gave the variable its value."""
    if operand is None or operand.nested:
        return error.expression
    place = operand.made_at
    lines = run.source_of(place.cell).splitlines() if place is not None else []
    within = place is not None and place.line is not None and place.line <= len(lines)
    return lines[place.line - 1].strip() if within else ""  # type: ignore[union-attr,operator]


def _called(text: str) -> set[str]:
    tree = syntax.parse(text)
    calls = (node for node in syntax.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    return {ast.unparse(call.func).rpartition(".")[2] for call in calls}


def _is_returned(run: Run, one: DiscardFact) -> bool:
    """True if the function gives back the variable itself, after that line."""
    tree = syntax.parse(run.source_of(one.place.cell))
    scope = syntax.function_around(tree, one.place.line or 0) if tree is not None else None
    returns = [node for node in syntax.own_expressions(scope) if isinstance(node, ast.Return)] if scope else []
    after = [node for node in returns if node.lineno > (one.place.line or 0) and node.value is not None]
    return bool(after) and all(one.path in _parts(node.value) for node in after if node.value is not None)


def _parts(value: ast.expr) -> list[str]:
    """`x` and `y` of `x, y`."""
    return [ast.unparse(one) for one in (value.elts if isinstance(value, ast.Tuple) else [value])]
