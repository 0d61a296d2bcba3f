"""Statements that were to move a batch to the device, and that moved nothing which the batch has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.kept_results import kept
from torch_inspector.facts.modules import DiscardFact
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact
    from torch_inspector.facts.run import Run

_DEVICE = re.compile(r"(^|[._])dev(ice)?$")


class LostMove(NamedTuple):
    """`x.to(device)`, or `v = v.to(device)` in a loop over what was then used."""

    said: str
    """What is wrong with it, with its line."""
    fix: str


class _Targets:
    """How a device may be written."""

    def __init__(self, error: ErrorFact, home: str) -> None:
        self._type, self._known = home.partition(":")[0], dict(error.device_names)

    def include(self, method: str, given: list[ast.expr]) -> bool:
        """True for `cuda()`, `to(device)` and their like, unless the name is known to stand for another device."""
        if method == self._type:
            return not given
        text = ast.unparse(given[0]) if method == "to" and len(given) == 1 else ""
        known = self._known.get(text, self._type if _DEVICE.search(text) else text.strip("'"))
        return known.partition(":")[0] == self._type


class _Use(NamedTuple):
    """A line that failed, or that called what failed."""

    line: int
    names: frozenset[str]
    rows: frozenset[str] = frozenset()
    """Those whose parts are given one by one, `net(*batch)`: lists, or what may become one."""


def lost_move(run: Run, error: ErrorFact, operand: str, home: str) -> LostMove | None:
    """The last one before the line that failed, or the call that led there, of what that names.

    Args:
        run: The cell that failed, and those before.
        error: Why.
        operand: What is on the wrong device, as the failing line calls it.
        home: The device where it should be.
    """
    targets = _Targets(error, home)
    for one in (run, *reversed(run.earlier)):
        tree, number = syntax.parse(one.cell.source), one.cell.number
        for use in _uses(tree, error, operand, here=number == error.place.cell) if tree is not None else ():
            found = [one for one in _moves(tree, use, targets) if one.lineno < use.line] if tree is not None else []
            told = [_told(run, number, statement, use) for statement in found[-1:]]
            if told and told[0].fix:
                return told[0]
    return None


def _uses(tree: ast.Module, error: ErrorFact, operand: str, *, here: bool) -> Iterator[_Use]:
    if here and error.place.line is not None:
        named = syntax.expression(operand)
        yield _Use(error.place.line, _names(named) if named is not None else frozenset())
    for node in syntax.walk(tree) if error.caller else ():
        if isinstance(node, ast.Call) and ast.unparse(node) == error.caller:
            given = (*node.args, *(one.value for one in node.keywords))
            rows = (one for one in node.args if isinstance(one, ast.Starred))
            yield _Use(node.lineno, frozenset[str]().union(*map(_names, given)), frozenset().union(*map(_names, rows)))


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in syntax.walk(node) if isinstance(one, ast.Name))


def _moves(tree: ast.Module, use: _Use, targets: _Targets) -> Iterator[ast.stmt]:
    """Statements of the same function that throw such a move away, or give it to the variable of a loop that ends."""
    for node in syntax.own_statements(syntax.scope_at(tree, use.line)):
        if isinstance(node, ast.Expr) and _moved(node.value, targets) in use.names:
            yield node
        if not isinstance(node, ast.For) or not _names(node.iter) & use.names or (node.end_lineno or 0) >= use.line:
            continue
        for inner in node.body:
            value = inner.value if isinstance(inner, (ast.Expr, ast.Assign)) else None
            moved = _moved(value, targets)
            own = [ast.unparse(one) for one in inner.targets] if isinstance(inner, ast.Assign) else [moved]
            if moved in _names(node.target) and own == [moved]:
                yield inner


def _moved(value: ast.expr | None, targets: _Targets) -> str:
    """The variable that a call moves to the device: `v` of `v.to(device)`; empty for anything else."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return ""
    wanted = targets.include(value.func.attr, value.args)
    return value.func.value.id if wanted and isinstance(value.func.value, ast.Name) else ""


def _told(run: Run, cell: int | None, statement: ast.stmt, use: _Use) -> LostMove:
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    text = ast.unparse(value) if value is not None else ""
    name, place = text.partition(".")[0], Place(cell, statement.lineno)
    where = place.said_in(run.error.place.cell if run.error is not None else None)
    fact = _discard(run, place, name, text)
    fact = fact if fact.over or not use.rows else fact._replace(over="list")
    if isinstance(statement, ast.Assign):
        return LostMove(
            f"`{ast.unparse(statement)}` in {where} changes the variable alone", _at(kept(run, fact), where)
        )
    said = f"the result of `{text}` in {where} is thrown away"
    return LostMove(said, _at(kept(run, fact) or f"{name} = {text}", where))


def _discard(run: Run, place: Place, name: str, text: str) -> DiscardFact:
    """What the observer has noted of such a line, else what its text says."""
    noted = (one for past in (run, *run.earlier) for one in past.after.discards)
    own = (one for one in noted if (one.place.cell, one.place.line, one.text) == (place.cell, place.line, text))
    return next(own, DiscardFact(place, name, text, wanted="", device="", dtype="", is_tensor=False))


def _at(fix: str, where: str) -> str:
    return f"{fix}  # {where}" if fix and "  # " not in fix else fix
