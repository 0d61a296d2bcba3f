"""The call in one function that leads to a line of another."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


def call_that_led_to(run: Run, inner: Place, outer: Place) -> str:
    """The statement `self.backward_G()` beside the place `outer`, for a place in that method; empty if none is sure.

    So is one that is told the name, as `self.call("on_loss")` of a trainer with callbacks.
    """
    if inner.scope == outer.scope or not inner.function:
        return ""
    tree, name = syntax.parse(run.source_of(outer.cell)), inner.function.rpartition(".")[2]
    if tree is None or outer.line is None:
        return ""
    calls = [one.value for one in syntax.walk(syntax.scope_at(tree, outer.line)) if isinstance(one, ast.Expr)]
    texts = {ast.unparse(one) for one in calls if isinstance(one, ast.Call) and syntax.last_part(one.func) == name}
    texts = texts or {ast.unparse(one) for one in calls if isinstance(one, ast.Call) and _is_told(one, name)}
    return texts.pop() if len(texts) == 1 else ""


def _is_told(call: ast.Call, name: str) -> bool:
    return any(isinstance(one, ast.Constant) and type(one.value) is str and one.value == name for one in call.args)
