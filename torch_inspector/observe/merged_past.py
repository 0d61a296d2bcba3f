"""Views in which -1 merges axes that do not lie side by side, past one that keeps its name: `x.view(b, -1, h)`."""

from __future__ import annotations

import ast

from torch_inspector.facts import Shape


def merged_past(sizes: list[ast.expr], axes: list[int | None], before: Shape, after: Shape) -> str:
    """What brings a tensor to such sizes with every number in its place; empty if it is another view.

    Args:
        sizes: Those of the view, as written.
        axes: Which axis of the tensor each of them is, as far as the text says so.
        before: Sizes of the tensor.
        after: Sizes of the view.
    """
    texts = [ast.unparse(one) for one in sizes]
    if texts.count("-1") != 1 or len(sizes) != len(after):
        return ""
    if axes[0] is None and after[0] == before[0] and texts[0] != "-1":
        axes = [0, *axes[1:]]
    kept = [axis for axis in axes if axis is not None]
    told = all(axis is not None or text in ("-1", "1") for axis, text in zip(axes, texts, strict=True))
    if not told or not kept or kept != sorted({*kept}):
        return ""
    if max(kept) >= len(before) or _is_side_by_side(before, after):
        return ""
    merged = [axis for axis in range(len(before)) if axis not in kept]
    order = [one for axis, text in zip(axes, texts, strict=True) for one in (merged if text == "-1" else [axis])]
    moved = ", ".join(str(one) for one in order if one is not None)
    return f"permute({moved}).reshape({', '.join(texts)})"


def _is_side_by_side(before: Shape, after: Shape) -> bool:
    """True if each size of the view is an axis, or several side by side, as the sizes alone would have it."""
    left = [n for n in before if n != 1]
    for size in (n for n in after if n != 1):
        product = 1
        while left and product < size:
            product *= left.pop(0)
        if product != size:
            return False
    return not left
