"""A large table between small operands and a small result."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torch_inspector.facts import PatternFact, Place, Run, Shape
from torch_inspector.facts.contractions import contraction, is_of_batches, is_of_rows
from torch_inspector.facts.meetings import Meeting, meeting, meeting_in
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# An ordinary price for clear code, in parts of the smallest amount that the user wants to hear of.
_LEAST_TIMES = 8
# Smaller ones are worth a line, no more: there may be plenty of room for them.
_LARGE_NBYTES = 64 << 20
# Shapes of a pattern: the table, two operands, the result.
_SHAPES = 4
# Of a table of all pairs of rows.
_AXES = 3
# Of operands as they are to be given.
_WITHOUT = "without the axes put in for it"


_Found = tuple[str, Place | None, PatternFact, str]


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds tables that were broadcast, many times larger than what they came from, and added up right after."""
    seen: set[tuple[Shape, ...]] = set()
    for name, place, pattern, text in _named_first(run):
        large = pattern.nbytes >= max(_LEAST_TIMES * run.min_nbytes, 1)
        if large and len(pattern.shapes) == _SHAPES and pattern.shapes not in seen:
            seen.add(pattern.shapes)
            sign = pattern.nodes[-1] if pattern.nodes else ""
            met = meeting(run, sign) or (meeting_in(run, place, text, sign) if place is not None else None)
            yield _finding(name, met.place if met is not None and met.inside else place, pattern, met)


def _named_first(run: Run) -> list[_Found]:
    return sorted(_patterns(run), key=lambda each: each[0] == "")


def _patterns(run: Run) -> Iterator[_Found]:
    """What was found behind kept variables, the one that was made first in front, behind losses, and in the text.

    Each with a variable and a place, and the expression where it was found in the text.
    """
    for graph in sorted(run.after.graphs, key=lambda graph: graph.key):
        yield from ((graph.path, graph.made_at, p, "") for p in graph.patterns if p.name == "blown-up")
    for backward in run.trace.patterned:
        patterns = backward.witness.patterns if backward.witness else ()
        new = (p for p in patterns if p.name == "blown-up" and not _is_told(run, p))
        yield from ((backward.root, backward.made_at, p, "") for p in new)
    facts = list(run.expressions("blown-up"))
    earlier = run.earlier if facts else ()
    told = {fact.place for past in earlier for fact in past.after.expressions if fact.kind == "blown-up"}
    for fact in facts:
        if fact.place not in told:
            how, meeting = fact.names
            pattern = PatternFact("blown-up", (how, meeting), fact.shapes, (how,), nbytes=fact.nbytes)
            yield fact.target or fact.text, fact.place, pattern, fact.text


def _is_told(run: Run, pattern: PatternFact) -> bool:
    kept = (graph for past in run.earlier for graph in past.after.graphs)
    return any(pattern.shapes == one.shapes for graph in kept for one in graph.patterns)


def _finding(name: str, place: Place | None, pattern: PatternFact, met: Meeting | None) -> Finding:
    table, first, second, result = pattern.shapes
    operands = max(prod(first), prod(second), 1)
    return Finding(
        message=(
            f"{_who(name, met)} {_was(met)} a tensor of shape {table}, {size_text(pattern.nbytes)}: "
            f"{first} met {second}, which made {prod(table) // operands} times more elements, "
            f"and then they were reduced to {result}."
        ),
        subject=met.result if met is not None and met.inside and met.result else name,
        fix=_fix(pattern, met),
        line=place.line if place else None,
        cell=place.cell if place else None,
        severity="" if pattern.nbytes >= _LARGE_NBYTES and not _is_weighted(pattern) else "hint",
        evidence=(
            Evidence("operands", f"{first} and {second}"),
            Evidence("stretched to", str(table)),
            Evidence("bytes of that tensor", pattern.nbytes, "bytes"),
            Evidence("result", str(result)),
            Evidence("graph", " <- ".join(pattern.nodes)),
        ),
    )


def _who(name: str, met: Meeting | None) -> str:
    """The variable in the function that makes the table, if there is one; else what came of it."""
    if met is not None and met.inside and met.result:
        return f"`{met.result}`" + (f" in `{met.function}`" if met.function else "")
    return f"`{name or 'the loss'}`"


def _was(met: Meeting | None) -> str:
    return "is" if met is not None and met.inside and met.is_result else "went through"


def _is_weighted(pattern: PatternFact) -> bool:
    """True for a table of the text that is weighted before it is added up: without gradients, it costs its moment."""
    return bool(pattern.nodes) and pattern.nodes[-1].startswith("…")


def _fix(pattern: PatternFact, met: Meeting | None) -> str:
    """What gives the same result without the table; in words where the text does not name both operands."""
    how = pattern.operands[0] if pattern.operands else ""
    sign = pattern.nodes[-1] if pattern.nodes else ""
    named = (met.first, met.second) if met is not None and met.first and met.second else None
    if sign.startswith("Mul") and how == "sum" and len(pattern.nodes) == 2:  # noqa: PLR2004  (product, then sum)
        return _product(pattern, *named) if named is not None else _product_in_words(pattern)
    if sign.startswith("Sub") and how in ("sum", "norm") and _is_of_pairs(pattern):
        return _distances(pattern, named)
    part = met.left if met is not None else "one operand"
    parts = f" (for part in {part}.split(64))" if met is not None else ""
    return (
        f"go through {part} in parts{parts} and torch.cat the results; where gradients are wanted, "
        "each part in torch.utils.checkpoint.checkpoint"
    )


def _distances(pattern: PatternFact, named: tuple[str, str] | None) -> str:
    long = len(pattern.shapes[0]) > _AXES and is_of_rows(pattern.shapes)
    more = "(its square, p=1 for absolute differences)"
    if named is None:
        each = ", each with .flatten(1)" if long else ""
        return f"torch.cdist gives distances of all pairs without it {more}: of both tensors {_WITHOUT}{each}"
    a, b = (f"{one}.flatten(1)" if long else one for one in named)
    return f"torch.cdist({a}, {b}) gives distances of all pairs without it {more}"


def _product(pattern: PatternFact, a: str, b: str) -> str:
    """What multiplies and adds up at once."""
    written = contraction(pattern.shapes)
    if _is_of_matrices(pattern):
        cosine = f"F.normalize({a}, dim=-1) @ F.normalize({b}, dim=-1).T"
        return f"a product that is summed is a matrix product: {a} @ {b}.T, or torch.einsum; for cosines {cosine}"
    if not written:
        return f"a product that is summed is one call of torch.einsum, of {a} and {b} {_WITHOUT}"
    return f'torch.einsum("{written}", {a}, {b})  # a product that is summed, without the table'


def _product_in_words(pattern: PatternFact) -> str:
    if _is_of_matrices(pattern):
        return "a product that is summed is a matrix product, of one with the other transposed, or torch.einsum"
    written = contraction(pattern.shapes)
    how = f', with "{written}"' if written else ""
    return f"a product that is summed is one call of torch.einsum{how}: of both tensors {_WITHOUT}"


def _is_of_matrices(pattern: PatternFact) -> bool:
    return len(pattern.shapes[0]) == _AXES and (is_of_rows(pattern.shapes) or not contraction(pattern.shapes))


def _is_of_pairs(pattern: PatternFact) -> bool:
    """True for all pairs of rows; with more axes, for those of which all but the numbers of the rows are added up."""
    return len(pattern.shapes[0]) == _AXES or is_of_rows(pattern.shapes) or is_of_batches(pattern.shapes)
