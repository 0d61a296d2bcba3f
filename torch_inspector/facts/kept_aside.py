"""Parameters that a class keeps in a plain container on purpose, as its text says: handed out, or copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import called, syntax

_COPIES = frozenset(["deepcopy", "clone", "parameters", "named_parameters", "state_dict"])
_GROWS = frozenset(["append", "extend", "insert", "appendleft", "update", "setdefault", "clear", "len", "sum"])
_WHOLE = frozenset(["list", "tuple", "iter", "values"])
# Classes that one inherits from are followed so far.
_GENERATIONS = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_kept_aside(trees: list[ast.Module], kind: str, attribute: str) -> bool:
    """True if a class fills a container with copies of parameters, or a method gives its parameters out.

    Args:
        trees: Of all cells.
        kind: Name of the class; those that it inherits from count as well.
        attribute: That holds the container.
    """
    classes = [one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.ClassDef)]
    names, family = {kind}, list[ast.ClassDef]()
    for _ in range(_GENERATIONS):
        family = [one for one in classes if one.name in names]
        names |= {base.id for one in family for base in one.bases if isinstance(base, ast.Name)}
    return any(_keeps_aside(one, attribute) for one in family)


def _keeps_aside(kind: ast.ClassDef, attribute: str) -> bool:
    methods = [one for one in kind.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if any(_copies(one, attribute) or _returns(one, attribute) for one in methods):
        return True
    computing = _computing(methods)
    return any(_hands_out(one, attribute) for one in methods if one.name not in computing)


def _computing(methods: list[_Function]) -> set[str]:
    """Names of the methods that a forward pass goes through, and of those that Python itself calls."""
    found = {one.name for one in methods if one.name == "forward" or one.name.startswith("__")} - {"__iter__"}
    for _ in methods:
        bodies = (one for one in methods if one.name in found and one.name != "__init__")
        calls = (node for one in bodies for node in syntax.walk(one) if isinstance(node, ast.Call))
        found |= {one.func.attr for one in calls if isinstance(one.func, ast.Attribute)}
    return found


def _is_own(node: ast.AST, attribute: str) -> bool:
    """`self.attribute`."""
    own = isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.value, ast.Name)
    return own and node.value.id == "self"  # type: ignore[attr-defined]


def _hands_out(method: _Function, attribute: str) -> bool:
    """True if a method uses the container as a whole and gives something back, or yields it."""
    nodes = list(syntax.walk(method))
    gives = any(isinstance(one, (ast.Return, ast.Yield, ast.YieldFrom)) and one.value is not None for one in nodes)
    if not gives:
        return False
    part = {id(one) for node in nodes for one in _not_whole(node)}
    return any(_is_own(one, attribute) and id(one) not in part for one in nodes)


def _returns(method: _Function, attribute: str) -> bool:
    """True for `return self.attribute`, also as a list or with others in one."""
    given = [one.value for one in syntax.own_expressions(method) if isinstance(one, (ast.Return, ast.YieldFrom))]
    parts = (part for one in given if isinstance(one, (ast.List, ast.Tuple)) for part in one.elts)
    wholes = [*given, *(part.value for part in parts if isinstance(part, ast.Starred))]
    return any(_is_own(_content(one), attribute) for one in wholes if one is not None)


def _content(node: ast.expr) -> ast.expr:
    """`x` of `list(x)` and `x.values()`."""
    if not isinstance(node, ast.Call) or called(node) not in _WHOLE:
        return node
    return _content(
        node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node.func
    )


def _not_whole(node: ast.AST) -> Iterator[ast.AST]:
    """What is only asked for an element, its length or a sum, or is filled."""
    if isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Call) and called(node) in _GROWS:
        yield from (one for part in (node.func, *node.args[:1]) for one in syntax.walk(part))


def _copies(method: _Function, attribute: str) -> bool:
    """True if a method fills the container with what it makes of the parameters of some module."""
    filling = [one for one in syntax.own_statements(method) if _fills(one, attribute)]
    return any(_is_of_copies(part) for one in filling for part in _around(method, one))


def _fills(node: ast.stmt, attribute: str) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return any(_is_own(one, attribute) for one in (node.targets if isinstance(node, ast.Assign) else [node.target]))
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and _is_own(function.value, attribute)


def _around(method: _Function, statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement, the values of the variables in it, and what the loops around it go over."""
    yield statement
    names = {one.id for one in syntax.walk(statement) if isinstance(one, ast.Name)} - {"self"}
    for one in syntax.own_statements(method):
        if isinstance(one, ast.Assign) and names & {part.id for part in one.targets if isinstance(part, ast.Name)}:
            yield one.value
        elif isinstance(one, ast.For) and one.lineno <= statement.lineno <= (one.end_lineno or one.lineno):
            yield one.iter


def _is_of_copies(node: ast.AST) -> bool:
    return any(called(one) in _COPIES for one in syntax.walk(node) if isinstance(one, ast.Call))
