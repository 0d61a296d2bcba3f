"""A loss that goes through a loss scaler on its way to `backward()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import reading, syntax
from torch_inspector.facts.receiver import receiver
from torch_inspector.facts.values import NO_ROOM

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import LossFact


class Scaled(NamedTuple):
    """`scaler.scale(loss)`, as the text has it."""

    scaler: str
    loss: str
    name: str = ""
    """The variable that is given the result; empty if `backward()` is called on it at once."""

    def divided(self, by: str) -> str:
        """The same of a part of the loss, as a statement."""
        call = f"{self.scaler}.scale({receiver(self.loss)} / {by})"
        return f"{self.name} = {call}" if self.name else f"{call}.backward()"


def is_multiplied(run: Run, place: Place) -> bool:
    """True if that scaler is switched on: then the graph begins with a product that the user has not written."""
    return not run.trace.count("scaler.off") and scaled_loss(run, place) is not None


def is_lowered_later(run: Run, loss: LossFact) -> bool:
    """True if the factor of a loss scaler made it infinite: the scaler leaves such a step out, and lowers it."""
    alone = loss.operation is not None and loss.operation.cause == NO_ROOM
    text = reading.differentiated(run, loss.place) if alone else ""
    scaled = _scaled(syntax.expression(text)) or (_given(run, loss.place, text) if text.isidentifier() else None)
    return alone and scaled is not None and not run.after.failed_weights


def scaled_loss(run: Run, place: Place) -> Scaled | None:
    """What goes into the scaler before the backward call of a line; None if there is no scaler."""
    if not run.trace.count("scaler.step"):
        return None
    text = reading.differentiated(run, place)
    found = _scaled(syntax.expression(text)) if text else None
    return found or (_given(run, place, text) if text.isidentifier() else None)


def _given(run: Run, place: Place, name: str) -> Scaled | None:
    """The same for a variable: what the last line before gives it."""
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None or place.line is None:
        return None
    statements = syntax.own_statements(syntax.scope_at(tree, place.line))
    given = [one for one in statements if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name]
    last = max((one for one in given if one.lineno < place.line), key=lambda one: one.lineno, default=None)
    found = _scaled(last.value) if last is not None else None
    return found._replace(name=name) if found is not None else None


def _scaled(node: ast.expr | None) -> Scaled | None:
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute) or function.attr != "scale":
        return None
    return Scaled(ast.unparse(function.value), ast.unparse(node.args[0])) if len(node.args) == 1 else None
