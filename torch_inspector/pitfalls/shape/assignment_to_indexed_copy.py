"""A value that was put into what indexing had copied."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, syntax
from torch_inspector.facts.shown import shown
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What forgets the numbers that were there, so that nobody runs it to see the result; `nn.init.uniform_` does too.
_ANEW = frozenset(
    ["fill_", "zero_", "copy_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "zeros_", "ones_",
     "constant_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"]
)  # fmt: skip
_WRITES = {"fill_": "=", "copy_": "=", "add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds assignments to an index of an index, of which the inner one makes a copy."""
    for fact in run.expressions("lost"):
        if len(fact.names) > 1:
            yield _finding(run, fact)


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    name, index = fact.names[:2]
    seen = _is_seen(run, fact)
    left = "the cell shows but does not put back" if seen else "nobody keeps"
    return Finding(
        message=(
            f"`{fact.text}` does not change `{name}`: `{name}[{index}]` makes a copy, "
            f"and the value goes into the copy, which {left}."
        ),
        subject=name,
        fix=_fix(fact, name, index),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("index that copies", index), *(Evidence(name, str(shape)) for shape in fact.shapes[:1])),
        severity="" if fact.sure and not seen else "hint",
    )


def _is_seen(run: Run, fact: ExpressionFact) -> bool:
    """True if the cell shows what a call makes of the numbers of the copy, which may be all that is wanted."""
    last = shown(run.cell.source) if fact.place.cell == run.cell.number and not fact.place.function else None
    call = last.value if last is not None and last.lineno == fact.place.line else None
    return isinstance(call, ast.Call) and syntax.last_part(call.func) not in _ANEW


def _fix(fact: ExpressionFact, name: str, index: str) -> str:
    """The statement that changes the tensor itself, with its own indices and value; a leaf where that is allowed."""
    made = _mended(fact.text, name, index)
    return "with torch.no_grad():\n" + textwrap.indent(made, "    ") if fact.detail == "leaf" else made


def _mended(text: str, name: str, index: str) -> str:
    tree, picked = syntax.parse(text), f"{name}[{index}]"
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _of_call(node.value, picked, text)
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if not isinstance(node, (ast.Assign, ast.AugAssign)) or not isinstance(target, ast.Subscript):
        return f"{picked} = …  # a single index that is assigned to changes {name} itself"
    given = ast.unparse(node).removeprefix(ast.unparse(target)).strip()
    if ast.unparse(target.value) != picked:
        return _by_part(f"{ast.unparse(target)} {given}", picked)
    inner = _as_written(target.slice)
    if inner.startswith(":, ") and "," not in index and all(map(_keeps_grid, getattr(target.slice, "elts", [])[1:])):
        return f"{name}[{index}, {inner[3:]}] {given}"
    return _by_part(f"{picked}[{inner}] {given}", picked)


def _by_part(text: str, picked: str) -> str:
    """The copy is given a name, changed, and put back."""
    part = "rows" if not re.search(r"\brows\b", text) else "picked"
    return f"{part} = {picked}\n{text.replace(picked, part, 1)}\n{picked} = {part}"


def _as_written(index: ast.expr) -> str:
    """Its text without the brackets of a tuple; `(*places, 0)` keeps them: Python 3.10 cannot read it without."""
    bare = isinstance(index, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in index.elts)
    return ast.unparse(index)[1:-1] if bare else ast.unparse(index)


def _keeps_grid(index: ast.expr) -> bool:
    """True for a slice and a plain number: lists and masks would be taken in pairs with the rows."""
    number = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(index, ast.Slice) or (isinstance(number, ast.Constant) and type(number.value) is int)


def _of_call(call: ast.Call, picked: str, text: str) -> str:
    """`x[mask] = 0` for `x[mask].zero_()`; for any other change of the copy, the copy is put back."""
    out = next((one for one in call.keywords if one.arg == "out"), None)
    changed = call.func.value if isinstance(call.func, ast.Attribute) else None
    if out is not None and ast.unparse(out.value) == picked:
        rest = [one for one in call.keywords if one is not out]
        return f"{picked} = {ast.unparse(ast.Call(call.func, call.args, rest))}"
    whole = changed is not None and ast.unparse(changed) == picked
    if not whole and not (call.args and ast.unparse(call.args[0]) == picked):
        return _by_part(text, picked)
    method = call.func.attr if whole and isinstance(call.func, ast.Attribute) else ""
    given = [ast.unparse(one) for one in call.args] if not call.keywords else []
    if method == "zero_":
        return f"{picked} = 0"
    if method in _WRITES and len(given) == 1:
        return f"{picked} {_WRITES[method]} {given[0]}"
    return f"{picked} = {ast.unparse(call)}"
