"""Statements that put weights into a field, an entry or a global name, and expressions that compare them again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.distances import is_measured, is_tested
from torch_inspector.observe.meant_alike import is_meant, is_trained_with
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import is_in_loop
from torch_inspector.observe.taken import bare, bound, copied, in_step, origin

_WEIGHTS = ".parameters()"
# What tells how far both are apart. `equal` and its like are checks, by people who may know that both are one.
_COMPARES = frozenset(["sub", "dist", "mse_loss", "l1_loss"])
_EMPTY = frozenset(["[]", "{}", "None", "dict()", "list()", "OrderedDict()"])


class Fill(NamedTuple):
    """A statement that puts weights somewhere."""

    kept: ast.expr
    model: str
    node: ast.stmt
    function: str
    file: CodeFile
    fix: str


class Use(NamedTuple):
    """An expression that compares what is kept with the weights."""

    kept: ast.expr
    model: ast.expr
    node: ast.expr
    scope: ast.AST
    file: CodeFile

    @property
    def function(self) -> str:
        """The function that it stands in; empty for none."""
        return getattr(self.scope, "name", "")

    def is_of(self, fill: Fill) -> bool:
        """True if place and model are called alike where it was filled."""
        model = fill.model.rpartition(".")[2]
        return _end(self.kept) == _end(fill.kept) and ast.unparse(self.model).rpartition(".")[2] == model


def fills_in(file: CodeFile) -> tuple[Fill, ...]:
    """All of a cell, in its functions too."""
    return _fills_in(file.tree, file) if file.tree is not None else ()


def uses_in(file: CodeFile) -> tuple[Use, ...]:
    """All of a cell, in its functions too."""
    return _uses_in(file.tree, file) if file.tree is not None else ()


def is_plain(fill: Fill, use: Use, files: list[CodeFile]) -> bool:
    """True if nothing else is put there, it is not trained, no test asks for it, and the model is one model only."""
    trees = [file.tree for file in files if file.tree is not None]
    trained = is_trained_with(_end(fill.kept), trees)
    asked = trained or is_tested(use.node, use.scope, trees)
    return not asked and not _is_refilled(fill, files) and not _may_be_another(use.model, files)


def _is_refilled(fill: Fill, files: list[CodeFile]) -> bool:
    """True if some statement puts anything else there: a copy, say, as soon as it matters."""
    fills = {id(one.node) for file in files for one in fills_in(file)}
    every = ((node, file) for file in files for node in _assignments(file) if id(node) not in fills)
    return any(
        _end(_place_of(target)) == _end(fill.kept) and (node.value is None or ast.unparse(node.value) not in _EMPTY)
        for node, _ in every
        for target in syntax.targets_of(node)
    )


def _may_be_another(model: ast.expr, files: list[CodeFile]) -> bool:
    """True if a loop, a function or a method past `__init__` gives the model's name another one."""
    name = _end(model)
    for tree in (one.tree for one in files if one.tree is not None and name in one.code):
        for node in syntax.walk(tree):
            if isinstance(node, ast.Global) and name in node.names and isinstance(model, ast.Name):
                return True
            if not isinstance(getattr(node, "ctx", None), ast.Store) or syntax.name_of(node) != name:
                continue
            if isinstance(node, ast.Attribute) and syntax.name_around(tree, node.lineno) != "__init__":
                return True
            if isinstance(node, ast.Name) and isinstance(model, ast.Name) and _is_again(tree, node):
                return True
    return False


def _is_again(tree: ast.Module, name: ast.Name) -> bool:
    """True for a name of the cell itself that a loop gives a value."""
    if syntax.function_around(tree, name.lineno) is not None:
        return False
    statement = syntax.statement_of(name, syntax.parents(tree))
    return statement is not None and (is_in_loop(tree, statement) or isinstance(statement, ast.For))


@lru_cache(maxsize=128)
def _fills_in(tree: ast.Module, file: CodeFile) -> tuple[Fill, ...]:
    return tuple(one for scope in (tree, *syntax.functions_of(tree)) for one in _fills_of(scope, file))


def _fills_of(scope: ast.AST, file: CodeFile) -> Iterator[Fill]:
    for node in syntax.own_statements(scope):
        for target, value, is_part in _puts(node):
            source = _source(value, scope) if not is_part else origin(value, scope)
            if source.endswith(_WEIGHTS) and _is_path(target):
                text = ast.unparse(value)
                before, _, after = ast.unparse(node).rpartition(text)
                fix = f"{before}{copied(value)}{after}"
                name = getattr(scope, "name", "")
                yield Fill(target, source.removesuffix(_WEIGHTS), node, name, file, fix)


def _puts(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What a statement puts where, and whether it is one of several: `self.old[n] = p.data`, `old.append(p.data)`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        yield target, node.value, False
        if isinstance(target, ast.Subscript):
            yield target.value, node.value, True
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append" and call.args:
        yield call.func.value, call.args[0], True


def _source(value: ast.expr, scope: ast.AST) -> str:
    """What all of a list or dictionary is taken from: `net.parameters()`."""
    if isinstance(value, ast.Call) and dotted(value.func) in {"list", "tuple", "dict"} and len(value.args) == 1:
        value = value.args[0]
        if isinstance(value, ast.Call):
            return origin(value, scope)
    if isinstance(value, ast.DictComp):
        return origin(value.value, scope)
    return origin(value.elt, scope) if isinstance(value, (ast.ListComp, ast.GeneratorExp)) else ""


@lru_cache(maxsize=128)
def _uses_in(tree: ast.Module, file: CodeFile) -> tuple[Use, ...]:
    return tuple(one for scope in (tree, *syntax.functions_of(tree)) for one in _uses_of(scope, file))


def _uses_of(scope: ast.AST, file: CodeFile) -> Iterator[Use]:
    for node in syntax.own_expressions(scope):
        for one, other in _sides(node):
            source = origin(other, scope)
            kept = _held(one, scope) if source.endswith(_WEIGHTS) else None
            model = syntax.expression(source.removesuffix(_WEIGHTS)) if kept is not None else None
            if kept is None or model is None or not isinstance(node, ast.expr) or not _is_path(model):
                continue
            measured = file.tree is not None and is_measured(node, scope, file.tree)
            if measured and in_step(one, other, scope) and not is_meant(node, scope):
                yield Use(kept, model, node, scope, file)


def _sides(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both sides of a difference or comparison, in both orders."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and syntax.name_of(node.func) in _COMPARES:
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) and len(node.args) == 1 else []
        sides = [*owner, *node.args][:2]
    if len(sides) > 1:
        yield sides[0], sides[1]
        yield sides[1], sides[0]


def _held(side: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The place that a side is one of: `self.old` of `self.old[n]`, or of a loop over it."""
    node = bare(side)
    if isinstance(node, ast.Name):
        over = {ast.unparse(one): one for one in bound(node, scope)}
        node = over.popitem()[1] if len(over) == 1 else node
        values = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values"
        node = node.func.value if values else node  # type: ignore[attr-defined]
        return node if over is not None and _is_path(node) and node is not bare(side) else None
    return node.value if isinstance(node, ast.Subscript) and _is_path(node.value) else None


def _is_path(node: ast.expr) -> bool:
    """True for names, fields, and entries by a key that is written out."""
    if isinstance(node, ast.Attribute):
        return _is_path(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and type(node.slice.value) is str and _is_path(node.value)
    return isinstance(node, ast.Name)


def _place_of(target: ast.expr) -> ast.expr:
    """`self.old` of `self.old[n] = …`."""
    return target.value if isinstance(target, ast.Subscript) and not _is_path(target) else target


def _end(node: ast.expr) -> str:
    """The last name of a place: `old` of `self.old` and of `state['old']`."""
    if isinstance(node, ast.Subscript):
        return str(node.slice.value) if isinstance(node.slice, ast.Constant) else _end(node.value)
    return syntax.name_of(node)


def _assignments(file: CodeFile) -> Iterator[ast.Assign | ast.AnnAssign]:
    nodes = syntax.walk(file.tree) if file.tree is not None else ()
    return (one for one in nodes if isinstance(one, (ast.Assign, ast.AnnAssign)))
