"""The function of a notebook that switches gradients off, and that a cell calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_SWITCHES = ("set_grad_enabled", "__enter__", "enter_context")
_WITHS = (ast.With, ast.AsyncWith)


class Switching(NamedTuple):
    """A call in a function of an earlier cell."""

    name: str
    """The call as written: `torch.set_grad_enabled`."""
    function: str
    place: Place
    on: bool | None = None
    """What it sets; None where that is no constant."""


def switching(run: Run, one: Run) -> Switching | None:
    """The only function of the cells before one, called in it, in whose text gradients are switched; else None."""
    called = {call.name.rpartition(".")[2] for call in one.trace.calls} | {name for name, _ in _asking(one)}
    made = [made for past in run.earlier if past is not one for made in _in_cell(past)]
    found = [each for each in made if each.function in called]
    # What an exception ended before it switched them on again may have called no model.
    found = found or [each for each in made if one.error is not None and each.on is False]
    found = [each for each in found if each.on is not True] or found
    return found[-1] if len({made.function for made in found}) == 1 else None


def switches(run: Run) -> list[Switching]:
    """All calls in functions of the cells so far that switch gradients, no context managers."""
    cells = {past.cell.source: past for past in (*run.earlier, run)}
    return [made for past in cells.values() for made in _in_cell(past)]


def restores_off(run: Run) -> bool:
    """True if a function that asked a model or for gradients in this cell switches gradients on, and off at its end.

    What they were before, it does not ask.
    """
    made: dict[tuple[str, int | None], list[Switching]] = {}
    for one in switches(run):
        made.setdefault((one.function, one.place.cell), []).append(one)
    asking = _asking(run)
    return any(where in asking and _on_then_off(own) for where, own in made.items())


def _on_then_off(calls: list[Switching]) -> bool:
    states = [one.on for one in sorted(calls, key=lambda one: one.place.line or 0)]
    return True in states[:-1] and states[-1] is False


def _asking(one: Run) -> set[tuple[str, int | None]]:
    """Functions, with their cells, that asked models or for gradients, or led there."""
    places = [*(call.place for call in one.trace.forwards), *(call.place for call in one.trace.backwards)]
    places += [caller.place for call in one.trace.forwards for caller in call.callers]
    return {(place.function.rpartition(".")[2], place.cell) for place in places if place.function}


def _in_cell(past: Run) -> Iterator[Switching]:
    tree = syntax.parse(past.cell.source)
    nodes = (node for node in syntax.walk(tree) if isinstance(node, syntax.FUNCTIONS)) if tree is not None else ()
    for function in nodes:
        own = list(syntax.own_expressions(function))
        around = {id(item.context_expr) for node in own if isinstance(node, _WITHS) for item in node.items}
        for call in (node for node in own if isinstance(node, ast.Call) and id(node) not in around):
            name = ast.unparse(call.func)
            if name.rpartition(".")[2] in _SWITCHES:
                yield Switching(name, function.name, Place(past.cell.number, call.lineno), _state(call))


def _state(call: ast.Call) -> bool | None:
    """What a call sets, where that is written as it is."""
    given = [*call.args, *(one.value for one in call.keywords)]
    value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Constant) else None
    return value if isinstance(value, bool) else None
