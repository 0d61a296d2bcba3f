"""Small numbers that float16 rounds to zero, where they were to keep a division or a logarithm from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.made_of import half_and_finite
from torch_inspector.facts.real_roots import Given, are_real, given_once
from torch_inspector.facts.small_numbers import Known, known_numbers, number_in
from torch_inspector.facts.sole import written

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact

_FLOORS = ("clamp", "clamp_min", "maximum")
# What makes no NaN of finite numbers, nor zeros of others: a function of these alone has one reason for NaN.
_CALM = frozenset(
    ["norm", "vector_norm", "pow", "square", "sum", "mean", "sqrt", "abs", "unsqueeze", "expand", "expand_as", "view",
     "reshape", "flatten", "squeeze", "clamp", "clamp_min", "maximum", "amax", "contiguous", "var", "std"]
)  # fmt: skip


# What a single number has none of.
_SPREADS = frozenset(["var", "std"])
_DEPTH = 6
_DIVISIONS = frozenset(["/", "/ norm"])


class Vanished(NamedTuple):
    """An assignment of the cell with such a number, and what came of it."""

    result: ExtremeFact
    number: str
    """As written: `1e-8`, `EPS`."""
    guarded: str
    """What the number stands in: `norm + 1e-8`."""
    line: int
    cell: int | None = None
    """Of a function of an earlier cell."""
    value: float = 0.0
    """Of a number that has a name."""


class Guarded(NamedTuple):
    """A divisor with such a number, wherever it stands."""

    number: str
    guarded: str
    place: Place
    value: float
    """Of a number that has a name."""


class _Guard(NamedTuple):
    node: ast.expr
    source: str
    known: Known
    cell: int | None = None


def vanished(run: Run) -> Iterator[Vanished]:
    """Float16 variables with NaN or minus infinity that come from finite ones, past a number that is zero there."""
    tree = syntax.parse(run.cell.source) if run.after.extremes else None
    spoiled = {one.path: one for one in run.after.extremes}
    bad = {path.partition(".")[0].partition("[")[0] for path in spoiled}
    known = known_numbers(run) if tree is not None else {}
    own, last = (given_once(tree), _last_stored(tree)) if tree is not None else ({}, {})
    for node in tree.body if tree is not None else ():
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        result = spoiled.get(target.id) if isinstance(target, ast.Name) else None
        if result is None or result.dtype != "float16" or not isinstance(node, ast.Assign):
            continue
        names = {one.id for one in syntax.walk(node.value) if isinstance(one, ast.Name)}
        # What stands for something else when the cell has ended, or may, has other values now.
        if names & bad or any(last.get(name, 0) > node.lineno for name in (result.path, *names)):
            continue
        inner = _guard_in(node.value, result, known, own)
        guard = _Guard(inner, run.cell.source, known) if inner is not None else _called_guard(run, node, result, known)
        if guard is not None and not half_and_finite(run, {result.path}):
            yield _fact(result, guard)
            return
    yield from _of_known_division(run)


def _of_known_division(run: Run) -> Iterator[Vanished]:
    """A variable with NaN, where its graph says that a guarded divisor was zero, and the texts have one that can be."""
    operations = [one.loss.operation for one in run.after.results if one.loss.operation is not None]
    spoiled = [one for one in run.after.extremes if one.dtype == "float16" and one.nan_count]
    divided = [one for one in operations if one.name in _DIVISIONS and one.cause.startswith("zero") and one.given_by]
    if not divided or not spoiled or len(divided) < len(operations):
        return
    kept = divided[0].given_by
    found = [one for one in guards(run) if _kept_by(syntax.expression(one.guarded)) == kept]
    names = _named_guards(run, kept)
    alone = len(found) == len(written(run, lambda node: _is_by(node, kept, names))) == 1
    if alone and not half_and_finite(run, {one.path for one in spoiled}):
        one = found[0]
        yield Vanished(spoiled[0], one.number, one.guarded, one.place.line or 0, one.place.cell, one.value)


def _is_by(node: ast.AST, kept: str, names: set[str]) -> bool:
    """True for a division by what is kept from zero in such a way, or by a variable that is."""
    by = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
    return by is not None and (_kept_by(by) == kept or (isinstance(by, ast.Name) and by.id in names))


def _named_guards(run: Run, kept: str) -> set[str]:
    """Variables that the texts give what is kept from zero in such a way."""
    trees = [syntax.parse(source) for source in {past.cell.source for past in (run, *run.earlier)}]
    nodes = (node for tree in trees if tree is not None for node in syntax.walk(tree))
    given = (node for node in nodes if isinstance(node, ast.Assign) and _kept_by(node.value) == kept)
    return {one.id for node in given for one in node.targets if isinstance(one, ast.Name)}


def _kept_by(node: ast.expr | None) -> str:
    """`+` for `norm + 1e-8`, `clamp` for `norm.clamp(min=1e-8)`."""
    if isinstance(node, ast.BinOp):
        return "+" if isinstance(node.op, ast.Add) else ""
    return "clamp" if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _FLOORS else ""


def guards(run: Run) -> Iterator[Guarded]:
    """Divisors of the texts that a number is to keep from zero which is zero in float16."""
    known = known_numbers(run)
    for one in written(run, syntax.is_division):
        by = ast.parse(one.text, mode="eval").body.right  # type: ignore[attr-defined]
        number = next((part for part in syntax.walk(by) if number_in(part, known)), None)
        if number is not None and _is_guard(by, known):
            value = 0.0 if isinstance(number, ast.Constant) else number_in(number, known)
            yield Guarded(_short(ast.unparse(number)), _short(ast.unparse(by)), one.place, value)


def _short(text: str) -> str:
    """`1e-8` for `1e-08`, as it is typed."""
    return re.sub(r"(\de-)0(\d)\b", r"\1\2", text)


def _fact(result: ExtremeFact, guard: _Guard) -> Vanished:
    number = next(one for one in syntax.walk(guard.node) if number_in(one, guard.known))
    text = ast.get_source_segment(guard.source, number) or ast.unparse(number)
    value = number_in(number, guard.known) if not isinstance(number, ast.Constant) else 0.0
    whole = ast.get_source_segment(guard.source, guard.node) or text
    return Vanished(result, text, whole, guard.node.lineno, guard.cell, value)


def _last_stored(tree: ast.AST) -> dict[str, int]:
    """The last line that gives each name a value."""
    stored = (one for one in syntax.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return {one.id: one.lineno for one in sorted(stored, key=lambda one: one.lineno)}


def _called_guard(run: Run, node: ast.Assign, result: ExtremeFact, known: Known) -> _Guard | None:
    """The guard in the function that an assignment calls, if nothing else in it can have made NaN."""
    call = node.value
    # Of what stands in the place of an argument nothing is known: it may have made the NaN.
    if not isinstance(call, ast.Call) or not all(isinstance(one, ast.Name) for one in call.args):
        return None
    for past in (run, *reversed(run.earlier)):
        function = _defined(past, run, call)
        if function is None:
            continue
        passed = {one.arg for one in call.keywords if one.arg}
        own = _parameters(function, len(call.args), passed)
        inner = _only_guard(function, result, {**known, **own})
        cell = None if past is run else past.cell.number
        return _Guard(inner, past.cell.source, {**known, **own}, cell) if inner is not None else None
    return None


def _defined(past: Run, run: Run, call: ast.Call) -> ast.FunctionDef | None:
    """The function of a call in the text of a cell, or the `forward` of the module that is called."""
    tree, name = syntax.parse(past.cell.source), ast.unparse(call.func)
    kind = next((one.kind for one in run.after.modules if one.path == name), "")
    for one in tree.body if tree is not None else ():
        if isinstance(one, ast.FunctionDef) and one.name == name and not kind:
            return one
        if isinstance(one, ast.ClassDef) and one.name == kind:
            methods = (part for part in one.body if isinstance(part, ast.FunctionDef))
            return next((part for part in methods if part.name == "forward"), None)
    return None


def _parameters(function: ast.FunctionDef, given: int, passed: set[str]) -> dict[str, float | None]:
    """The parameters of a function with their defaults, where those hold."""
    arguments = [one.arg for one in function.args.args if one.arg != "self"]
    defaults = dict(zip(reversed(arguments), reversed(function.args.defaults), strict=False))
    held = {name for name in arguments[given:] if name not in passed}
    return {name: number_in(defaults[name], {}) if name in held and name in defaults else None for name in arguments}


def _only_guard(function: ast.FunctionDef, result: ExtremeFact, known: Known) -> ast.expr | None:
    """The one guarded division of a function that otherwise does nothing that makes NaN."""
    last = function.body[-1]
    nodes = list(syntax.walk(function))
    wild = (ast.Div, ast.MatMult, ast.Sub)
    divisions = [one for one in nodes if isinstance(one, ast.BinOp) and isinstance(one.op, wild)]
    calls = {one.func.attr for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)}
    named = [one for one in nodes if isinstance(one, ast.Call) and not isinstance(one.func, ast.Attribute)]
    left = divisions[0].left if len(divisions) == 1 else None
    stored = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    given = isinstance(left, ast.Name) and left.id in {one.arg for one in function.args.args} - stored
    if named or not given or not calls <= _CALM or not isinstance(last, ast.Return) or function.decorator_list:
        return None
    own = given_once(function)
    return _guard_in(divisions[0], result, known, own) if are_real(nodes, own) else None


def _guard_in(value: ast.expr, result: ExtremeFact, known: Known, names: Given) -> ast.expr | None:
    """The divisor of a named tensor, or what is given to a logarithm, if such a number is to keep it from zero."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and result.nan_count:
        # Of a single number there is no spread: all are NaN then, whatever is added.
        spread = any(isinstance(one, ast.Attribute) and one.attr in _SPREADS for one in syntax.walk(value.right))
        calm = isinstance(value.left, ast.Name) and _is_calm(value.right, names)
        known_cause = calm and not (spread and result.nan_count == result.count)
        return value.right if known_cause and _is_guard(value.right, known) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "log":
        of_torch = isinstance(value.func.value, ast.Name) and value.func.value.id == "torch"
        given = value.args[0] if of_torch and value.args else value.func.value
        return given if result.negative_inf_count and _is_guard(given, known) else None
    return None


def _is_calm(divisor: ast.expr, names: Given) -> bool:
    """True if nothing in a divisor makes NaN of finite numbers: no root or logarithm of what may be negative."""
    nodes = list(syntax.walk(divisor))
    calls = [one.func for one in nodes if isinstance(one, ast.Call)]
    divides = (isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Div, ast.MatMult)) for one in nodes)
    named = all(isinstance(one, ast.Attribute) and one.attr in _CALM for one in calls)
    return named and not any(divides) and are_real(nodes, names) and not _may_meet_infinity(divisor, names)


def _may_meet_infinity(node: ast.expr, names: Given) -> bool:
    """True for `w * x.pow(2)`: where the square is infinite and the weight 0, their product is NaN."""
    return any(map(_is_weighted, _behind(node, names)))


def _behind(node: ast.expr, names: Given) -> Iterator[ast.expr]:
    """An expression and those behind its names, each name once."""
    found, seen = [node], set[str]()
    for _ in range(_DEPTH):
        yield from found
        fresh = frozenset[str]().union(*map(syntax.names_in, found)) - seen
        seen |= fresh
        found = [names[one] for one in sorted(fresh) if one in names]
    yield from found


def _is_weighted(node: ast.expr) -> bool:
    """True if a product has two factors of which neither is a plain number."""
    nodes = list(syntax.walk(node))
    products = [one for one in nodes if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
    unlike = [one for one in products if ast.unparse(one.left) != ast.unparse(one.right)]
    return not all(any(isinstance(s, ast.Constant) and s.value for s in (one.left, one.right)) for one in unlike)


def _is_guard(node: ast.expr, known: Known) -> bool:
    """True for `x + 1e-8` and `x.clamp(min=1e-8)`, if nothing in them can be below zero by a difference."""
    if any(isinstance(one, ast.Sub) or _is_negated(one) for one in syntax.walk(node)):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return bool(number_in(node.left, known) or number_in(node.right, known))
    floor = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FLOORS
    given = [*node.args, *(one.value for one in node.keywords)] if floor and isinstance(node, ast.Call) else []
    return any(number_in(one, known) for one in given)


def _is_negated(node: ast.AST) -> bool:
    """True for `-x`; an axis such as -1 is a number."""
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return negated and not isinstance(node.operand, ast.Constant)  # type: ignore[attr-defined]
