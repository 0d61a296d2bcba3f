"""Statements that were to move a batch to the device, and that moved nothing which the batch has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.given_moved import container_given
from torch_inspector.facts.kept_results import kept
from torch_inspector.facts.modules import DiscardFact
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact
    from torch_inspector.facts.run import Run

_DEVICE = re.compile(r"(^|[._])dev(ice)?$")
_CHANGES = frozenset(["append", "extend", "insert", "update", "setdefault", "data"])


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
    name: str = ""
    """The variable that is the tensor on the wrong device; empty if it is a part of one."""
    container: str = ""
    """The variable that gave it, as in `net(**batch)` and `net(batch["rows"])`."""
    spread: bool = False
    """True if its parts are given one by one, `net(*batch)`: a list, or what may become one."""


def lost_move(run: Run, error: ErrorFact, operand: OperandFact, home: str) -> LostMove | None:
    """The last one before the line that failed, or the call that led there, of what is on the wrong device.

    Args:
        run: The cell that failed, and those before.
        error: Why.
        operand: The tensor on the wrong device.
        home: The device where it should be.
    """
    targets = _Targets(error, home)
    for number, tree, use in (*_failed(run, error, operand), *_called(run, error, operand)):
        found = [one for one in _moves(tree, use, targets) if one.lineno < use.line]
        told = [_told(run, number, statement, use) for statement in found[-1:]]
        if told and told[0].fix and not _given_since(tree, use, found[-1].lineno):
            return told[0]
    return None


_Spot = tuple[int | None, ast.Module, _Use]


def _failed(run: Run, error: ErrorFact, operand: OperandFact) -> list[_Spot]:
    tree = syntax.parse(run.source_of(error.place.cell))
    use = _use(error.place.line, operand.path) if error.place.line is not None else None
    return [(error.place.cell, tree, use)] if tree is not None and use is not None else []


def _called(run: Run, error: ErrorFact, operand: OperandFact) -> list[_Spot]:
    """The one call that may have led there: in this cell, else in a function of an earlier one."""
    found: dict[str, list[_Spot]] = {}
    for past in (run, *reversed(run.earlier)) if error.caller and operand.made_at is None else ():
        tree = syntax.parse(past.cell.source)
        if tree is None or past.cell.source in found:
            continue
        for call in syntax.walk(tree):
            if not isinstance(call, ast.Call) or ast.unparse(call) != error.caller:
                continue
            use = _given(run, error, operand, call)
            if use is None or (past is not run and isinstance(syntax.scope_at(tree, call.lineno), ast.Module)):
                continue
            found.setdefault(past.cell.source, []).append((past.cell.number, tree, use))
        if past is run and found:
            break
    calls = [one for spots in found.values() for one in spots]
    return calls if len(calls) == 1 else []


def _given(run: Run, error: ErrorFact, operand: OperandFact, call: ast.Call) -> _Use | None:
    """What the call gave for the operand."""
    if operand.known_as:
        return _use(call.lineno, operand.known_as)
    name = container_given(run, error, operand, call)
    return _Use(call.lineno, container=name, spread=bool(call.args)) if name else None


def _use(line: int, path: str) -> _Use | None:
    named = syntax.expression(path)
    if isinstance(named, ast.Name):
        return _Use(line, named.id)
    owner = named.value if isinstance(named, ast.Subscript) else None
    return _Use(line, container=owner.id) if isinstance(owner, ast.Name) else None


def _given_since(tree: ast.Module, use: _Use, line: int) -> bool:
    """True if the variable has had another value since that line, or has been given another part."""
    nodes = [n for n in syntax.walk(tree) if line < getattr(n, "lineno", 0) <= use.line]
    given: list[ast.AST] = [n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    given += [n.value for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)]
    given += [n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr in _CHANGES]
    return any(isinstance(n, ast.Name) and n.id in (use.name, use.container) for n in given)


def _moves(tree: ast.Module, use: _Use, targets: _Targets) -> Iterator[ast.stmt]:
    """Statements of the same function that throw such a move away, or give it to the variable of a loop that ends."""
    for node in syntax.own_statements(syntax.scope_at(tree, use.line)):
        if use.name and isinstance(node, ast.Expr) and _moved(node.value, targets) == use.name:
            yield node
        if not isinstance(node, ast.For) or _gone_through(node.iter) != use.container or not use.container:
            continue
        for inner in node.body if (node.end_lineno or 0) < use.line else ():
            value = inner.value if isinstance(inner, (ast.Expr, ast.Assign)) else None
            moved = _moved(value, targets)
            own = [ast.unparse(one) for one in inner.targets] if isinstance(inner, ast.Assign) else [moved]
            if moved and moved == _last(node.target) and own == [moved]:
                yield inner


def _gone_through(source: ast.expr) -> str:
    """`batch` of `batch`, `batch.items()`, `batch.values()` and `enumerate(batch)`; empty for anything else."""
    if isinstance(source, ast.Call):
        method = source.func if isinstance(source.func, ast.Attribute) and not source.args else None
        if method is not None:
            source = method.value if method.attr in ("items", "values") else source
        elif ast.unparse(source.func) == "enumerate" and len(source.args) == 1:
            source = source.args[0]
    return source.id if isinstance(source, ast.Name) else ""


def _last(target: ast.expr) -> str:
    last = target.elts[-1] if isinstance(target, ast.Tuple) else target
    return last.id if isinstance(last, ast.Name) else ""


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
    fact = fact if fact.over or not use.spread else fact._replace(over="list")
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
