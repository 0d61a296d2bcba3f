"""Parameters that the text moves by hand, as a running average does: they are to get no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Words of programs in which an average or a clustering moves them.
_WORDS = re.compile(
    r"\bema\b|ema_|_ema\b|EMA|moving.?average|momentum.?(update|encoder)|polyak|k_?means|lloyd|swa_|\.grad\s*=|_hook\(.*grad",
    re.IGNORECASE,
)
_BUILDERS = ("__init__", "init", "reset")


def moves_by_hand(trees: Iterable[ast.Module], code: Iterable[str], name: str) -> bool:
    """True if a cell writes into what has this last name, elsewhere than where it is built."""
    if any(_WORDS.search(text) for text in code):
        return True
    return any(_mentions(target, name) for tree in trees for target in _written(tree))


def _written(tree: ast.AST) -> Iterator[ast.AST]:
    """What statements write into: the loop that gives a name its values stands for that name."""
    stack = list(syntax.children(tree))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_").startswith((*_BUILDERS, "__init__")):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_in_place(node.func.attr):
            yield node.func.value
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else (one,)))
            yield from (part for part in parts if isinstance(part, (ast.Attribute, ast.Subscript)))
        elif isinstance(node, ast.For) and any(_writes(inner) for inner in syntax.walk(node)):
            yield node.iter
        stack.extend(syntax.children(node))


def _writes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_in_place(node.func.attr)


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.startswith("_") and method not in ("requires_grad_", "detach_")


def _mentions(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name) or (isinstance(one, ast.Name) and dotted(one) == name)
        for one in syntax.walk(node)
    )
