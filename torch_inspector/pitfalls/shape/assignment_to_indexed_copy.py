"""A value that was put into what indexing had copied."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_WRITES = {"fill_": "=", "copy_": "=", "add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds assignments to an index of an index, of which the inner one makes a copy."""
    for fact in run.expressions("lost"):
        if len(fact.names) > 1:
            yield _finding(fact)


def _finding(fact: ExpressionFact) -> Finding:
    name, index = fact.names[:2]
    return Finding(
        message=(
            f"`{fact.text}` does not change `{name}`: `{name}[{index}]` makes a copy, "
            "and the value goes into the copy, which nobody keeps."
        ),
        subject=name,
        fix=_fix(fact.text, name, index),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("index that copies", index), *(Evidence(name, str(shape)) for shape in fact.shapes[:1])),
        severity="" if fact.sure else "hint",
    )


def _fix(text: str, name: str, index: str) -> str:
    """The statement that changes the tensor itself, with its own indices and value."""
    tree = syntax.parse(text)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _of_call(node.value, f"{name}[{index}]")
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if not isinstance(node, (ast.Assign, ast.AugAssign)) or not isinstance(target, ast.Subscript):
        return f"{name}[{index}] = …  # a single index that is assigned to changes {name} itself"
    given = ast.unparse(node).removeprefix(ast.unparse(target)).strip()
    inner = _as_written(target.slice)
    if inner.startswith(":, ") and "," not in index and all(map(_keeps_grid, getattr(target.slice, "elts", [])[1:])):
        return f"{name}[{index}, {inner[3:]}] {given}"
    part = "rows" if not re.search(r"\brows\b", text) else "picked"
    return f"{part} = {name}[{index}]\n{part}[{inner}] {given}\n{name}[{index}] = {part}"


def _as_written(index: ast.expr) -> str:
    """Its text without the brackets of a tuple; `(*places, 0)` keeps them: Python 3.10 cannot read it without."""
    bare = isinstance(index, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in index.elts)
    return ast.unparse(index)[1:-1] if bare else ast.unparse(index)


def _keeps_grid(index: ast.expr) -> bool:
    """True for a slice and a plain number: lists and masks would be taken in pairs with the rows."""
    number = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(index, ast.Slice) or (isinstance(number, ast.Constant) and type(number.value) is int)


def _of_call(call: ast.Call, picked: str) -> str:
    """`x[mask] = 0` for `x[mask].zero_()`; for any other change of the copy, the copy is put back."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = [ast.unparse(one) for one in call.args] if not call.keywords else []
    if method == "zero_":
        return f"{picked} = 0"
    if method in _WRITES and len(given) == 1:
        return f"{picked} {_WRITES[method]} {given[0]}"
    return f"{picked} = {ast.unparse(call)}"
