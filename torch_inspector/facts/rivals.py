"""Two models with optimizers of their own, one of which judges what the other makes, as in a GAN."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


class Judged(NamedTuple):
    """`pred = D(fake)`, of which `fake = G(z)` was made."""

    judge: str
    """What the code calls the model that judges: `D`."""
    given: str
    """What it is given: `fake`."""
    before: str
    """The statement that makes it, where it has no name yet."""
    others: str
    """Its other arguments, each with a comma before it."""
    optimizer: str
    """The optimizer of the judge."""


def judged(run: Run, source: str, name: str) -> Judged | None:
    """How a variable was made by a judge; None if the models behind it are not known to learn each by itself.

    Args:
        run: The cell.
        source: The text in which the variable is given its value.
        name: The variable.
    """
    tree = syntax.parse(source)
    call = next(_calls(tree, name), None) if tree is not None else None
    given = call.args[0] if call is not None and call.args else None
    if tree is None or call is None or not isinstance(given, (ast.Name, ast.Call)):
        return None
    makers = [given] if isinstance(given, ast.Call) else _calls(tree, given.id)
    maker = next((found for one in makers if (found := _optimizer_of(run, ast.unparse(one.func)))), "")
    judge = _optimizer_of(run, ast.unparse(call.func))
    if not judge or not maker or judge == maker:
        return None
    others = "".join(f", {ast.unparse(one)}" for one in (*call.args[1:], *call.keywords))
    name = given.id if isinstance(given, ast.Name) else "made"
    before = f"{name} = {ast.unparse(given)}" if isinstance(given, ast.Call) else ""
    return Judged(ast.unparse(call.func), name, before, others, judge)


def _calls(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """The calls whose result a variable is given, of a tuple its own."""
    for node in syntax.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        pairs = [(target, node.value)] if isinstance(node, ast.Assign) else []
        if isinstance(target, ast.Tuple) and isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for to, value in pairs:
            if isinstance(to, ast.Name) and to.id == name and isinstance(value, ast.Call):
                yield value


def _optimizer_of(run: Run, called: str) -> str:
    """The path of the only optimizer that holds all parameters of a module that the code calls so; empty if none."""
    last = called.rpartition(".")[2]
    keys = next((one.parameter_keys for one in run.trace.forwards if one.name.rpartition(".")[2] == last), frozenset())
    found = [one.path for one in run.after.optimizers if keys and keys <= one.parameter_keys]
    return found[0] if len(found) == 1 else ""
