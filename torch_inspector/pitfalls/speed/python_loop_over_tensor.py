"""A loop of Python over the elements of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Elements visited one by one: about 2 µs each; a warning from about a quarter of a second on.
_VISITS, _WARNED = 1_000, 100_000
_SHOWN = 3


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds loops that only visit single elements of tensors, in any order, and `max(x)` of a tensor."""
    for fact in run.expressions("visits"):
        if fact.names and fact.shapes and fact.shapes[0] and fact.shapes[0][0] >= _VISITS:
            yield _finding(fact, fact.shapes[0][0], _outer_line(run, fact), _filled(run, fact))


def _outer_line(run: Run, fact: ExpressionFact) -> int:
    """The line of the innermost loop around the one that is told, in the same function; 0 if there is none."""
    tree, line = syntax.parse(run.source_of(fact.place.cell)), fact.place.line or 0
    scope = syntax.scope_at(tree, line) if tree is not None else None
    loops = [one for one in syntax.own_expressions(scope) if isinstance(one, (ast.For, ast.While))] if scope else []
    return max((one.lineno for one in loops if one.lineno < line <= (one.end_lineno or 0)), default=0)


def _filled(run: Run, fact: ExpressionFact) -> list[str]:
    """What the loop gives numbers at single places, beside the tensors whose elements it is told to visit."""
    tree = syntax.parse(run.source_of(fact.place.cell))
    nodes = syntax.walk(tree) if tree is not None else ()
    loops = [one for one in nodes if isinstance(one, ast.For) and one.lineno == fact.place.line]
    parts = [one for loop in loops for one in syntax.walk(loop)]
    owners = [_owner(one) for one in parts if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)]
    rows = {name for one in parts if isinstance(one, ast.For) for name in syntax.names_in(one.target)}
    return [one for one in dict.fromkeys(owners) if one and one not in rows.union(fact.names)]


def _owner(node: ast.expr) -> str:
    """`m` of `m[i][j]`; empty for what is no variable or field."""
    whole = syntax.whole_of(node)
    return ast.unparse(whole) if isinstance(whole, (ast.Name, ast.Attribute)) else ""


def _finding(fact: ExpressionFact, count: int, outer: int, filled: list[str]) -> Finding:
    where = "in one call" if fact.place.function else "in all"
    where = f"in each turn of the loop in line {outer}" if outer else where
    most = "up to " if len(fact.shapes) > 1 else ""
    shown = ", ".join(f"`{one}`" for one in fact.names[:_SHOWN])
    to_fill = f", to fill {', '.join(f'`{one}`' for one in filled[:_SHOWN])}" if filled else ""
    general = "one call on whole tensors: a * b, x.sum(), x.amax(1), torch.where(…), torch.bincount(…)"
    return Finding(
        message=(
            f"The loop visits elements or rows of {shown} one by one, {most}{count:,} times {where}{to_fill}: "
            "each visit makes a small tensor, and one call could do all of them."
        ),
        subject=fact.names[0],
        fix=f"{fact.detail}  # one call" if fact.detail else general,
        line=fact.place.line,
        cell=fact.place.cell,
        severity="warning" if count >= _WARNED else "",
        evidence=(Evidence("elements visited", count, "count"),),
    )
