"""An operation kept away from the numbers that it cannot take, in the user's own names."""

from __future__ import annotations

import ast
from math import prod
from typing import TYPE_CHECKING

from torch_inspector.facts import divisors, syntax
from torch_inspector.facts.by_name import probabilities_kept, softmax_kept
from torch_inspector.facts.floored import floored, is_constant
from torch_inspector.facts.half_floors import in_half
from torch_inspector.facts.replaced import instead
from torch_inspector.facts.sole import Written, called, operand, written
from torch_inspector.facts.stacked import is_stacked_factor

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import OperationFact

_CLAMPED = "{}.clamp_min(1e-12).{}()"
_INSIDE = "{}.clamp(-1 + 1e-6, 1 - 1e-6).{}()"
# What zeros are kept from; negative numbers are still negative when a little is added.
_ADDED = "({} + 1e-12).{}()"
_KEPT = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), _CLAMPED),
    "exp": "{}.clamp_max(10).{}()",
    "log1p": "{}.clamp_min(-0.999).{}()",
    **dict.fromkeys(("acos", "asin", "atanh"), _INSIDE),
}
# What keeps a number away from an edge.
_FLOORS = frozenset(["clamp", "clamp_min", "clamp_", "clip", "maximum", "where"])
# Methods that give plain numbers.
_SIZES = frozenset(["size", "dim", "numel", "item", "ndimension"])
# Methods that give fewer numbers than they are given.
_PICKS = frozenset(["gather", "sum", "mean", "max", "min", "amax", "amin", "prod", "norm", "select", "diagonal"])
# What gives an operand, and how it is written.
_SIGNS: dict[type[ast.operator], str] = {
    ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**"
}  # fmt: skip


def _written_as(run: Run, operation: OperationFact) -> Written | None:
    """The only call of an operation in the texts that can be meant: of several the one that is not made otherwise."""
    found = written(run, lambda node: _is_written(node, operation.name))
    signs = [_sign_of(one) for one in found]
    alike = [one for one, sign in zip(found, signs, strict=True) if sign == operation.given_by != ""]
    able = [one for one, sign in zip(found, signs, strict=True) if not operation.given_by or not sign]
    # A name or a call among them may stand for a result that is made alike.
    left = [*alike, *able]
    return left[0] if len(left) == 1 else _of_count(run, operation, left)


def _of_count(run: Run, operation: OperationFact, found: list[Written]) -> Written | None:
    """The one that is of a variable with as many numbers, where all others pick or add up numbers first."""
    counts = {one.path: prod(one.shape) for one in run.after.tensors}
    texts = {one: operand(one.text) for one in found}
    fits = [one for one, text in texts.items() if operation.count > 1 and counts.get(text) == operation.count]
    others = [ast.parse(text or "x", mode="eval") for one, text in texts.items() if one not in fits]
    fewer = all(any(_is_fewer(part) for part in syntax.walk(one)) for one in others)
    return fits[0] if len(fits) == 1 and fewer else None


def _is_fewer(node: ast.AST) -> bool:
    picks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PICKS
    return picks or isinstance(node, ast.Subscript)


def unkept(run: Run, name: str) -> list[Written]:
    """Operations of such a name in the texts, of what nothing is added to and no bound is set for."""
    found = written(run, lambda node: _is_written(node, name))
    return [one for one in found if not _is_kept(ast.parse(one.text, mode="eval").body)]


def _is_written(node: ast.AST, name: str) -> bool:
    """True for such an operation; what is made of gradients that are there already is no part of a loss."""
    found = _is_power(node) if name == "**" else called(node) == name
    return found and not any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in syntax.walk(node))


def _is_power(node: ast.AST) -> bool:
    """True for `d.sum(1) ** 0.5` and `d.pow(0.5)`; a plain name under `** 0.5` is as often a number of channels."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        methods = (one.func for one in syntax.walk(node.left) if isinstance(one, ast.Call))
        of_tensors = any(isinstance(one, ast.Attribute) and one.attr not in _SIZES for one in methods)
        return of_tensors and _is_low(node.right)
    return isinstance(node, ast.Call) and called(node) == "pow" and bool(node.args) and _is_low(node.args[-1])


def _is_low(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, float) and 0 < value < 1


def _is_kept(node: ast.expr) -> bool:
    parts = list(syntax.walk(node))
    added = (one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add))
    return any(called(one) in _FLOORS for one in parts) or any(True for _ in added)


def _power_of_more(text: str, *, half: bool) -> str:
    """`(d.sum(1) + 1e-12) ** 0.5` for `d.sum(1) ** 0.5`."""
    more = in_half("1e-12", half=half)
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp):
        base = ast.unparse(node.left)
        plain = isinstance(node.left, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        return f"({base if plain else f'({base})'} + {more}) ** {ast.unparse(node.right)}"
    return f"({operand(text)} + {more}).pow({ast.unparse(node.args[-1])})"  # type: ignore[attr-defined]


def _sign_of(call: Written) -> str:
    """`*` of `exp(0.5 * x)`; empty where the operand is written in another way."""
    text = operand(call.text)
    given = ast.parse(text, mode="eval").body if text else None
    return _SIGNS.get(type(given.op), "") if isinstance(given, ast.BinOp) else ""


def kept_from_edge(run: Run, operation: OperationFact | None) -> tuple[Place, str] | None:
    """The line of an operation and what it should be there, if the texts have one such operation only."""
    if operation is not None and operation.name == "/" and operation.cause.startswith("zero"):
        return _of_division(run, operation)
    if operation is None or operation.name not in (*_KEPT, "**"):
        return None
    by_name = probabilities_kept(run) if operation.name == "log" else None
    by_name = by_name or (softmax_kept(run) if operation.name in ("exp", "log") else None)
    if by_name is not None:
        return by_name[0], in_half(by_name[1], half=operation.half)
    one = _written_as(run, operation)
    given = operand(one.text) if one is not None else ""
    if one is not None and operation.name == "**" and operation.cause == "zeros":
        return one.place, instead(run, one.place, one.text, _power_of_more(one.text, half=operation.half))
    return (one.place, _kept(run, operation, one, given)) if one is not None and given else None


def _kept(run: Run, operation: OperationFact, one: Written, given: str) -> str:
    """The operation of what is kept away from its edge."""
    if operation.name == "exp" and is_stacked_factor(run, one):
        return _bounded(given, one.text)
    form = _ADDED if operation.name.endswith("sqrt") and operation.cause == "zeros" else _KEPT[operation.name]
    form = in_half(form, half=operation.half)
    return instead(run, one.place, one.text, form.format(given, operation.name))


def _bounded(given: str, text: str) -> str:
    """What bounds a factor of each of many layers; a variable may be used for more than that, as for a determinant."""
    if given.isidentifier():
        return f"{given} = torch.tanh({given})  # before {text}: each layer multiplies by it"
    return f"{given}.tanh().exp()  # in place of {text}: each layer multiplies by it"


def _of_division(run: Run, operation: OperationFact) -> tuple[Place, str] | None:
    """The only division of the texts, by what may be zero."""
    found = written(run, _is_division)
    node = ast.parse(found[0].text, mode="eval").body if len(found) == 1 else None
    if not isinstance(node, ast.BinOp):
        return None
    by, place = ast.unparse(node.right), found[0].place
    if operation.signed:
        # A lower bound would change the numbers below zero, too.
        return place, f"# divide only where `{by}` is not 0; it has both signs, so that clamp_min would change others"
    least = (
        "1" if operation.whole or divisors.is_count(run, place, node.right) else in_half("1e-8", half=operation.half)
    )
    certain = least == "1" or operation.bad_count < operation.count or divisors.is_never_negative(node.right)
    remark = f"`{by}` may be 0{'' if certain else '; for what is never negative'}"
    bounded = floored(run, node.right, least, operation)
    new = ast.unparse(ast.parse(f"({ast.unparse(node.left)}) / {bounded}")) if bounded else ""
    return (place, instead(run, place, found[0].text, new, remark)) if new else None


def sole_divisor(run: Run, path: str = "") -> str:
    """The first division of the texts as it should be, if all are by the same; empty if they are not.

    Args:
        run: The run, with those before it.
        path: A variable that the line of the division is to give its value; empty for any.
    """
    found = written(run, _is_division)
    nodes = [ast.parse(one.text, mode="eval").body for one in found]
    by = {ast.unparse(node.right) for node in nodes if isinstance(node, ast.BinOp)}
    first = nodes[0] if len(by) == 1 else None
    if not isinstance(first, ast.BinOp) or _is_kept(first.right) or is_constant(run, first.right):
        return ""
    if path and path not in _targets(run, found[0]):
        return ""
    least = "1" if divisors.is_count(run, found[0].place, first.right) else "1e-8"
    bounded = floored(run, first.right, least)
    if not bounded:
        return ""
    text = ast.unparse(ast.parse(f"({ast.unparse(first.left)}) / {bounded}", mode="eval"))
    return instead(run, found[0].place, found[0].text, text, f"if `{by.pop()}` can be 0, and is never negative")


def _targets(run: Run, one: Written) -> set[str]:
    """What the line of an expression gives a value that has it."""
    tree = syntax.parse(run.source_of(one.place.cell))
    nodes = [node for node in syntax.walk(tree) if isinstance(node, ast.Assign)] if tree is not None else []
    own = (node for node in nodes if node.lineno == one.place.line and one.text in ast.unparse(node.value))
    return {ast.unparse(target) for node in own for target in node.targets}


def _is_division(node: ast.AST) -> bool:
    """True for a division by what is no plain number."""
    by = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
    return by is not None and any(isinstance(one, ast.Name) for one in ast.walk(by))
