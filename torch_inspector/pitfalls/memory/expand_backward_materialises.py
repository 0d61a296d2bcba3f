"""An expanded tensor: free in forward, full size in backward."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torch_inspector.facts import BackwardFact, PatternFact, Run, Shape
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Shapes of a pattern: all repetitions, what is repeated, the result.
_SHAPES = 3


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds expands that repeat a tensor many times over, of which an operation with a small result was the reader."""
    seen: set[tuple[Shape, ...]] = set()
    for backward in run.trace.patterned:
        patterns = backward.witness.patterns if backward.witness else ()
        # A table that both operands were expanded to is told of as such.
        tables = {one.shapes[0] for one in patterns if one.name == "blown-up" and one.shapes}
        for pattern in patterns:
            if pattern.shapes[:1] and pattern.shapes[0] in tables:
                continue
            is_large = pattern.name == "expanded" and pattern.nbytes >= max(run.min_nbytes, 1)
            if is_large and len(pattern.shapes) == _SHAPES and pattern.shapes not in seen:
                seen.add(pattern.shapes)
                yield _finding(backward, pattern)


def _finding(backward: BackwardFact, pattern: PatternFact) -> Finding:
    shape, before, result = pattern.shapes
    times = prod(shape) // max(prod(before), 1)
    loss = f"`{backward.root}`" if backward.root else "the loss"
    return Finding(
        message=(
            f"{loss} reads {before} expanded to {shape}: that takes no memory in forward, "
            f"but backward makes its gradient of {size_text(pattern.nbytes)}, "
            f"{times} times the tensor itself."
        ),
        subject=backward.root,
        fix=_fix(pattern),
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        evidence=(
            Evidence("before expand", str(before)),
            Evidence("after expand", str(shape)),
            Evidence("result", str(result)),
            Evidence("bytes of the gradient", pattern.nbytes, "bytes"),
            Evidence("graph", " <- ".join(pattern.nodes)),
        ),
    )


def _fix(pattern: PatternFact) -> str:
    picks = ("Select", "Slice", "Index", "Gather")
    if pattern.nodes and pattern.nodes[0].startswith(picks):
        return "index the tensor before it is expanded: each row that is picked is then stored once"
    return "reduce first and expand the small result: x.mean(1).expand(n) in place of x.expand(n, -1).mean(1)"
