"""Indexing that copies, as the text of a cell has it: by a mask, a list or a tensor of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import IndexingFact, syntax
from torch_inspector.observe.source import KEEPS, dotted

# Indices of one cell that are noted; more are generated code.
_MOST = 64
# Calls that keep what they are given as it is.
_PUTS_TOGETHER = frozenset(["tuple", "list", "set", "TensorDataset"])


def indexing_facts(tree: ast.Module, offset: int) -> tuple[IndexingFact, ...]:
    """Every `source[index]` whose index may copy and whose result is kept under a name, by line."""
    found: list[IndexingFact] = []
    for node in syntax.walk(tree):
        target = _kept_as(node)
        if target:
            found.extend(_indexed(node, target, offset))
    if not found:
        return ()
    last = _bound_anew(tree, offset)
    kept = [fact for fact in found[:_MOST] if fact.line >= last.get(fact.target, 0)]
    return tuple(sorted(kept, key=lambda fact: fact.line))


def _bound_anew(tree: ast.Module, offset: int) -> dict[str, int]:
    """Names and the last lines that give them something computed: what was copied into them before is gone."""
    found: dict[str, int] = {}
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and not isinstance(node.value, (ast.Subscript, ast.Name)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = max(found.get(target.id, 0), node.lineno + offset)
    return found


def _kept_as(node: ast.AST) -> str:
    """The variable that a statement puts its value into: `folds` for `folds.append(…)`, `parts['a'] = …`."""
    if isinstance(node, ast.Assign):
        return next(filter(None, map(_root, node.targets)), "")
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        return _root(node.target)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in KEEPS:
        return _root(call.func.value)
    return ""


def _root(node: ast.AST) -> str:
    if isinstance(node, (ast.Tuple, ast.List)):
        return next(filter(None, map(_root, node.elts)), "")
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _indexed(statement: ast.AST, target: str, offset: int) -> Iterator[IndexingFact]:
    for node in _kept_values(statement):
        if isinstance(node, ast.Subscript) and _may_copy(node.slice):
            source = dotted(node.value)
            if source:
                yield IndexingFact(node.lineno + offset, source, ast.unparse(node.slice), target)


def _kept_values(statement: ast.AST) -> Iterator[ast.expr]:
    """The values that are kept as they are: not what other functions make of them."""
    value: ast.expr | None = getattr(statement, "value", None)
    stack: list[ast.expr | None] = [value]
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        stack = [*reversed(value.args)]
    while stack:
        node = stack.pop()
        if node is not None:
            yield node
            stack.extend(reversed(_parts(node)))


def _parts(node: ast.expr) -> list[ast.expr | None]:
    """What a display, a comprehension or a data set puts together."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [*node.elts]
    if isinstance(node, ast.Dict):
        return [*node.values]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return [node.elt]
    if isinstance(node, (ast.DictComp, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in _PUTS_TOGETHER:
        return [*node.args]
    return []


def _may_copy(index: ast.expr) -> bool:
    """False for slices, plain numbers, names of keys, and tuples of those: views, or no tensors."""
    if isinstance(index, ast.Tuple):
        return any(map(_may_copy, index.elts))
    return not isinstance(index, (ast.Slice, ast.Constant, ast.UnaryOp, ast.JoinedStr)) or _is_inverted(index)


def _is_inverted(index: ast.expr) -> bool:
    return isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert)
