"""Parameters that the text moves by hand, as a running average does: they are to get no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Words of programs in which an average or a clustering moves them; `schema`, `remaining` and `SCHEMA` are none.
_WORDS = re.compile(
    r"(?i:\bema\b|\bema_|_ema\b|_ema_|moving.?average|momentum.?(update|encoder)|polyak|k_?means|lloyd|swa_"
    r"|\.grad\s*=|_hook\(.*grad)|(?<![A-Z])EMA(?![a-z]|[A-Z](?![a-z]))"
)
_COMMENT = re.compile(r"#.*")
# Functions that give a model its first weights, without underscores around their names.
_BUILDERS = frozenset(["init", "reset", "reset_parameters", "init_weights", "init_parameters", "initialize"])
_Function = ast.FunctionDef | ast.AsyncFunctionDef

Writers = Mapping[str, tuple[tuple[int, str], ...]]
"""Functions that write into what they are given: positions and names of those parameters."""


def moves_by_hand(trees: Iterable[ast.Module], code: Iterable[str], name: str) -> bool:
    """True if a cell writes into what has this last name, elsewhere than where it is built."""
    if any(_WORDS.search(_COMMENT.sub("", text)) for text in code):
        return True
    known = list(trees)
    writers = dict(pair for tree in known for pair in _writers(tree))
    return any(_mentions(one, name) for tree in known for one in (*_written(tree), *_handed(tree, writers)))


def _written(tree: ast.AST) -> Iterator[ast.AST]:
    """What statements write into: the loop that gives a name its values stands for that name."""
    stack = list(syntax.children(tree))
    while stack:
        node = stack.pop()
        if isinstance(node, _Function) and node.name.strip("_") in _BUILDERS:
            continue
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            yield from (part for part in _targets(node) if isinstance(part, (ast.Attribute, ast.Subscript)))
        elif isinstance(node, ast.For) and any(_writes(inner) for inner in syntax.walk(node)):
            yield node.iter
        stack.extend(syntax.children(node))


def _of_call(call: ast.Call) -> Iterator[ast.AST]:
    """`x` in `x.lerp_(…)`, `x.load_state_dict(…)`, `torch._foreach_lerp_(x, …)`."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    if isinstance(call.func, ast.Attribute) and (_is_in_place(method) or method == "load_state_dict"):
        yield call.func.value
    if (method.startswith("_foreach_") and method.endswith("_")) or method == "vector_to_parameters":
        yield from call.args


def _targets(node: ast.Assign | ast.AugAssign) -> Iterator[ast.expr]:
    for one in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield from one.elts if isinstance(one, ast.Tuple) else (one,)


def _writes(node: ast.AST) -> bool:
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return any(isinstance(one, ast.Attribute) and one.attr == "data" for one in _targets(node))
    return isinstance(node, ast.Call) and next(_of_call(node), None) is not None


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.startswith("_") and method not in ("requires_grad_", "detach_")


def _writers(tree: ast.AST) -> Iterator[tuple[str, tuple[tuple[int, str], ...]]]:
    """Functions of the user's that write into their arguments."""
    for node in syntax.walk(tree):
        if isinstance(node, _Function) and node.name.strip("_") not in _BUILDERS:
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]
            names += [one.arg for one in node.args.kwonlyargs]
            written = list(_written(node))
            found = tuple((i, one) for i, one in enumerate(names) if any(_mentions(part, one) for part in written))
            if found:
                yield node.name, found


def _handed(tree: ast.AST, writers: Writers) -> Iterator[ast.AST]:
    """What is handed to such a function: `m.slow` in `follow(m.online, m.slow)`."""
    for call in syntax.walk(tree) if writers else ():
        if isinstance(call, ast.Call):
            for position, name in writers.get(dotted(call.func).rpartition(".")[2], ()):
                yield from call.args[position : position + 1]
                yield from (one.value for one in call.keywords if one.arg == name)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name) or (isinstance(one, ast.Name) and dotted(one) == name)
        for one in syntax.walk(node)
    )
