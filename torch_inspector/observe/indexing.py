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
_PUTS_TOGETHER = frozenset(["tuple", "list", "set", "dict"])
# By exact class, which is what a parser makes: asked of all nodes of a cell, `isinstance` takes ten times as long.
_KEEPING = frozenset([ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Expr])
_GIVING = frozenset([ast.Assign, ast.For, ast.comprehension, ast.Tuple, ast.List, ast.arg])


def indexing_facts(tree: ast.Module, offset: int) -> tuple[IndexingFact, ...]:
    """Every `source[index]` whose index may copy and whose result is kept under a name, by line."""
    found: list[tuple[ast.Subscript, str]] = []
    for node in syntax.walk(tree):
        if type(node) in _KEEPING and (target := kept_as(node)):
            found.extend((one, target) for one in indexed_in(node))
    numbers = numbers_in(tree, [one.slice for one, _ in found])
    kept = [one for one in found if not numbers or may_copy(one[0].slice, numbers)][:_MOST]
    last = _bound_anew(tree) if kept else {}
    facts = [_fact(one, target, offset) for one, target in kept if one.lineno >= last.get(target, 0)]
    return tuple(sorted(facts, key=lambda fact: fact.line))


def _fact(node: ast.Subscript, target: str, offset: int) -> IndexingFact:
    return IndexingFact(node.lineno + offset, dotted(node.value), as_written(node.slice), target)


def numbers_in(tree: ast.AST, indexes: list[ast.expr]) -> set[str]:
    """Names in some indexes that the text gives nothing but numbers: by calls that make one, in a loop over a range."""
    named = {one.id for index in indexes for one in syntax.walk(index) if isinstance(one, ast.Name)}
    found, others = set[str](), set[str]()
    for node in syntax.walk(tree) if named else ():
        if type(node) in _GIVING:
            _read(node, found, others)
    return (found - others) & named


def _read(node: ast.AST, found: set[str], others: set[str]) -> None:
    """Notes the names that a part of the text gives something: a number, or anything else."""
    if isinstance(node, ast.Assign):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            (found if _is_number(node.value, ()) else others).add(node.targets[0].id)
    elif isinstance(node, (ast.For, ast.comprehension)):
        if isinstance(node.target, ast.Name):
            (found if _is_range(node.iter) else others).add(node.target.id)
    elif isinstance(node, (ast.Tuple, ast.List)):
        if isinstance(node.ctx, ast.Store):
            others.update(one.id for one in node.elts if isinstance(one, ast.Name))
    elif isinstance(node, ast.arg):
        others.add(node.arg)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in {"range", "trange"}


def _bound_anew(tree: ast.Module) -> dict[str, int]:
    """Names and the last lines that give them something computed: what was copied into them before is gone."""
    found: dict[str, int] = {}
    for node in syntax.walk(tree):
        if type(node) is ast.Assign and not isinstance(node.value, (ast.Subscript, ast.Name)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = max(found.get(target.id, 0), node.lineno)
    return found


def kept_as(node: ast.AST) -> str:
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


def indexed_in(statement: ast.AST) -> Iterator[ast.Subscript]:
    """What a statement keeps of something that has a name, by an index that may copy."""
    for node in kept_values(statement):
        if isinstance(node, ast.Subscript) and may_copy(node.slice) and dotted(node.value):
            yield node


def as_written(index: ast.expr) -> str:
    """Its text, without the brackets of a tuple: `(mask, :)` is nothing that can be read again.

    `(*places, mask)` keeps them: up to Python 3.10 it is nothing that can be read without.
    """
    text = ast.unparse(index)
    bare = isinstance(index, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in index.elts)
    return text[1:-1] if bare else text


def kept_values(statement: ast.AST) -> Iterator[ast.expr]:
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
    if isinstance(node, ast.Call) and _puts_together(dotted(node.func).split(".")[-1]):
        return [*node.args, *(one.value for one in node.keywords)]
    return []


def _puts_together(name: str) -> bool:
    """True for containers and classes, `TensorDataset` as well as `Fold`: what is kept is looked for afterwards."""
    return name in _PUTS_TOGETHER or name[:1].isupper()


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
