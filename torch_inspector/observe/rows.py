"""Row numbers, as the text makes them: an index by a tensor of them copies, and one by a single number does not."""

from __future__ import annotations

import ast

from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import is_array
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import calls_in, stores_in

# Calls that make a tensor of row numbers, whatever they are given.
_MADE = frozenset(["randperm", "nonzero", "arange", "where"])
# Methods of which the result has an axis, for a mask and for a single number too.
_METHODS = frozenset(["unique", "nonzero", "argsort"])
_SAME = frozenset(["long", "to", "cpu", "cuda", "clone", "detach", "flatten"])
# Calls of which a part by its number is a tensor with an axis: `torch.where(x > 0)[0]`, and those with `indices`.
_PARTED, _SORTED = frozenset(["nonzero", "where"]), frozenset(["sort", "topk"])
# Functions of torch that make a mask, whatever they are given.
_MASKS = frozenset(
    ["isin", "eq", "ne", "gt", "ge", "lt", "le", "isclose", "isnan", "isinf", "isfinite", "logical_and", "logical_or",
     "logical_not", "logical_xor"]
)  # fmt: skip
# Calls that make a tensor and no list, by their names.
_TENSORS = frozenset(
    ["clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "randn", "rand", "empty"]
)
_JOINED = frozenset(["torch.stack", "torch.cat", "torch.concat"])
# Methods that tensors have, and lists and dictionaries do not.
_OF_TENSORS = frozenset(["clone", "detach", "unsqueeze", "masked_fill", "masked_fill_", "requires_grad_"])
_LISTED = (ast.List, ast.ListComp, ast.Tuple)
_DEPTH = 6


def makes_rows(call: ast.Call) -> bool:
    """True for a call that makes a tensor of row numbers; one of a single number has no axis, and copies nothing."""
    name, first = dotted(call.func).split(".")[-1], call.args[0] if call.args else None
    if name == "randint":  # `random.randint(0, 3)` is a number
        sizes = [*call.args[2:], *(one.value for one in call.keywords if one.arg == "size")]
        sizes += [one for one in call.args[1:2] if isinstance(one, _LISTED)]
        return any(not isinstance(one, ast.Tuple) or bool(one.elts) for one in sizes)
    if name in {"tensor", "LongTensor"}:
        return isinstance(first, _LISTED)
    return name in _MADE


def makes_mask(call: ast.Call) -> bool:
    """True for a call of torch that makes a mask: `torch.isin(ids, wanted)`."""
    space, _, name = dotted(call.func).partition(".")
    return space == "torch" and name in _MASKS


def is_given_rows(scope: Scope, index: ast.expr, depth: int = 0) -> bool:
    """True for what can only be row numbers: `rows = torch.tensor([…])`, `order = torch.randperm(n)[:5]`."""
    if depth > _DEPTH:
        return False
    if isinstance(index, ast.Name):
        return _is_handed_rows(scope, index, depth) or _is_named_rows(scope, index.id, depth)
    if isinstance(index, ast.Subscript):
        parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
        keeps = any(isinstance(one, (ast.Slice, ast.Compare)) for one in parts)
        return _is_part(index) or (keeps and is_given_rows(scope, index.value, depth + 1))
    if not isinstance(index, ast.Call):
        return isinstance(index, ast.Attribute) and index.attr == "indices" and _called(index.value) in _SORTED
    method = index.func.attr if isinstance(index.func, ast.Attribute) else ""
    if method in _METHODS or makes_rows(index) or _is_of_list(scope, index) or _is_squeezed(index):
        return True
    return method in _SAME and is_given_rows(scope, index.func.value, depth + 1)  # type: ignore[attr-defined]


def _is_named_rows(scope: Scope, name: str, depth: int) -> bool:
    """True for a variable of a function that is given rows, and parts of itself: `hit = hit[hit > i]`."""
    given = _own_values(scope, name)
    first = [one for one in given if not (isinstance(one, ast.Subscript) and dotted(one.value) == name)]
    later = [one.slice for one in given if isinstance(one, ast.Subscript) and one not in first]
    keeps = all(isinstance(one, (ast.Slice, ast.Compare)) for one in later)
    return bool(first) and keeps and all(is_given_rows(scope, one, depth + 1) for one in first)


def _is_handed_rows(scope: Scope, name: ast.Name, depth: int) -> bool:
    """True for a parameter that the call gave rows, and that the function leaves as it is."""
    handed = scope.arguments.get(name.id)
    if handed is None or scope.caller is None or name.id in stores_in(scope.node):
        return False
    return not isinstance(handed, ast.Name) and is_given_rows(scope.caller, handed, depth + 1)


def _is_part(index: ast.Subscript) -> bool:
    """True for `torch.where(x > 0)[0]`, `x.nonzero(as_tuple=True)[0]` and `x.topk(3)[1]`."""
    name, part = _called(index.value), index.slice.value if isinstance(index.slice, ast.Constant) else None
    if type(part) is not int:
        return False
    alone = name != "where" or (isinstance(index.value, ast.Call) and len(index.value.args) == 1)
    return (name in _PARTED and alone) or (name in _SORTED and part == 1)


def _is_squeezed(call: ast.Call) -> bool:
    """True for `x.nonzero().squeeze(1)`: of two axes one is left."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "squeeze" else None
    return bool(call.args) and _called(owner) in {"nonzero", "argwhere"}


def _called(written: ast.expr | None) -> str:
    """The last part of the name of what is called."""
    func = written.func if isinstance(written, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else ""


def is_given_tensor(scope: Scope, owner: ast.expr) -> bool:
    """True for a variable of a function that it or the call gave a tensor: `x = x.clone()`, `f(torch.ones(3))`."""
    given = _own_values(scope, owner.id, parameters=True) if isinstance(owner, ast.Name) else []
    handed = scope.arguments.get(owner.id) if isinstance(owner, ast.Name) and scope.function else None
    if handed is not None and owner.id not in stores_in(scope.node):  # type: ignore[attr-defined]
        given = [handed]
    calls = [one for one in given if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    made = (one.func.attr in _TENSORS or dotted(one.func) in _JOINED for one in calls)  # type: ignore[attr-defined]
    return bool(given) and len(calls) == len(given) and all(made)


def has_tensor_method(scope: Scope, owner: ast.expr) -> bool:
    """True for a variable of a function that has one value there, on which a method of tensors is called."""
    name = owner.id if isinstance(owner, ast.Name) else ""
    once = len(stores_in(scope.node).get(name, ())) == (name not in scope.arguments)
    if not scope.function or not once:
        return False
    used = (one for one in calls_in(scope.node) if isinstance(one.func, ast.Attribute))
    return any(one.func.attr in _OF_TENSORS and dotted(one.func.value) == name for one in used)  # type: ignore[attr-defined]


def _own_values(scope: Scope, name: str, *, parameters: bool = False) -> list[ast.expr]:
    """All that a function gives one of its variables; nothing if that is not all."""
    if not scope.function or (name in scope.arguments and not parameters):
        return []
    given = [value for value, where in scope.given(name) if where is scope]
    return given if len(given) == len(stores_in(scope.node).get(name, ())) else []


def _is_of_list(scope: Scope, call: ast.Call) -> bool:
    """True for `torch.tensor(rows)` of a list or an array that is there."""
    if (
        dotted(call.func).split(".")[-1] not in {"tensor", "LongTensor", "from_numpy", "as_tensor"}
        or len(call.args) != 1
    ):
        return False
    value = scope.names.value(call.args[0])
    return type(value) is list or (is_array(value) and value.ndim > 0)
