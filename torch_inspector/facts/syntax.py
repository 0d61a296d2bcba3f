"""The nodes of a cell's text, read again and again by everybody who judges it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

# Kept at the nodes themselves: asking for children is most of what reading a tree costs.
_CHILDREN, _WALKED, _OWN, _FUNCTIONS = "_children", "_walked", "_own", "_functions"
# Nodes that many people read whole; of the others, only the children are remembered.
_WHOLES = (ast.Module, ast.FunctionDef, ast.For, ast.While)
# What has names of its own. As tuples: a union of types would be made anew, and is asked slowly.
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# Kinds that many ask for together.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def parse(code: str) -> ast.Module | None:
    """The parsed code, the same tree for the same text, or None where it is no Python."""
    try:
        return _parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def expression(text: str) -> ast.expr | None:
    """The one expression that a text is, the same tree for the same text; None for anything else."""
    tree = parse(text)
    first = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return first.value if isinstance(first, ast.Expr) else None


@lru_cache(maxsize=64)
def _parsed(code: str) -> ast.Module:
    return ast.parse(code)


def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """What `ast.iter_child_nodes` gives, remembered; for nodes that nobody changes afterwards."""
    try:
        found: tuple[ast.AST, ...] = node.__dict__[_CHILDREN]
    except KeyError:
        found = tuple(ast.iter_child_nodes(node))
        node.__dict__[_CHILDREN] = found
    return found


def walk(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`, remembered; for trees that nobody changes afterwards."""
    inner: list[ast.AST] | None = node.__dict__.get(_WALKED)
    if inner is None:
        inner = list(children(node))
        for one in inner:  # grows while it is read
            inner.extend(children(one))
        if isinstance(node, _WHOLES):
            node.__dict__[_WALKED] = inner
    return chain((node,), inner)


def own_expressions(scope: ast.AST) -> Iterable[ast.AST]:
    """Nodes of a scope without those of functions inside it, remembered."""
    found: list[ast.AST] | None = scope.__dict__.get(_OWN)
    if found is None:
        found, stack = [], list(children(scope))
        while stack:
            node = stack.pop()
            found.append(node)
            if not isinstance(node, INNER):
                stack.extend(children(node))
        scope.__dict__[_OWN] = found
    return found


def own_statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a scope, without those of functions inside it."""
    return (node for node in own_expressions(scope) if isinstance(node, ast.stmt))


def functions_of(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a tree, remembered."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] | None = tree.__dict__.get(_FUNCTIONS)
    if found is None:
        found = [one for one in walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        tree.__dict__[_FUNCTIONS] = found
    return found


def function_around(tree: ast.AST, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function that holds a line; None at the top level."""
    around = [one for one in functions_of(tree) if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(around, key=lambda one: one.lineno, default=None)


@lru_cache(maxsize=64)
def scope_at(tree: ast.AST, line: int) -> ast.AST:
    """That function, or the whole cell."""
    return function_around(tree, line) or tree


def name_around(tree: ast.AST, line: int) -> str:
    """Name of that function; empty at the top level."""
    function = function_around(tree, line)
    return function.name if function is not None else ""


@lru_cache(maxsize=64)
def parents(tree: ast.AST) -> dict[int, ast.AST]:
    """What each node of a tree stands in, by identity of the node, remembered."""
    return {id(child): parent for parent in walk(tree) for child in children(parent)}


def statement_of(node: ast.AST, parents: dict[int, ast.AST]) -> ast.stmt | None:
    """The statement around a node; None in a lambda."""
    while not isinstance(node, ast.stmt) and id(node) in parents:
        node = parents[id(node)]
    return node if isinstance(node, ast.stmt) else None


def spans(node: ast.stmt | ast.expr, line: int) -> bool:
    """True if a line is one of a statement, or of an expression."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def loop_around(code: str, line: int) -> ast.For | ast.While | None:
    """The innermost loop that a line of a text stands in."""
    tree = parse(code)
    loops = [node for node in walk(tree) if isinstance(node, (ast.For, ast.While))] if tree is not None else []
    return max((loop for loop in loops if spans(loop, line)), key=lambda loop: loop.lineno, default=None)


def names_in(node: ast.AST) -> set[str]:
    """All plain names in an expression."""
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def root_of(node: ast.AST) -> str:
    """`net` for `net.head[0].weight`; empty if it does not begin with a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def whole_of(node: ast.AST) -> ast.AST:
    """`run.kept` of `run.kept['model'][0]`: what the indices are of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def name_of(node: ast.AST) -> str:
    """`x` of `x` and `self.x`; empty for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def last_part(function: ast.expr) -> str:
    """`softmax` of `torch.nn.functional.softmax`."""
    return ast.unparse(function).rpartition(".")[2]


def targets_of(node: ast.AST) -> list[ast.expr]:
    """What an assignment of any kind gives a value."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]


def parameters_of(scope: ast.AST) -> set[str]:
    """Names of what a function or lambda is given; none for other scopes."""
    given = getattr(scope, "args", None)
    return {one.arg for one in walk(given) if isinstance(one, ast.arg)} if given is not None else set()


def is_division(node: ast.AST) -> bool:
    """True for `a / b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def axis_named(node: ast.AST) -> int | None:
    """The axis that a call names as a number: by `dim=` or `axis=`, or as the last of what it is given."""
    if not isinstance(node, ast.Call):
        return None
    named = [one.value for one in node.keywords if one.arg in ("dim", "axis")]
    last = next(iter(named or node.args[-1:]), None)
    below = last.operand if isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.USub) else None
    value = getattr(below or last, "value", None)
    return (-value if below is not None else value) if type(value) is int else None


def attached(node: ast.AST) -> ast.expr | None:
    """`x` of `x.detach()` and `x.data`; None for anything else."""
    method = node.func if isinstance(node, ast.Call) and not node.args else node
    named = isinstance(method, ast.Attribute) and method.attr == ("data" if method is node else "detach")
    return method.value if named and isinstance(method, ast.Attribute) else None
