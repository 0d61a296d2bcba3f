"""What `forward` was given, moved in front of the call that gave it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.before_call import made_before

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact
    from torch_inspector.facts.run import Run


def given_moved(run: Run, error: ErrorFact, operand: OperandFact, target: str) -> str:
    """`batch = {key: value.to(device) … for …}  # before net(**batch)`; empty for what was not plainly an argument."""
    call = syntax.expression(error.caller)
    own = target.startswith("self.") or operand.made_at is not None or operand.kind != "tensor"
    if own or not _is_argument(run, error, operand.path) or not isinstance(call, ast.Call):
        return ""
    before = f"  # before {error.caller}"
    if operand.known_as and operand.known_as != operand.path:
        return made_before(run, error, operand.known_as, f"{operand.known_as}.to({target})")
    keyed = [one.value for one in call.keywords if one.arg is None]
    if len(keyed) == 1 and isinstance(keyed[0], ast.Name) and not _is_said(call, operand.path):
        name = keyed[0].id
        return f"{name} = {{key: {_moved('value', target)} for key, value in {name}.items()}}{before}"
    rows = [one.value for one in call.args if isinstance(one, ast.Starred)]
    said = any(keyword.arg == operand.path for keyword in call.keywords)
    if not said and len(rows) == 1 == len(call.args) and isinstance(rows[0], ast.Name):
        return f"{rows[0].id} = [{_moved('one', target)} for one in {rows[0].id}]{before}"
    return ""


def moved_for_lambda(run: Run, error: ErrorFact, operand: OperandFact, target: str) -> str:
    """The same of an argument of a lambda, which has no line of its own for it; empty for all else."""
    if error.place.function != "<lambda>" or operand.kind != "tensor":
        return ""
    tree, line = syntax.parse(run.source_of(error.place.cell)), error.place.line or 0
    nodes = [node for node in syntax.walk(tree) if isinstance(node, ast.Lambda)] if tree is not None else []
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)]
    if not any(one.arg == operand.path for node in around for one in node.args.args):
        return ""
    if operand.known_as.isidentifier() and error.caller:
        return made_before(run, error, operand.known_as, f"{operand.known_as}.to({target})")
    return f"{operand.path}.to({target})  # in place of {operand.path} in the lambda"


def container_given(run: Run, error: ErrorFact, operand: OperandFact, call: ast.Call) -> str:
    """`batch` of `net(**batch)` and `net(*batch)`, if nothing else can have given the argument; empty otherwise."""
    if not _is_argument(run, error, operand.path) or any(one.arg == operand.path for one in call.keywords):
        return ""
    keyed = [one.value for one in call.keywords if one.arg is None]
    rows = [one.value for one in call.args if isinstance(one, ast.Starred)]
    given = keyed or rows
    alone = len(given) == 1 and len(keyed) + len(call.args) == 1
    return given[0].id if alone and isinstance(given[0], ast.Name) else ""


def _moved(name: str, target: str) -> str:
    """A batch may hold a number or a text beside its tensors."""
    return f'{name}.to({target}) if hasattr({name}, "to") else {name}'


def _is_said(call: ast.Call, name: str) -> bool:
    return bool(call.args) or any(keyword.arg == name for keyword in call.keywords)


def _is_argument(run: Run, error: ErrorFact, name: str) -> bool:
    """True for an argument of the method `forward` that holds the failing line."""
    tree, line = syntax.parse(run.source_of(error.place.cell)), error.place.line or 0
    nodes = [node for node in syntax.walk(tree) if isinstance(node, ast.FunctionDef)] if tree is not None else []
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)]
    inner = max(around, key=lambda node: node.lineno, default=None)
    return inner is not None and inner.name == "forward" and any(one.arg == name for one in inner.args.args)
