"""Whether the text of a notebook leaves a tensor alone, or does with its values what no optimizer would."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Who reads gradients steps, attacks or explains by hand, perhaps by another name of the tensor: `for p in parameters`.
_READS_GRADIENTS = re.compile(r"\bgrad\b|\bregister_(post_accumulate_grad_)?hook\b|\b(jacobian|hessian|vjp|jvp)\b")
_WRITES = r"\b{name}\b(\[[^\]\n]*\])?(\.data\b|\s*([-+*/]|//|\*\*)=|\.(?!requires_grad_)\w+_\(|\[[^\]\n]*\]\s*=[^=])"
_LOOPS = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


def left_alone(run: Run, name: str, at: Place) -> bool:
    """True if no cell so far reads gradients or writes into a tensor, and the turns around a place share it."""
    last = re.split(r"\W+", name.partition("[")[0])[-1]
    writes = re.compile(_WRITES.format(name=re.escape(last)))
    sources = [one.cell.source for one in (*run.earlier, run)]
    if not last or any(_READS_GRADIENTS.search(source) or writes.search(source) for source in sources):
        return False
    return last not in _made_each_turn(run, at)


def _made_each_turn(run: Run, at: Place) -> set[str]:
    """Names that the innermost loop or function around a place gives a value."""
    tree, line = syntax.parse(run.source_of(at.cell)), at.line or 0
    nodes = syntax.walk(tree) if tree is not None else ()
    around = [one for one in nodes if isinstance(one, _LOOPS) and one.lineno < line <= (one.end_lineno or 0)]
    inner = max(around, key=lambda one: one.lineno, default=None)
    return set(_given_names(inner)) if inner is not None else set()


def _given_names(scope: ast.AST) -> Iterator[str]:
    for node in syntax.walk(scope):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
