"""A model that is called with weights which another one makes, so that these keep their history."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

_WORDS = "torch.func.functional_call(model, {'weight': made}, (x,))  # hands the weights on with their history"


def functional(run: Run, cut: CutFact) -> str:
    """The line that calls the model, by `functional_call`; words where that line is not plain."""
    tree = syntax.parse(run.source_of(cut.place.cell))
    line = cut.place.line or 0
    made = next((one for one in syntax.walk(tree) if _is_at(one, line)), None) if tree is not None else None
    target, value = _written(made)
    if tree is None or not target or value is None:
        return _WORDS
    for call in syntax.own_expressions(syntax.scope_at(tree, line)):
        if isinstance(call, ast.Call) and call.lineno > line and target.startswith(f"{ast.unparse(call.func)}."):
            return _called(run, cut, call, target, value)
    return _WORDS


def _is_at(node: ast.AST, line: int) -> bool:
    return isinstance(node, (ast.Assign, ast.Expr)) and node.lineno == line


def _written(node: ast.AST | None) -> tuple[str, ast.expr | None]:
    """`net.weight` and the value that a statement gives it."""
    if isinstance(node, ast.Assign):
        inner = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else None
        text = ast.unparse(node.targets[0])
        return (text.removesuffix(".data"), node.value) if text.endswith(".data") else (text, inner)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
        return ast.unparse(call.func.value).removesuffix(".data"), call.args[0]
    return "", None


def _called(run: Run, cut: CutFact, call: ast.Call, target: str, value: ast.expr) -> str:
    model = ast.unparse(call.func)
    if call.keywords or any(isinstance(one, ast.Starred) for one in call.args) or "[" in target:
        return _WORDS
    given = ", ".join(map(ast.unparse, call.args)) + "," * (len(call.args) == 1)
    weights = f"{{{target.removeprefix(f'{model}.')!r}: {ast.unparse(value)}}}"
    new = f"torch.func.functional_call({model}, {weights}, ({given}))"
    statement = in_statement(run, cut.place._replace(line=call.lineno), ast.unparse(call), new)
    where = f"line {cut.place.line}" if call.lineno != cut.place.line else "it"
    return f"{statement}  # and without {where}"
