"""Functions that make a model, put it into eval mode and hand it out, as their text says."""

from __future__ import annotations

import ast
import re

from torch_inspector.facts import syntax

# Who says one of these in the function, or explains the line, wants it so.
_MEANT = re.compile(r"frozen|freeze|fixed|statistic|stays?\b", re.IGNORECASE)
# To be trained, or to come in batches, is what any model is there for.
_MODES = re.compile(
    r"\beval|\btrain(ing)?[ -]mode|\.train\b|\btrain\(|switch|\bmodes?\b|drop-?out|batch[ _-]?norm|\bnorms?\b|\bbn\b"
    r"|running|frozen|freez|statistic|asleep|determin|reproduc|repeatab|\bnois[ey]|stochastic|randomness"
    r"|(small|tiny|single)[ -](mini-?)?batch|batch(es)? (is|are) (too |very |so )?(small|tiny)",
    re.IGNORECASE,
)
# Methods that give back the module itself.
_ITSELF = frozenset(["to", "cuda", "cpu", "float", "half", "double", "bfloat16", "eval", "requires_grad_"])


def speaks_of_mode(source: str, line: int) -> bool:
    """True if a comment, or a docstring of the function or class around a line, has a word on modes or what they do.

    Args:
        source: Text of the cell.
        line: The line that says `eval()` or `train(False)`.
    """
    tree, lines = syntax.parse(source), source.splitlines()
    function = syntax.function_around(tree, line) if tree is not None else None
    if function is None:
        return False
    first = min((function.lineno, *(one.lineno for one in function.decorator_list))) - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    comments = [text.partition("#")[2] for text in lines[first : function.end_lineno]]
    owners = [one for one in _classes(tree) if one.lineno <= line <= (one.end_lineno or one.lineno)]
    said = [ast.get_docstring(one) or "" for one in (function, *owners)]
    return _MODES.search("\n".join([*comments, *said])) is not None


def _classes(tree: ast.Module | None) -> list[ast.ClassDef]:
    return [one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, ast.ClassDef)]


def hands_out(source: str, line: int) -> bool:
    """True if a line of a cell puts a model into eval mode which the function around it has made and gives back.

    Args:
        source: Text of the cell.
        line: The line that says `eval()` or `train(False)`.
    """
    tree = syntax.parse(source)
    function = syntax.function_around(tree, line) if tree is not None else None
    if function is None or "#" in source.splitlines()[line - 1] or _MEANT.search(ast.unparse(function)):
        return False
    own = list(syntax.own_expressions(function))
    calls = (one for one in own if isinstance(one, ast.Call) and one.lineno == line)
    asleep = [one for one in calls if _puts_to_sleep(one)]
    returned = [one.value for one in own if isinstance(one, ast.Return) and one.value is not None]
    parts = [part for value in returned for part in _parts(value)]
    if any(inner is call for part in parts for inner in syntax.walk(part) for call in asleep):
        return True  # `return Net().eval()`
    names = {_root(call) for call in asleep} | {name for name, value in _given(own) if _holds(value, asleep)}
    made = {name for name, value in _given(own) if isinstance(value, ast.Call) and _root(value) != name}
    return bool(names & made & {_root(part) for part in parts} - {""})


def _puts_to_sleep(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    given = [one.value for one in node.args if isinstance(one, ast.Constant)]
    return (node.func.attr == "eval" and not node.args) or (node.func.attr == "train" and given == [False])


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a function gives back: one thing, or the parts of a tuple, a list or a dictionary."""
    if isinstance(value, ast.Dict):
        return value.values
    return value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]


def _root(node: ast.expr) -> str:
    """`net` for `net`, `net.eval()` and `net.to(device).train(False)`; empty for anything else."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _ITSELF and not _puts_to_sleep(node):
            return ""
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""


def _given(own: list[ast.AST]) -> list[tuple[str, ast.expr]]:
    """Variables that the function gives a value, each with that value."""
    assigned = (one for one in own if isinstance(one, ast.Assign))
    return [(target.id, one.value) for one in assigned for target in one.targets if isinstance(target, ast.Name)]


def _holds(value: ast.expr, calls: list[ast.Call]) -> bool:
    return any(inner is call for inner in syntax.walk(value) for call in calls)
