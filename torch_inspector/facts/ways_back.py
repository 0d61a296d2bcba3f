"""Where a gradient goes back through a text: from an expression, or from one part of what it gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax

Part = str | int
"""A key of a dictionary, a field, or a place in a tuple."""
WHOLE = ""
"""Stands for all of it."""
SOME = "?"
"""Stands for a part that is chosen by a key that the text does not tell."""
Wanted = tuple[ast.expr, Part]
"""An expression, with the part of its value that a gradient comes from."""

# What gives values without their history, or numbers that have none.
_SIZES = ["shape", "size", "dim", "ndim", "numel", "device", "dtype", "requires_grad"]
_NUMBERS = ["item", "tolist", "numpy", "long", "int", "bool", "argmax", "argmin", "argsort"]
_CUTS = frozenset([*_SIZES, *_NUMBERS, "detach", "detach_", "tensor", "eq", "ne", "gt", "lt", "ge", "le"])
_PLAIN = frozenset(["float", "int", "bool", "len", "str", "repr", "type", "id", "print"])
_FIELDS = frozenset([*_SIZES, "data", "grad"])


def ways_back(node: ast.expr, part: Part = WHOLE) -> Iterator[Wanted]:
    """Every expression that a gradient goes back through from this one, `.detach()` and `.item()` end it."""
    waiting = [(node, part)]
    for one, own in waiting:  # grows while it is read
        yield one, own
        waiting += _inside(one, own)


def stored_in(one: ast.Assign | ast.AugAssign | ast.AnnAssign, wanted: set[tuple[str, Part]]) -> Iterator[Wanted]:
    """What an assignment gives to names of which these parts are wanted."""
    targets = one.targets if isinstance(one, ast.Assign) else [one.target]
    for target in targets:
        yield from _given(target, one.value, wanted) if one.value is not None else ()


def _given(target: ast.expr, value: ast.expr, wanted: set[tuple[str, Part]]) -> Iterator[Wanted]:
    if isinstance(target, ast.Name):
        yield from ((value, part) for name, part in wanted if name == target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        stars = [place for place, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
        for place, each in enumerate(target.elts[: stars[0]] if stars else target.elts):
            own = _element(value, place)
            if own is not None:
                yield from _given(each, own, wanted)
            elif any(True for _ in _given(each, value, wanted)):
                yield value, place
    elif _is_exact(target, wanted) or _is_filled(target, wanted):
        yield value, WHOLE


def _is_exact(target: ast.expr, wanted: set[tuple[str, Part]]) -> bool:
    owner = target.value if isinstance(target, (ast.Subscript, ast.Attribute)) else None
    return isinstance(owner, ast.Name) and (owner.id, _key(target)) in wanted


def _is_filled(target: ast.expr, wanted: set[tuple[str, Part]]) -> bool:
    """True for an element of what is wanted whole, or in parts where nobody knows which this is: `terms[name]`."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return False
    parts = {part for name, part in wanted if name == target.value.id}
    return WHOLE in parts or (bool(parts) and _key(target) is None)


def taken_out(one: ast.AST) -> str:
    """The name of what loses one of its parts: `terms` of `terms.pop("ce")` and `del terms["ce"]`; else empty."""
    owner: ast.expr | None = None
    if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("pop", "popitem"):
        owner = one.func.value
    elif isinstance(one, ast.Delete) and isinstance(one.targets[0], ast.Subscript):
        owner = one.targets[0].value
    return owner.id if isinstance(owner, ast.Name) else ""


def _key(node: ast.expr) -> Part | None:
    """The part that an expression takes out of another: `loss` of `out.loss`, 0 of `out[0]`; None for any other."""
    if isinstance(node, ast.Attribute):
        return node.attr
    index = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        return -index.operand.value if isinstance(index.operand.value, int) else None
    key = index.value if isinstance(index, ast.Constant) else None
    return key if isinstance(key, (str, int)) else None


def _element(value: ast.expr, place: int) -> ast.expr | None:
    """One of what a tuple is written of; None where it cannot be told."""
    elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    starred = any(isinstance(one, ast.Starred) for one in elements)
    return elements[place] if not starred and -len(elements) <= place < len(elements) else None


def _inside(node: ast.expr, part: Part) -> list[Wanted]:
    """The parts of an expression from which a gradient goes on."""
    if _is_cut(node):
        return []
    if part != WHOLE and (chosen := _chosen(node, part)) is not None:
        return chosen
    if own := _taken(node):
        return own
    if isinstance(node, ast.IfExp):
        return [(node.body, part), (node.orelse, part)]
    if isinstance(node, ast.Call):
        owner = [(node.func.value, WHOLE)] if isinstance(node.func, ast.Attribute) else [(node.func, WHOLE)]
        return [*owner, *((one, WHOLE) for one in node.args), *((one.value, WHOLE) for one in node.keywords)]
    return [(one, WHOLE) for one in _expressions(node)]


def _taken(node: ast.expr) -> list[Wanted]:
    """What an expression takes a part of, by a key or a method like `terms.pop("ce")`; none if it does not."""
    key = _key(node)
    if isinstance(node, (ast.Attribute, ast.Subscript)) and key is not None:
        return [(node.value, key)]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
        return [(node.value, SOME), (node.slice, WHOLE)]
    method = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(method, ast.Attribute) and method.attr in ("pop", "get"):
        own = _first(node)
        return [(method.value, own), *((one, WHOLE) for one in node.args[1:])] if own else []
    return []


def _first(call: ast.Call) -> str:
    """The key that a call is given."""
    key = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
    return key if isinstance(key, str) else ""


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions right below a node, also those of the loops of a comprehension."""
    for one in syntax.children(node):
        if isinstance(one, ast.expr):
            yield one
        elif isinstance(one, ast.comprehension) and not one.ifs:  # what a condition leaves out nobody knows
            yield one.iter


def _chosen(node: ast.expr, part: Part) -> list[Wanted] | None:
    """Where one part of a value comes from: an element of a tuple or dictionary written out, a field by name."""
    if part == SOME and isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        values = node.values if isinstance(node, ast.Dict) else node.elts
        return [(one, WHOLE) for one in values] if len(values) == 1 else []
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(part, int):
        own = _element(node, part)
        return [(own, WHOLE)] if own is not None else None
    if isinstance(node, ast.Dict):
        return list(_entry(node, part))
    if same := _same_keys(node):
        return [(one, part) for one in same]
    if isinstance(node, ast.Call) and part != SOME:
        named: list[Wanted] = [(one.value, WHOLE) for one in node.keywords if one.arg == part]
        made = ast.unparse(node.func).rpartition(".")[2][:1].isupper()
        placed: list[Wanted] = (
            [(one, WHOLE) for one in node.args[part : part + 1]] if isinstance(part, int) and part >= 0 else []
        )
        return named or (placed if made else None)
    return None


def _same_keys(node: ast.expr) -> list[ast.expr]:
    """The dictionaries that a copy has its keys from; none for anything else, and where a key is given by name."""
    if isinstance(node, ast.DictComp):
        over = node.generators[0].iter
        items = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items"
        return [over.func.value] if items else []  # type: ignore[attr-defined]
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
        return [node.func.value]
    made = ast.unparse(node.func).rpartition(".")[2] in ("dict", "OrderedDict")
    return node.args if made and not node.keywords else []


def _entry(node: ast.Dict, part: Part) -> Iterator[Wanted]:
    """The value of a key, the last that is written; or what may be in another dictionary that is put in."""
    for key, value in zip(reversed(node.keys), reversed(node.values), strict=True):
        if key is None:
            yield value, part
        elif isinstance(key, ast.Constant) and key.value == part:
            yield value, WHOLE
            return


def _is_cut(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return name in _PLAIN or (isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS)
    return isinstance(node, (ast.Compare, ast.JoinedStr)) or (isinstance(node, ast.Attribute) and node.attr in _FIELDS)
