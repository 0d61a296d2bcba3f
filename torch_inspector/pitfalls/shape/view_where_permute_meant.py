"""A view to the same sizes in another order."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import (
    ExpressionFact,
    ForwardFact,
    PatternFact,
    Place,
    Run,
    Shape,
    Viewed,
    computes_sizes,
    instead,
    is_crossed,
    is_merged,
    is_recut,
    viewed_again,
)
from torch_inspector.facts.receiver import receiver
from torch_inspector.facts.reordered import moved, order_by_sizes
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.rows_cut import Cause, rows_cut
from torch_inspector.facts.viewed import Cut, cut_to, sizes_written
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_HEADS = ("batch", "heads", "time", "size")
_ROWS, _STATES, _CLIPS = 2, 3, 5
_PLAIN = "rows and channels"


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds tensors that were re-cut to their own sizes in another order, the last cut into heads or not."""
    facts = run.expressions("shuffled")
    yield from (_finding(run, *alike) for alike in _grouped(facts))
    behind = [] if facts else _in_graphs(run)
    for pattern, root, place in behind:
        yield _in_graph(run, pattern, root, place)
    if not facts and not behind:
        calls = (call for call in run.trace.forwards if len(call.recut) > 1)
        yield from (_given(run, call) for call in calls if not _was_told(run, call))


def _was_told(run: Run, call: ForwardFact) -> bool:
    """True if the view itself was found where an earlier cell made it."""
    facts = (fact for past in run.earlier for fact in past.expressions("shuffled"))
    return any(fact.shapes[:2] == call.recut[:2] for fact in facts)


def _in_graphs(run: Run) -> list[tuple[PatternFact, str, Place]]:
    """Views behind losses; where there is none, behind what the cell computed and keeps."""
    behind = [one for one in run.losses_with("shuffled") if len(one[0].shapes) > 1 and not _may_be_recut(run, one[0])]
    kept = (
        (p, graph.path, graph.made_at) for graph in run.after.graphs for p in graph.patterns if p.name == "shuffled"
    )
    shown = ((p, path, place) for p, path, place in kept if place is not None and len(p.shapes) > 1)
    return behind or [one for one in shown if not _may_be_recut(run, one[0])][:1]


def _may_be_recut(run: Run, pattern: PatternFact) -> bool:
    """True if a view in the text computes such sizes: `h.reshape(-1, segment, width)`; of maps, if only they tell."""
    before, after = pattern.shapes[:2]
    return (is_recut(before, after) and computes_sizes(run, after)) or rows_cut(run, pattern) is Cause.CHANCE


def _grouped(facts: tuple[ExpressionFact, ...]) -> list[list[ExpressionFact]]:
    """The same cut of several tensors in one function, as of queries, keys and values, in one list."""
    groups: list[list[ExpressionFact]] = []
    for fact in facts:
        alike = [one for one in groups if _cut(one[0]) == _cut(fact) and _is_near(one[-1], fact)]
        if alike:
            alike[-1].append(fact)
        else:
            groups.append([fact])
    return groups


def _is_near(one: ExpressionFact, other: ExpressionFact) -> bool:
    """True for places in a function, or for lines one after the other outside of it."""
    return bool(one.place.function) or (other.place.line or 0) == (one.place.line or 0) + 1


def _cut(fact: ExpressionFact) -> tuple[object, ...]:
    name = fact.names[0] if fact.names else ""
    text = fact.text.removeprefix(name)
    return (fact.place.cell, fact.place.function, text, fact.shapes, fact.detail, fact.sure)


def _finding(run: Run, fact: ExpressionFact, *alike: ExpressionFact) -> Finding:
    name = fact.names[0] if fact.names else ""
    known = len(fact.shapes) > 1
    sizes = f"{fact.shapes[0]} to {fact.shapes[1]}" if known else "its own sizes to another order"
    sides = zip(("before", "after"), fact.shapes, strict=False)
    return Finding(
        message=(
            f"`{fact.text}` takes `{name}` from {sizes} without moving a number, so "
            f"{_mixed_up(*fact.shapes[:2])} are mixed{f' in `{fact.target}`' if fact.target else ''}; "
            f"swapping axes takes `permute` or `transpose`."
            f"{_also(alike)}"
        ),
        subject=fact.target or name,
        fix="\n".join(_fix(run, one, (*one.names, "")[0]) for one in (fact, *alike)),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=tuple(Evidence(label, str(shape)) for label, shape in sides),
        severity="" if fact.sure else "hint",
    )


def _also(alike: tuple[ExpressionFact, ...]) -> str:
    names = " and ".join(f"`{one.names[0]}`" for one in alike if one.names)
    return f" So {'are' if len(alike) > 1 else 'is'} {names}." if names else ""


def _fix(run: Run, fact: ExpressionFact, name: str) -> str:
    name = receiver(name)
    if fact.detail:
        return instead(run, fact.place, fact.text, f"{name}.{fact.detail}")
    if len(fact.shapes) > 1 and len(fact.shapes[0]) != len(fact.shapes[1]):
        return instead(run, fact.place, fact.text, name + _instead(fact.shapes[0], fact.shapes[1], _written(fact)))
    order = _order(*fact.shapes[:2])
    if order:
        return instead(run, fact.place, fact.text, f"{name}.permute({order})")
    return instead(run, fact.place, fact.text, f"{name}.permute(…)", "the axes in the order that is wanted")


def _order(before: Shape = (), after: Shape = ()) -> str:
    """Where each axis was before, as arguments of `permute`; sizes that are equal stay in their order."""
    left, order = list(enumerate(before)), []
    for size in after:
        axis = next((axis for axis, one in left if one == size), None)
        if axis is None:
            return ""
        left.remove((axis, size))
        order.append(str(axis))
    return "" if left else ", ".join(order)


def _written(fact: ExpressionFact) -> tuple[str, ...]:
    """The sizes of a view as written; empty where each of them does not stand for itself."""
    sizes = sizes_written(fact.text)
    return sizes if len(fact.shapes) > 1 and len(sizes) == len(fact.shapes[1]) else ()


def _instead(before: Shape, after: Shape, sizes: tuple[str, ...] = ()) -> str:
    """What brings a tensor to those sizes, or to the same as written, with every number in its place."""
    sizes = sizes or tuple(map(str, after))
    whole = ", ".join(sizes)
    if order := order_by_sizes(before, after):
        return f".{moved(order, before, after, sizes)}"
    if len(before) == _STATES >= len(after):
        return _merged(before, after, whole)
    if len(before) == _CLIPS or len(after) == _ROWS:
        return f"{'.transpose(1, 2)' if len(before) == _CLIPS else '.movedim(1, -1)'}.reshape({whole})"
    if len(after) < len(before):
        return ".transpose(1, 2).flatten(2)" if is_merged(before, after) else ".flatten(2).transpose(1, 2)"
    if len(after) != len(_HEADS):
        return ".permute(…)  # the axes in the order that is wanted"
    batch, count, time, size = sizes
    return f".view({batch}, {time}, {count}, {size}).transpose(1, 2)"


def _crossed(sizes: tuple[object, ...]) -> str:
    """What puts the axis between the two that are merged behind them."""
    return f".permute(0, 1, 3, 2).reshape({', '.join(map(str, sizes))})"


def _merged(before: Shape, after: Shape, sizes: str) -> str:
    """The layers of a state of one sample, or the classes of one step, put side by side."""
    layers, batch, size = before
    axes = "0, 1" if (batch, layers * size) == after[:2] else "1, 2"
    return f".transpose({axes}).reshape({sizes})"


def _mixed_up(before: Shape = (), after: Shape = ()) -> str:
    if len(before) != len(_HEADS):
        return _PLAIN
    first, second, third, last = before
    swapped = after in ((first, third, second, last), (first, third, second * last))
    return "positions and heads" if swapped else _PLAIN


def _mixed(before: Shape, after: Shape) -> str:
    if len(before) == _CLIPS and before[1] == after[1]:
        return "channels and frames"
    if len(before) == len(after) and before[0] == after[0]:
        apart = [str(axis) for axis, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
        return f"the axes {' and '.join(apart)}"
    if is_merged(before, after):
        return "the axes 1 and 2"
    if after[:1] == before[1:2] and len(before) == _STATES:
        return "samples and layers or steps"
    return "samples and steps" if len(after) >= len(before) else "channels and places"


def _in_graph(run: Run, pattern: PatternFact, root: str, place: Place) -> Finding:
    before, after = pattern.shapes[:2]
    again = [one for one in viewed_again(run) if _leads(one, before, after)]
    cut = None if again else cut_to(run, after)
    where = again[0].place if again else cut.place if cut is not None else place
    maker = pattern.nodes[1].removesuffix("0").removesuffix("Backward") if len(pattern.nodes) > 1 else ""
    return Finding(
        message=(
            f"On the way to {f'`{root}`' if root else 'the loss'}, {_taken(again, cut, maker)} "
            f"from {before} to {after} without moving a number: {_mixed(before, after)} "
            "are mixed; swapping axes takes `permute` or `transpose`."
        ),
        subject=again[0].name if again else cut.name if cut is not None and cut.name.isidentifier() else root,
        fix="\n".join(dict.fromkeys(_turned(run, one) for one in again))
        or _fix_of_cut(run, cut, before, after)
        or _fix_in_graph(before, after),
        line=where.line,
        cell=where.cell,
        evidence=(Evidence("before", str(before)), Evidence("after", str(after))),
        severity="hint" if is_recut(before, after) or _may_be_groups(run, pattern) or _is_stacked(run, pattern) else "",
    )


def _may_be_groups(run: Run, pattern: PatternFact) -> bool:
    """True for maps of which groups of channels, or of the numbers of a row, come to the same sizes."""
    before, after = pattern.shapes[:2]
    of_heads = any("Bmm" in name or "DotProduct" in name for name in pattern.nodes)
    merged = is_merged(before, after) and before[1] % before[2] == 0 and not of_heads
    return merged or rows_cut(run, pattern) is Cause.READER


def _is_stacked(run: Run, pattern: PatternFact) -> bool:
    """True where the layers in front may be rows that were put there by hand, to be paired."""
    before, after = pattern.shapes[:2]
    sources = (past.cell.source for past in (run, *run.earlier))
    return len(before) > len(after) and any("torch.stack(" in source for source in sources)


def _fix_in_graph(before: Shape, after: Shape) -> str:
    state = len(before) == _STATES and after[:2] == (before[1], before[0] * before[2])
    if len(after) != len(before) or state:
        return f"# {_instead(before, after)} in place of the view"
    if is_crossed(before, after):
        return f"# {_crossed(after)} in place of the view"
    apart = [axis for axis, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
    if len(apart) == 2:  # noqa: PLR2004
        return f"# .transpose({apart[0]}, {apart[1]}) in place of the view"
    return f"# .permute({_order(before, after) or '…'}) in place of the view"


def _fix_of_cut(run: Run, cut: Cut | None, before: Shape, after: Shape) -> str:
    """The statement of a view with the axes moved: into heads as written, or two of the axes."""
    apart = [axis for axis, (one, two) in enumerate(zip(before, after, strict=False)) if one != two]
    if cut is None:
        return ""
    sizes = cut.sizes if len(cut.sizes) == len(after) else tuple(map(str, after))
    if len(before) != len(after) and (order := order_by_sizes(before, after)):
        return in_statement(run, cut.place, cut.text, f"{cut.name}.{moved(order, before, after, sizes)}")
    if is_crossed(before, after):
        return in_statement(run, cut.place, cut.text, f"{cut.name}{_crossed(sizes)}")
    if len(before) == len(after) and len(apart) == 2 and before[apart[0]] == after[apart[1]]:  # noqa: PLR2004
        return in_statement(run, cut.place, cut.text, f"{cut.name}.transpose({apart[0]}, {apart[1]})")
    if len(after) == len(_HEADS) == len(cut.sizes) and len(before) == _STATES and before[1] == after[2]:
        batch, count, time, size = cut.sizes
        new = f"{cut.name}.view({batch}, {time}, {count}, {size}).transpose(1, 2)"
        return in_statement(run, cut.place, cut.text, new)
    return ""


def _taken(again: list[Viewed], cut: Cut | None, maker: str) -> str:
    if again:
        return f"`{again[0].text}` takes `{again[0].name}`"
    made = maker if maker and "View" not in maker else "an operation"
    return f"{f'`{cut.text}`' if cut is not None else 'a `view`'} takes the output of {made}"


def _leads(viewed: Viewed, before: Shape, after: Shape) -> bool:
    return len(viewed.order) == len(before) and tuple(before[axis] for axis in viewed.order) == after


def _turned(run: Run, viewed: Viewed) -> str:
    """The statement of a view with the axes moved."""
    apart = [axis for axis, old in enumerate(viewed.order) if axis != old]
    moved = f"transpose({apart[0]}, {apart[1]})" if len(apart) == 2 else f"permute{viewed.order}"  # noqa: PLR2004
    return instead(run, viewed.place, viewed.text, f"{viewed.name}.{moved}")


def _given(run: Run, call: ForwardFact) -> Finding:
    before, after = call.recut[:2]
    name = run.name_of(call)
    cut = cut_to(run, after)
    place = cut.place if cut is not None else call.place
    return Finding(
        message=(
            f"`{name}` is given a tensor that {f'`{cut.text}`' if cut is not None else 'a `view`'} took from {before} "
            f"to {after} without moving a number, so rows "
            "and channels are mixed; swapping axes takes `permute` or `transpose`."
        ),
        subject=name,
        fix=_fix_of_cut(run, cut, before, after) or f"# .permute({_order(before, after) or '…'}) in place of .view(…)",
        line=place.line,
        cell=place.cell,
        evidence=(Evidence("before", str(before)), Evidence("after", str(after))),
    )
