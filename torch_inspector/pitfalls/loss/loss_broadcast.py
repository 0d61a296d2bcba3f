"""Prediction (N, 1) minus or times (N,), or (N, 1, H, W) minus (N, H, W); one number (N, 1) for targets (N, C)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod

from torch_inspector.facts import BackwardFact, PatternFact, Place, Run, Shape, assigned_at, in_line, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Who writes it means it; the graph looks the same.
_EXPANDS = re.compile(r"\b(?:expand|expand_as|broadcast_to|broadcast_tensors)\(")


_SEVERAL = 2
# Operations after which each number of one side is there once for each of the other.
_PRODUCTS = {"MulBackward0": "multiplies", "DivBackward0": "divides", "WhereBackward0": "masks"}


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
            yield _spread(backward, spread)


def _has_terms(pattern: PatternFact) -> bool:
    """False for an empty batch, of which a loss compares nothing."""
    return len(pattern.shapes) > 2 and all(map(prod, pattern.shapes))  # noqa: PLR2004


def _spread(backward: BackwardFact, pattern: PatternFact) -> Finding:
    table, known = pattern.shapes[:2]
    loss = f"`{backward.root}`" if backward.root else "the loss"
    target = next(iter(pattern.operands), "target")
    return Finding(
        message=(
            f"{loss} spreads predictions {known} over targets {table}: one number for {table[1]} targets, and the best "
            f"answer becomes their mean."
        ),
        subject=backward.root,
        fix=(f"# {table[1]} outputs of the last layer; or the one column that is meant: {target}[:, :1]"),
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        severity="warning",
        evidence=(
            Evidence("predictions", str(known)),
            Evidence("targets", str(table)),
            Evidence("loss", pattern.nodes[0]),
        ),
    )


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
            Evidence("one side", str(first)),
            Evidence(f"other side ({other})" if other else "other side", str(second)),
            Evidence("stretched to", str(result)),
            Evidence("graph", " <- ".join(pattern.nodes)),
        ),
    )


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
    axis = _extra_axis(first, second)
    change, opposite = f".squeeze({axis})", f".unsqueeze({axis})"
    if not other:
        return f"# {change} on the prediction, or {opposite} on the target: both sides need the same shape"
    if len(second) < len(first):
        change, opposite = opposite, change
    if tall := _of_a_name_read_again(run, backward.made_at, other) if len(second) < len(first) else "":
        return f"{tall}  # {second}; or {other}{change}, if {first} is what later lines want"
    if _is_used_elsewhere(run, other):
        line = in_line(run, backward.made_at, other, f"{other}{change}")
        where = "" if line else f"in place of {other} in the loss, "
        return f"{line or f'{other}{change}'}  # {where}or {opposite} on what it meets"
    remark = f"or {opposite} on what it meets: both sides need the same shape"
    if other.replace(".", "").isidentifier():
        return assigned_at(run, backward.made_at, other, f"{{}}{change}", remark)
    return f"{other}{change}  # in place of {other}, or {opposite} on what it meets"


def _of_a_name_read_again(run: Run, place: Place, other: str) -> str:
    """`gap = wanted - values.squeeze(1)` for a difference that later lines read, most likely as one number per sample.

    A column in the place of the row would be stretched again by the next row.
    """
    tree = syntax.parse(run.source_of(place.cell))
    scope = syntax.scope_at(tree, place.line) if tree is not None and place.line is not None else None
    given = [node for node in syntax.own_statements(scope) if isinstance(node, ast.Assign)] if scope is not None else []
    found = [(node, side) for node in given for side in _met(node.value, other)]
    if scope is None or len(found) != 1:
        return ""
    node, side = found[0]
    name = node.targets[0]
    if not isinstance(name, ast.Name) or _reads(scope, name.id) < _SEVERAL:
        return ""
    text = ast.unparse(side)
    tall = f"{text if isinstance(side, (ast.Name, ast.Attribute, ast.Call)) else f'({text})'}.squeeze(1)"
    return in_line(run, Place(place.cell, node.lineno), text, tall)


def _met(node: ast.expr, other: str) -> list[ast.expr]:
    """The other operand of a difference, if one of them is what is named."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else ()
    texts = [ast.unparse(one) for one in sides]
    return [sides[1 - texts.index(other)]] if texts.count(other) == 1 else []


def _is_used_elsewhere(run: Run, name: str) -> bool:
    """True if some function, or the code around functions, reads a variable more than once."""
    texts = dict.fromkeys((run.cell.source, *(past.cell.source for past in run.earlier)))
    return any(_reads(scope, name) > 1 for text in texts for scope in _scopes(text))


@lru_cache(maxsize=64)
def _scopes(text: str) -> tuple[ast.AST, ...]:
    tree = syntax.parse(text)
    if tree is None:
        return ()
    return tuple(node for node in syntax.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Module)))


def _reads(scope: ast.AST, name: str) -> int:
    names = (node for node in syntax.own_expressions(scope) if isinstance(node, ast.Name))
    return sum(node.id == name and isinstance(node.ctx, ast.Load) for node in names)


def _extra_axis(first: Shape, second: Shape) -> int:
    """The axis of length 1 that one shape has more than the other."""
    more, less = sorted((first, second), key=len, reverse=True)
    return next((i for i, n in enumerate(more) if n == 1 and (*more[:i], *more[i + 1 :]) == less), 1)


def _named(other: str) -> str:
    return f"`{other}`" if other else "the other side"


def _fix_of_target(other: str) -> str:
    return (
        f"# {other} has to be (N, 1) too: .squeeze(1) on what the module gives, or .unsqueeze(1) on what is added to it"
    )
