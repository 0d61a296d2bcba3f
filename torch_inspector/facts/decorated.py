"""Functions that a decorator switches gradients off in: what they are called, and what to call in their place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run


class _Call(NamedTuple):
    """A call of such a method, as the text has it, and the same of the module itself."""

    text: str
    new: str
    place: Place


def decorated_name(run: Run, cut: CutFact) -> str:
    """`predict` of `@torch.no_grad()` above `def predict(self, x)`; empty where the line decorates nothing."""
    function = _function_at(run, cut)
    return function.name if function is not None else ""


def called_itself(run: Run, cut: CutFact, cell: int | None) -> str:
    """`model(x)  # in place of model.predict(x)`, for a method that does nothing but call its module without gradients.

    Args:
        run: The cell.
        cut: The decorator.
        cell: The one that is spoken of.
    """
    function = _function_at(run, cut)
    given = _handed_on(function) if function is not None else None
    calls = _calls_of(run, function.name, given) if function is not None and given is not None else []
    if len({one.text for one in calls}) != 1:
        return ""
    one = calls[0]
    return f"{one.new}  # in place of {one.text}, {one.place.said_in(cell)}: {cut.text} is around that"


def _function_at(run: Run, cut: CutFact) -> ast.FunctionDef | None:
    tree = syntax.parse(run.source_of(cut.place.cell))
    functions = (one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)) if tree is not None else ()
    marked = (one for one in functions if any(each.lineno == cut.place.line for each in one.decorator_list))
    return next(marked, None)


def _handed_on(function: ast.FunctionDef) -> list[str] | None:
    """The parameters of a method that returns `self(x)`, if it gives all of them on; None for other methods."""
    names = [one.arg for one in function.args.args]
    value = function.body[-1].value if isinstance(function.body[-1], ast.Return) else None
    if not isinstance(value, ast.Call) or not names or len(_done(function)) != 1 or value.keywords:
        return None
    own = ast.unparse(value.func) in (names[0], f"{names[0]}.forward")
    return names[1:] if own and [ast.unparse(one) for one in value.args] == names[1:] else None


def _done(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function, without its description."""
    body = function.body
    return body[1:] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body


def _calls_of(run: Run, name: str, parameters: list[str]) -> list[_Call]:
    cells = {past.cell.source: past.cell.number for past in (*run.earlier, run)}
    found = []
    for source, number in cells.items():
        tree = syntax.parse(source)
        for one in syntax.walk(tree) if tree is not None else ():
            method = one.func if isinstance(one, ast.Call) else None
            if isinstance(one, ast.Call) and isinstance(method, ast.Attribute) and method.attr == name:
                plain = len(one.args) == len(parameters) and not one.keywords
                new = f"{ast.unparse(method.value)}({', '.join(map(ast.unparse, one.args))})" if plain else ""
                found.append(_Call(ast.unparse(one), new, Place(number, one.lineno)))
    return found if all(one.new for one in found) else []
