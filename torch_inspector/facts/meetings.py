"""The expression in which two tensors are stretched against each other: `h[:, None] + h[None]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.named_sides import named_sides
from torch_inspector.facts.sole import called, sole
from torch_inspector.facts.sole import written as written_all

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_SIGNS: dict[str, type[ast.operator]] = {"Add": ast.Add, "Sub": ast.Sub, "Mul": ast.Mult, "Div": ast.Div}

# Multiplies what it is given, stretched against each other, and adds up.
_COSINES = "cosine_similarity"


class Meeting(NamedTuple):
    """Both sides, as they are written and before they were stretched."""

    place: Place
    inside: bool
    """True if it stands in a function or class."""
    left: str
    first: str
    """Empty where the text does not tell."""
    second: str
    result: str = ""
    """The variable of the statement around it."""
    function: str = ""
    is_result: bool = False
    """True if that variable is given what both sides make, and nothing that is made of it."""


def meeting(run: Run, node: str) -> Meeting | None:
    """The only such expression of the texts; None if there are several or none, or it is of another sign.

    Args:
        run: The run whose cell and earlier functions are searched.
        node: Name of the autograd node: `AddBackward0`.
    """
    sign = _sign_of(node)
    if sign is not None and not written_all(run, _meets):
        return _by_name(run, sign)
    written = sole(run, _meets) if sign is not None else None
    both = syntax.expression(written.text) if written is not None else None
    sides = _sides(both, sign) if both is not None and sign is not None else []
    if written is None or not sides:
        return None
    first, second = (_whole(side) for side in sides)
    result, function = _around(run, written.place)
    lines = run.source_of(written.place.cell).splitlines()
    line = lines[written.place.line - 1].partition("#")[0] if written.place.line else ""
    whole = f"{result} = {written.text}".replace(" ", "") == line.replace(" ", "")
    return Meeting(written.place, written.inside, ast.unparse(sides[0]), first, second, result, function, whole)


def _by_name(run: Run, sign: type[ast.operator]) -> Meeting | None:
    """The same where both sides were stretched in lines of their own."""
    both = named_sides(run, sign)
    if both is None:
        return None
    sides, names = [both.left, both.right], [both.node.left, both.node.right]
    if not _is_stretched(both.left):  # the rows of the other one come first
        sides, names = sides[::-1], names[::-1]
    if not (_is_stretched(sides[0]) and _is_inserted(sides[1])):
        return None
    result, function = _around(run, both.place)
    left, right = map(ast.unparse, names)
    first, second = map(_whole, sides)
    if {left, right} & {first, second}:  # the name has the spread tensor by then
        first = second = ""
    return Meeting(both.place, both.inside, left, first, second, result, function)


def meeting_in(run: Run, place: Place, text: str, node: str) -> Meeting | None:
    """The same in an expression that is known to be it, or in a line that calls no function of the user.

    Args:
        run: The run whose texts are read.
        place: The line.
        text: The expression, `((a[:, None] - b[None]) ** 2).sum(-1)`; empty where it is not known.
        node: `SubBackward0`, or `Sub` with or without dots before it.
    """
    sign, whole = _sign_of(node.removeprefix("…")), syntax.expression(text)
    parts = list(syntax.walk(whole)) if whole is not None else _parts_of(run, place)
    found = [sides for one in parts if sign is not None and _is_pair(one) and (sides := _sides(one, sign))]
    if len(found) != 1:
        return None
    first, second = map(_whole, found[0])
    return Meeting(place, inside=False, left=ast.unparse(found[0][0]), first=first, second=second)


def _parts_of(run: Run, place: Place) -> list[ast.AST]:
    """All parts of a line; none if it calls what may make tables itself."""
    tree = syntax.parse(run.source_of(place.cell))
    parts = [one for one in syntax.walk(tree) if getattr(one, "lineno", 0) == place.line] if tree is not None else []
    own = any(isinstance(one, ast.Call) and isinstance(one.func, ast.Name) for one in parts)
    return [] if own else parts


def _sign_of(node: str) -> type[ast.operator] | None:
    return next((one for name, one in _SIGNS.items() if node.startswith(name)), None)


def _is_pair(node: ast.AST) -> bool:
    return isinstance(node, (ast.BinOp, ast.Call)) and _meets(node)


def _sides(node: ast.AST, sign: type[ast.operator]) -> list[ast.expr]:
    """The two operands, of that sign or of `cosine_similarity`, a product; none if no axis is put in for the first."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if isinstance(node.op, sign) and _is_stretched(node.left) else []
    sides = node.args[:2] if isinstance(node, ast.Call) and sign is ast.Mult else []
    return sides if len(sides) > 1 and any(map(_is_stretched, sides)) else []


def _around(run: Run, place: Place) -> tuple[str, str]:
    """The variable that the statement in a line gives a value, and the innermost function around it."""
    tree, line = syntax.parse(run.source_of(place.cell)), place.line or 0
    made = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign) and len(one.targets) == 1] if tree else []
    targets = [one.targets[0] for one in made if one.lineno <= line <= (one.end_lineno or one.lineno)]
    results = [one.id for one in targets if isinstance(one, ast.Name)]
    return (results[-1] if results else ""), (syntax.name_around(tree, line) if tree else "")


def _meets(node: ast.AST) -> bool:
    cosines = isinstance(node, ast.Call) and called(node) == _COSINES
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args[:2] if cosines else []  # type: ignore[attr-defined]
    return any(map(_is_inserted, sides))


def _is_inserted(node: ast.expr) -> bool:
    """True for `x[:, None]`, `x[None]` and `x.unsqueeze(0)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze"
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    return any(map(_is_new, parts)) or (isinstance(node, ast.Subscript) and _is_new(node.slice))


def _is_stretched(node: ast.expr) -> bool:
    """True for `x[:, None]` and `x.unsqueeze(1)`, whose first axis is that of the table."""
    if isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        at = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else 0
        return method == "unsqueeze" and at != 0
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    return any(map(_is_new, parts)) and not _is_new(parts[0])


def _is_new(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _whole(side: ast.expr) -> str:
    """`h` of `h[:, None]`, `h[None]`, `h.unsqueeze(0)` and `h`."""
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "unsqueeze":
        side = side.func.value
    elif isinstance(side, ast.Subscript):
        parts = side.slice.elts if isinstance(side.slice, ast.Tuple) else [side.slice]
        plain = all(_is_new(one) or ast.unparse(one) in (":", "...") for one in parts)
        return ast.unparse(side.value) if plain else ""
    return ast.unparse(side) if isinstance(side, (ast.Name, ast.Attribute)) else ""
