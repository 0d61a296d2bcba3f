"""Indexing that copies, as the text of a cell has it: by a mask, a list or a tensor of numbers."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from torch_inspector.facts import IndexingFact, syntax
from torch_inspector.observe.source import KEEPS, dotted

# Indices of one cell that are noted; more are generated code.
_MOST = 64
# Calls that give a whole number.
_NUMBERS = frozenset(["int", "len", "random.randrange", "random.randint"])
# Calls that keep what they are given as it is.
_PUTS_TOGETHER = frozenset(["tuple", "list", "set", "TensorDataset"])


def indexing_facts(tree: ast.Module, offset: int) -> tuple[IndexingFact, ...]:
    """Every `source[index]` whose index may copy and whose result is kept under a name, by line."""
    found: list[IndexingFact] = []
    numbers = _numbers(tree)
    for node in syntax.walk(tree):
        target = _kept_as(node)
        if target:
            found.extend(_indexed(node, target, offset, numbers))
    if not found:
        return ()
    last = _bound_anew(tree, offset)
    kept = [fact for fact in found[:_MOST] if fact.line >= last.get(fact.target, 0)]
    return tuple(sorted(kept, key=lambda fact: fact.line))


def _numbers(tree: ast.Module) -> set[str]:
    """Names that the text gives nothing but numbers: by a call that makes one, or in a loop over a range."""
    found, others = set[str](), set[str]()
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            (found if _is_number(node.value, ()) else others).add(node.targets[0].id)
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            (found if _is_range(node.iter) else others).add(node.target.id)
        elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store):
            others.update(one.id for one in node.elts if isinstance(one, ast.Name))
        elif isinstance(node, ast.arg):
            others.add(node.arg)
    return found - others


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in {"range", "trange"}


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


def _indexed(statement: ast.AST, target: str, offset: int, numbers: set[str]) -> Iterator[IndexingFact]:
    for node in _kept_values(statement):
        if isinstance(node, ast.Subscript) and may_copy(node.slice, numbers):
            source = dotted(node.value)
            if source:
                yield IndexingFact(node.lineno + offset, source, _as_written(node.slice), target)


def _as_written(index: ast.expr) -> str:
    """Its text, without the brackets of a tuple: `(mask, :)` is nothing that can be read again."""
    text = ast.unparse(index)
    return text[1:-1] if isinstance(index, ast.Tuple) else text


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


def may_copy(index: ast.expr, numbers: Container[str] = ()) -> bool:
    """False for slices, plain numbers, names of keys, and tuples of those: views, or no tensors."""
    if isinstance(index, ast.Tuple):
        return any(may_copy(part, numbers) for part in index.elts)
    return not isinstance(index, (ast.Slice, ast.JoinedStr)) and not _is_number(index, numbers)


def _is_number(index: ast.expr, numbers: Container[str]) -> bool:
    """True for numbers, what is computed of them, and calls that give one."""
    if isinstance(index, ast.Name):
        return index.id in numbers
    if isinstance(index, ast.UnaryOp):
        return not isinstance(index.op, (ast.Invert, ast.Not))
    if isinstance(index, ast.BinOp):
        return _is_number(index.left, numbers) and _is_number(index.right, numbers)
    if isinstance(index, ast.Call):
        return dotted(index.func) in _NUMBERS or (isinstance(index.func, ast.Attribute) and index.func.attr == "item")
    if isinstance(index, ast.IfExp):
        return _is_number(index.body, numbers) and _is_number(index.orelse, numbers)
    return isinstance(index, ast.Constant)
