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
_MAKING = ("__init__", "__post_init__")
# Functions that are called without their names.
_BY_PYTHON = (*_MAKING, "__call__", "__enter__", "__exit__", "__iter__", "__next__", "forward")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Switching(NamedTuple):
    """A call in a function of an earlier cell."""

    name: str
    """The call as written: `torch.set_grad_enabled`."""
    function: str
    place: Place
    on: bool | None = None
    """What it sets; None where that is no constant."""
    kind: str = ""
    """For a method, the class."""

    @property
    def said(self) -> str:
        """`evaluate` for a function, `Detector.__init__` for a constructor."""
        return f"{self.kind}.{self.function}" if self.kind and self.function in _MAKING else self.function


def switching(run: Run, one: Run) -> Switching | None:
    """The only function of the cells before one, called in it, in whose text gradients are left off; else None."""
    made = [made for past in run.earlier if past is not one for made in _in_cell(past)]
    found = _reached(run, one, made)
    # One that switches them on again did so, unless an exception ended it before.
    found = [each for each in found if not _ends_on(each, made) or _was_ended(one, each)]
    found = [each for each in found if each.on is not True] or found
    return found[-1] if len({made.said for made in found}) == 1 else None


def _reached(run: Run, one: Run, made: list[Switching]) -> list[Switching]:
    """Those in functions that a cell calls, and in constructors of the classes that it makes objects of."""
    called = _called_in(run, one)
    classes = _with_bases(run, called) if any(each.function in _MAKING for each in made) else called
    return [each for each in made if (each.kind in classes if each.function in _MAKING else each.function in called)]


def _called_in(run: Run, one: Run) -> set[str]:
    """Names of what a cell calls, and of what the functions call that it calls so, and so on."""
    functions = [each for past in (*run.earlier, one) for each in _functions_of(past)]
    called = {call.name.rpartition(".")[2] for call in one.trace.calls} | {name for name, _ in _asking(one)}
    while new := [each for each in functions if each.name in called or each.name in _BY_PYTHON]:
        functions = [each for each in functions if each not in new]
        called |= {name for each in new for name in _names_called(each)}
    return called


def _functions_of(past: Run) -> list[_Function]:
    tree = syntax.parse(past.cell.source)
    return syntax.functions_of(tree) if tree is not None else []


def _names_called(function: _Function) -> set[str]:
    calls = (node.func for node in syntax.own_expressions(function) if isinstance(node, ast.Call))
    return {syntax.last_part(called) for called in calls}


def _ends_on(one: Switching, made: list[Switching]) -> bool:
    """True if the last call of the same function sets them on."""
    own = [each for each in made if (each.said, each.place.cell) == (one.said, one.place.cell)]
    return max(own, key=lambda each: each.place.line or 0).on is True


def _was_ended(one: Run, made: Switching) -> bool:
    """True if an exception ended a cell in that function, or in what it called."""
    ways = (one.error.place, *one.error.way) if one.error is not None else ()
    return any((place.function.rpartition(".")[2], place.cell) == (made.function, made.place.cell) for place in ways)


def by_constructor(run: Run) -> bool:
    """True if nothing that this cell calls leaves gradients off but constructors of classes of the notebook."""
    made = switches(run)
    found = [one for one in _reached(run, run, made) if not _ends_on(one, made)]
    tree = syntax.parse(run.cell.code)
    direct = (node for node in syntax.own_expressions(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    if any(syntax.name_of(call.func) in _SWITCHES for call in direct):
        return False
    return bool(found) and all(one.function in _MAKING for one in found)


def _with_bases(run: Run, called: set[str]) -> set[str]:
    """Names of what is called, and of the classes from which such a class is made."""
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.source)) is not None]
    classes = [node for tree in trees for node in syntax.walk(tree) if isinstance(node, ast.ClassDef)]
    found, new = set[str](), called
    while new - found:
        found |= new
        new = {syntax.name_of(base) for one in classes if one.name in new for base in one.bases}
    return found


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
    classes = (node for node in syntax.walk(tree) if isinstance(node, ast.ClassDef)) if tree is not None else ()
    kinds = {id(method): one.name for one in classes for method in one.body}
    for function in syntax.functions_of(tree) if tree is not None else ():
        own = list(syntax.own_expressions(function))
        around = {id(item.context_expr) for node in own if isinstance(node, _WITHS) for item in node.items}
        for call in (node for node in own if isinstance(node, ast.Call) and id(node) not in around):
            name = ast.unparse(call.func)
            if name.rpartition(".")[2] in _SWITCHES:
                place = Place(past.cell.number, call.lineno)
                yield Switching(name, function.name, place, _state(call), kinds.get(id(function), ""))


def _state(call: ast.Call) -> bool | None:
    """What a call sets, where that is written as it is."""
    given = [*call.args, *(one.value for one in call.keywords)]
    value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Constant) else None
    return value if isinstance(value, bool) else None
