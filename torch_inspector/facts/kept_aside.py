"""Parameters that a class keeps in a plain container on purpose, as its text says: handed out, copied, or moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import called, syntax
from torch_inspector.facts.carried_out import Carried

_COPIES = frozenset(["deepcopy", "clone", "detach", "parameters", "named_parameters", "state_dict"])
# What these make of nothing is of no module, copied or not.
_FACTORIES = frozenset(["torch", "np", "numpy", "math"])
_WHOLE = frozenset(["list", "tuple", "iter", "values"])
# What fills a parameter at the start is no step.
_STEP = r"\.(?!requires_grad_|normal_|uniform_|zero_|fill_|bernoulli_)\w+_\("
_SIGNED = r"\s*([-+*/]|//|\*\*)="
# Writes into one past the optimizers: `a.data.lerp_(b, 0.1)`, `d.data -= g`, `torch._foreach_add_(self.deltas, g)`.
_MOVED = rf"\b{{0}}(\.data)?({_STEP}|\.data{_SIGNED}|\.data\s*=[^=])|\btorch\.\w+_\([^()\n]*{{0}}\b"
# Classes that one inherits from are followed so far.
_GENERATIONS = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_kept_aside(trees: list[ast.Module], kind: str, attribute: str) -> bool:
    """True if a class fills a container with copies of parameters, gives these out, or they are moved by hand.

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
    return any(_keeps_aside(one, attribute) for one in family) or (bool(family) and _is_moved(trees, attribute))


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
    """True if a method gives the elements of the container back, or yields them."""
    return Carried(attribute).leave(method)


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


def _copies(method: _Function, attribute: str) -> bool:
    """True if a method fills the container with what it makes of the parameters of some module."""
    filling = [one for one in syntax.own_statements(method) if _fills(one, attribute)]
    return any(_is_of_copies(method, part) for one in filling for part in _around(method, one))


def _fills(node: ast.stmt, attribute: str) -> bool:
    """True for `self.attribute = ...`, `self.attribute[key] = ...` and `self.attribute.append(...)`."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(_is_own(one.value if isinstance(one, ast.Subscript) else one, attribute) for one in targets)
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


def _is_of_copies(method: _Function, node: ast.AST) -> bool:
    """True if something is copied that torch has not just made."""
    return any(_root(method, one) not in _FACTORIES for one in syntax.walk(node) if _is_copy(one))


def _is_copy(node: ast.AST) -> bool:
    data = isinstance(node, ast.Attribute) and node.attr == "data"
    return data or (isinstance(node, ast.Call) and called(node) in _COPIES)


def _root(method: _Function, node: ast.AST, steps: int = 4) -> str:
    """The name that an expression begins with, or that of what gave that name its value."""
    while not isinstance(node, ast.Name):
        function = node.func if isinstance(node, ast.Call) else None
        of_module = isinstance(function, ast.Attribute) and ast.unparse(function.value) in ("torch", "copy")
        if isinstance(node, ast.Call) and (isinstance(function, ast.Name) or (of_module and called(node) in _COPIES)):
            inner: ast.AST | None = node.args[0] if node.args else None
        else:
            inner = function or getattr(node, "value", getattr(node, "left", None))
        if not isinstance(inner, ast.AST):
            return ""
        node = inner
    given = _given(method, node.id) if steps else None
    return _root(method, given, steps - 1) if given is not None else node.id


def _given(method: _Function, name: str) -> ast.expr | None:
    """What a variable of a method is given, or goes over; None for its arguments."""
    for one in syntax.walk(method):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        if any(isinstance(part, ast.Name) and part.id == name for part in targets):
            found = getattr(one, "iter", getattr(one, "value", None))
            return found if isinstance(found, ast.expr) else None
    return None


def _is_moved(trees: list[ast.Module], attribute: str) -> bool:
    """True if the text changes the parameters by hand, in a loop over the container or by index."""
    return any(_moves(one, attribute) for tree in trees for one in syntax.walk(tree))


def _moves(node: ast.AST, attribute: str) -> bool:
    if isinstance(node, ast.For):
        over = {one.attr for one in syntax.walk(node.iter) if isinstance(one, ast.Attribute)}
        names = [one.id for one in syntax.walk(node.target) if isinstance(one, ast.Name)] if attribute in over else []
        text = "\n".join(map(ast.unparse, node.body)) if names else ""
        ways = (f"{_MOVED}|^\\s*{{0}}{_SIGNED}".format(re.escape(name)) for name in names)
        return any(re.search(way, text, re.MULTILINE) for way in ways)
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) or attribute not in (text := ast.unparse(node)):
        return False
    element = rf"\.{re.escape(attribute)}(\[[^\]\n]*\])?"
    return re.search(_MOVED.replace(r"\b{0}", "{0}").format(element), text) is not None
