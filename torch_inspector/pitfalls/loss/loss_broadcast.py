"""Prediction (N, 1) minus or times (N,), (N, 1, H, W) minus (N, H, W); one number, or one row, for targets (N, C)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod

from torch_inspector.facts import (
    BackwardFact,
    ForwardFact,
    PatternFact,
    Place,
    Run,
    Shape,
    assigned_at,
    differences,
    in_line,
    syntax,
)
from torch_inspector.facts.log_chances import added_up
from torch_inspector.facts.one_row import asks_for_one_row
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Who writes it means it; the graph looks the same.
_EXPANDS = re.compile(r"\b(?:expand|expand_as|broadcast_to|broadcast_tensors)\(")


# Operations after which each number of one side is there once for each of the other.
_PRODUCTS = {"MulBackward0": "multiplies", "DivBackward0": "divides", "WhereBackward0": "masks"}
# Longer expressions are no names.
_NAME = 40


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds losses that compare each prediction with each target, because a column met a row."""
    seen: set[Place] = set()
    for backward in run.trace.patterned:
        patterns = backward.witness.patterns if backward.witness else ()
        pattern = next((p for p in patterns if p.name == "stretched-operands"), None)
        if pattern is not None and _has_terms(pattern) and backward.made_at not in seen:
            seen.add(backward.made_at)
            yield _finding(run, backward, pattern)
        spread = next((p for p in patterns if p.name == "spread-prediction"), None)
        written = _EXPANDS.search(run.source_of(backward.made_at.cell))
        if spread is not None and not written and backward.made_at not in seen:
            seen.add(backward.made_at)
            one_row = spread.shapes[1][0] == 1
            yield (_spread_row if one_row else _spread)(run, backward, spread)


def _has_terms(pattern: PatternFact) -> bool:
    """False for an empty batch, of which a loss compares nothing."""
    return len(pattern.shapes) > 2 and all(map(prod, pattern.shapes))  # noqa: PLR2004


def _spread(run: Run, backward: BackwardFact, pattern: PatternFact) -> Finding:
    table, known = pattern.shapes[:2]
    loss = f"`{backward.root}`" if backward.root else "the loss"
    target = next(iter(pattern.operands), "target")
    return Finding(
        message=(
            f"{loss} spreads predictions {known} over targets {table}: one number for {table[1]} targets, and the best "
            f"answer becomes their mean."
        ),
        subject=backward.root,
        fix=_of_actions(run, backward, pattern)
        or f"# {table[1]} outputs of the last layer; or the one column that is meant: {target}[:, :1]",
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        severity="warning",
        evidence=(
            Evidence("predictions", str(known)),
            Evidence("targets", str(table)),
            Evidence("loss", pattern.nodes[0]),
        ),
    )


def _spread_row(run: Run, backward: BackwardFact, pattern: PatternFact) -> Finding:
    """One row for all targets: a module that was given as many samples has folded them, or it may be meant."""
    table, known = pattern.shapes[:2]
    loss = f"`{backward.root}`" if backward.root else "the loss"
    given = _folding(run, backward, pattern)
    name = (given.name if given is not None else "") or "the model"
    folded = f", for `{name}` was given {table[0]} samples and made one of them" if given is not None else ""
    return Finding(
        message=(
            f"{loss} spreads one prediction {known} over {table[0]} targets {table}{folded}: each of them is compared "
            f"with the same row, and the best answer becomes their mean."
        ),
        subject=backward.root,
        fix=(
            f"# in {name}: x.flatten(1), or x.view(x.size(0), -1), keeps the {table[0]} samples apart"
            if given is not None
            else "# one prediction for each target; if one is meant for all: prediction.expand_as(target) says so"
        ),
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        severity="hint" if given is None else "warning",
        evidence=(
            Evidence("predictions", str(known)),
            Evidence("targets", str(table)),
            Evidence("loss", pattern.nodes[0]),
        ),
    )


def _folding(run: Run, backward: BackwardFact, pattern: PatternFact) -> ForwardFact | None:
    """The call that was given a sample for each target and returned one row, if the graph shows the view.

    None where its text asks for one row: that may be one prediction for all.
    """
    leaves = backward.witness.leaf_keys if backward.witness and len(pattern.nodes) > 1 else frozenset[int]()
    rows = pattern.shapes[0][:1]
    calls = (one for one in run.trace.forwards if one.parameter_keys & leaves and one.order < backward.order)
    given = (one for one in calls if one.input_shapes and one.input_shapes[0][:1] == rows)
    found = next((one for one in given if one.output_shape and one.output_shape[0] == 1), None)
    return None if found is None or asks_for_one_row(run, found.kind) else found


def _of_actions(run: Run, backward: BackwardFact, pattern: PatternFact) -> str:
    """Where logarithms of probabilities of actions are left apart, which only their sum is one number for."""
    found = added_up(run, next(iter(pattern.operands), ""))
    if found is None:
        return ""
    statement, place = found
    where = place.said_in(backward.made_at.cell)
    return f"{statement}  # {where}: one number for an action, where its {pattern.shapes[0][1]} parts have one each"


def _finding(run: Run, backward: BackwardFact, pattern: PatternFact) -> Finding:
    result, first, second = pattern.shapes[:3]
    loss = f"`{backward.root}`" if backward.root else "the loss"
    other = pattern.operands[0] if pattern.operands else ""
    how = (
        f"a row met a column where {_named(other)} was computed"
        if second == result
        else f"both are stretched to {result}"
    )
    verb = next((verb for node, verb in _PRODUCTS.items() if node in pattern.nodes), "")
    return Finding(
        message=(
            f"{loss} {verb or 'compares'} {first} {'by' if verb == 'divides' else 'with'} {second}: {how}, "
            f"{_more(result, first)}, {_harm(result, first, product=bool(verb))}."
        ),
        subject=backward.root,
        fix=_fix(run, backward, other, first, second) if second != result else _fix_of_target(other),
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        evidence=(
            Evidence(_met(run, backward.made_at, other, first) or "one side", str(first)),
            Evidence(other or "other side", str(second)),
            Evidence("stretched to", str(result)),
        ),
    )


def _met(run: Run, place: Place, other: str, shape: Shape) -> str:
    """What the code of a loss calls the side that met the named one; empty if its statement does not show that."""
    tree = syntax.parse(run.source_of(place.cell)) if other and place.line is not None else None
    scope = syntax.scope_at(tree, place.line) if tree is not None and place.line is not None else None
    found = {text for node in _own(scope, place.line) for text in _facing(node, other)} if scope is not None else set()
    name = found.pop() if len(found) == 1 else ""
    known = {one.shape for one in run.after.tensors if one.path == name}
    return name if len(name) <= _NAME and known <= {shape} else ""


def _own(scope: ast.AST, line: int | None) -> Iterator[ast.expr]:
    """The expressions of the statement that begins or ends at a line."""
    for node in syntax.own_expressions(scope):
        if isinstance(node, (ast.BinOp, ast.Call)) and line in (node.lineno, node.end_lineno):
            yield node


def _facing(node: ast.expr, other: str) -> Iterator[str]:
    """The other one of two operands, if one of them is what is named."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else getattr(node, "args", [])[:2]
    texts = [ast.unparse(one) for one in sides]
    if len(texts) == 2 and texts.count(other) == 1:  # noqa: PLR2004 - two sides
        facing = sides[1 - texts.index(other)]
        yield from [ast.unparse(facing)] if syntax.names_in(facing) else []


def _more(result: Shape, first: Shape) -> str:
    count = prod(first)
    return f"{prod(result) // count} times more terms than the {count} {'samples' if len(result) == 2 else 'values'}"  # noqa: PLR2004


def _harm(result: Shape, first: Shape, *, product: bool) -> str:
    if product:
        return "of which each is weighted by all others"
    best = "a constant" if len(result) == 2 else f"the mean of {prod(result) // prod(first)} targets"  # noqa: PLR2004
    return f"and the best answer becomes {best}"


def _fix(run: Run, backward: BackwardFact, other: str, first: Shape, second: Shape) -> str:
    """What to do with the side whose name is known; of the other one it is not."""
    axes = _extra_axes(first, second)
    if not axes:
        return f"# both sides need the same shape, and have {first} and {second}"
    change, opposite = _less(axes), _more_of(axes)
    if not other:
        return f"# {change} on the prediction, or {opposite} on the target: both sides need the same shape"
    if len(second) < len(first):
        change, opposite = opposite, change
    tall = _of_a_name_read_again(run, backward.made_at, other, first, second) if len(second) < len(first) else ""
    if tall:
        return f"{tall}  # {second}; or {other}{change}, if {first} is what later lines want"
    changed = f"{_closed(other)}{change}"
    if _is_used_elsewhere(run, other):
        line = in_line(run, backward.made_at, other, changed)
        where = "" if line else f"in place of {other} in the loss, "
        return f"{line or changed}  # {where}or {opposite} on what it meets"
    remark = f"or {opposite} on what it meets: both sides need the same shape"
    if other.replace(".", "").isidentifier():
        return assigned_at(run, backward.made_at, other, f"{{}}{change}", remark)
    line = in_line(run, backward.made_at, other, changed)
    return f"{line}  # {remark}" if line else f"{changed}  # in place of {other}, or {opposite} on what it meets"


def _closed(text: str) -> str:
    """The expression as one that a method can be called on: `(price / 2)`."""
    is_open = isinstance(syntax.expression(text), (ast.BinOp, ast.UnaryOp, ast.Constant))
    return f"({text})" if is_open else text


def _of_a_name_read_again(run: Run, place: Place, other: str, first: Shape, second: Shape) -> str:
    """`gap = wanted - values.squeeze(1)` for a difference that later lines read, most likely as one number per sample.

    A column in the place of the row would be stretched again by the next row.
    """
    found = differences.kept_difference(run, place, other, first)
    if found is None:
        return ""
    at, side = found
    text = ast.unparse(side)
    closed = text if isinstance(side, (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
    return in_line(run, at, text, closed + _less(_extra_axes(first, second)))


def _is_used_elsewhere(run: Run, name: str) -> bool:
    """True if some function, or the code around functions, reads a variable more than once."""
    texts = dict.fromkeys((run.cell.source, *(past.cell.source for past in run.earlier)))
    return any(differences.reads_of(scope, name) > 1 for text in texts for scope in _scopes(text))


@lru_cache(maxsize=64)
def _scopes(text: str) -> tuple[ast.AST, ...]:
    tree = syntax.parse(text)
    if tree is None:
        return ()
    return tuple(node for node in syntax.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Module)))


def _extra_axes(first: Shape, second: Shape) -> tuple[int, ...]:
    """The axes of length 1 that one shape has more than the other; none if it has others as well."""
    more, less = sorted((first, second), key=len, reverse=True)
    found, left = list[int](), list(less)
    for axis, size in reversed(list(enumerate(more))):
        if left and left[-1] == size:
            left.pop()
        elif size == 1:
            found.append(axis)
        else:
            return ()
    return tuple(reversed(found)) if not left else ()


def _less(axes: tuple[int, ...]) -> str:
    return f".squeeze({axes[0] if len(axes) == 1 else axes})"


def _more_of(axes: tuple[int, ...]) -> str:
    return "".join(f".unsqueeze({axis})" for axis in axes)


def _named(other: str) -> str:
    return f"`{other}`" if other else "the other side"


def _fix_of_target(other: str) -> str:
    return (
        f"# {other} has to be (N, 1) too: .squeeze(1) on what the module gives, or .unsqueeze(1) on what is added to it"
    )
