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


def switching(run: Run, one: Run) -> Switching | None:
    """The only function of the cells before one, called in it, in whose text gradients are switched; else None."""
    called = {call.name.rpartition(".")[2] for call in one.trace.calls}
    found = [made for past in run.earlier if past is not one for made in _in_cell(past) if made.function in called]
    return found[-1] if len({made.function for made in found}) == 1 else None


def switches(run: Run) -> list[Switching]:
    """All calls in functions of the cells so far that switch gradients, no context managers."""
    cells = {past.cell.source: past for past in (*run.earlier, run)}
    return [made for past in cells.values() for made in _in_cell(past)]


def _in_cell(past: Run) -> Iterator[Switching]:
    tree = syntax.parse(past.cell.source)
    nodes = (node for node in syntax.walk(tree) if isinstance(node, syntax.FUNCTIONS)) if tree is not None else ()
    for function in nodes:
        own = list(syntax.own_expressions(function))
        around = {id(item.context_expr) for node in own if isinstance(node, _WITHS) for item in node.items}
        for call in (node for node in own if isinstance(node, ast.Call) and id(node) not in around):
            name = ast.unparse(call.func)
            if name.rpartition(".")[2] in _SWITCHES:
                yield Switching(name, function.name, Place(past.cell.number, call.lineno))
