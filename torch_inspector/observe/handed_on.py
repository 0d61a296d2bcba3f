"""Where the text hands a result on: names, keys and places of what a statement gives it to."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

SEVERAL = (ast.Dict, ast.List, ast.Tuple)
_EACH = (ast.ListComp, ast.GeneratorExp, ast.SetComp)
# Methods and functions that hand the same numbers on.
_SAME = frozenset(
    ["copy", "clone", "reshape", "view", "ravel", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "T",
     "contiguous", "from_numpy", "tensor", "as_tensor", "asarray", "array", "append", "stack", "cpu", "cuda", "numpy",
     "detach", "flip", "roll", "expand", "repeat", "int", "long", "cat", "concat", "concatenate", "maximum", "values",
     "items", "list", "tuple", "enumerate"]
)  # fmt: skip
CASTS = frozenset(["to", "type", "astype", "type_as"])


class Taker(NamedTuple):
    """A name that is given a result, and under which key or at which place of it, if it is a container."""

    name: str
    key: object = None


def hands_on(parent: ast.expr, use: ast.AST) -> bool:
    """True if an expression gives what is in it, also as one of several or from another type of whole number."""
    if isinstance(parent, SEVERAL):
        return True
    if isinstance(parent, _EACH):
        return parent.elt is use
    if isinstance(parent, ast.Attribute):
        return parent.attr in _SAME | CASTS
    if isinstance(parent, ast.Call) and use is parent.func:
        return isinstance(use, ast.Attribute) and use.attr in _SAME | CASTS
    if isinstance(parent, ast.Call):
        return dotted(parent.func).rpartition(".")[2] in _SAME
    return isinstance(parent, ast.Subscript) and parent.value is use


def adds_up(parent: ast.AST, use: ast.AST, *, is_sum: bool) -> bool:
    """True for `.sum()` and `torch.sum(…)`, which give one number, and for `.item()` of that."""
    names = ("sum", "item") if is_sum else ("sum",)
    if isinstance(parent, ast.Attribute):
        return parent.attr in names
    method = isinstance(use, ast.Attribute) and use.attr in names
    return isinstance(parent, ast.Call) and (use is parent.func if method else dotted(parent.func) == "torch.sum")


def key_in(parent: ast.Dict | ast.List | ast.Tuple, use: ast.AST) -> object:
    """The key or the place of a value in a container written out."""
    if not isinstance(parent, ast.Dict):
        return parent.elts.index(use) if isinstance(use, ast.expr) else None
    key = parent.keys[parent.values.index(use)] if use in parent.values else None
    return key.value if isinstance(key, ast.Constant) else None


def is_another(parent: ast.AST | None, key: object) -> bool:
    """True if a container is asked for another of its values, or for one that is counted from its end."""
    asked = parent.slice if isinstance(parent, ast.Subscript) else None
    if key is None or not isinstance(asked, (ast.Constant, ast.UnaryOp, ast.Slice)):
        return False
    return not isinstance(asked, ast.Constant) or asked.value != key


def takers(parent: ast.AST | None, statement: ast.stmt, value: ast.AST, node: ast.AST, key: object) -> list[Taker]:
    """What a statement calls the value; of `a += b` the name itself, of a loop through it what it calls each part."""
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is value:
        return [Taker(dotted(one)) for one in _each(parent.target, value)]
    if isinstance(statement, ast.AugAssign):
        return [Taker(dotted(statement.target))]
    if isinstance(statement, ast.Expr):
        return [Taker(_list_of(value), None)]
    given = isinstance(statement, ast.Assign) and (statement.value is value or statement is value)
    targets = statement.targets if given and isinstance(statement, ast.Assign) else []
    return [own for one in targets for own in _given(one, value, node, key)]


def loads(tree: ast.AST, name: str, line: int) -> list[ast.expr]:
    """Where a name, or an attribute written out, is read from a line on."""
    named = (one for one in syntax.walk(tree) if isinstance(one, (ast.Name, ast.Attribute)) and name)
    return [one for one in named if isinstance(one.ctx, ast.Load) and one.lineno >= line and dotted(one) == name]


def _list_of(value: ast.AST) -> str:
    """`rows` of `rows.append(…)`."""
    func = value.func if isinstance(value, ast.Call) else None
    return dotted(func.value) if isinstance(func, ast.Attribute) and func.attr == "append" else ""


def _given(target: ast.expr, value: ast.AST, node: ast.AST, key: object) -> list[Taker]:
    """The target of one of several values: `c` of `c, d = a - b, b`; `out` under "d" of `out["d"] = a - b`."""
    if isinstance(target, ast.Subscript):
        place = target.slice
        constant = isinstance(place, ast.Constant) and key is None
        return [Taker(dotted(target.value), place.value)] if constant and isinstance(place, ast.Constant) else []
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [Taker(dotted(target), key)]
    if isinstance(value, ast.Call):
        # A function that gives back several, of which only the place is known.
        return [Taker(dotted(target.elts[key]))] if type(key) is int and key < len(target.elts) else []
    if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
        return [Taker(dotted(one)) for one in target.elts]
    pairs = zip(target.elts, value.elts, strict=True)
    return [Taker(dotted(one)) for one, own in pairs if any(part is node for part in syntax.walk(own))]


def _each(target: ast.expr, value: ast.AST) -> list[ast.expr]:
    """What a loop calls a part: the last name of `for i, row in enumerate(rows)`."""
    parts = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return parts[-1:] if isinstance(value, ast.Call) else parts
