"""A `view` or `reshape` to the same sizes in another order: it re-cuts the numbers, where axes were to be swapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, PatternFact, Shape, is_crossed, is_merged, is_recut
from torch_inspector.facts.reordered import is_cut_between, is_in_order, moved, of_arrays, order_by_sizes
from torch_inspector.facts.worked_out import names_worked_out
from torch_inspector.observe import private
from torch_inspector.observe.apart import is_classes, is_convolution, is_frames, is_stacked, is_state, maker_of
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.features import read_as_features, reader_of_channels
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.heads import merged_heads
from torch_inspector.observe.merged_past import merged_past
from torch_inspector.observe.orderless import asks_shape, is_drawn, is_reduced
from torch_inspector.observe.own_axes import axis_of, order_of
from torch_inspector.observe.private import Node
from torch_inspector.observe.ran import compared_value, surely_ran
from torch_inspector.observe.recut import AXES, array_sizes_before, is_shuffled, sizes_before
from torch_inspector.observe.same_numbers import shown_by
from torch_inspector.observe.shapes import Sized, is_array, is_tensor, of_array
from torch_inspector.observe.skewed import is_skewed, may_be_skewed
from torch_inspector.observe.softmax import parents_of
from torch_inspector.observe.statements import stores_in, target_of

SHUFFLED = "shuffled"

_METHODS = frozenset(["view", "reshape"])
_NODES = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
_LOGARITHM = "LogSoftmaxBackward0"
# With four no other cut of the same numbers comes to the same sizes by chance.
_MANY = 4


def _may_be_split(before: Shape, after: Shape) -> bool:
    """True where four sizes may come out by chance: channels as many as places, split in two as for capsules."""
    batch, *axes = before
    return len(before) == _MANY and batch == after[0] and prod(axes) == max(axes) ** 2


def is_regrouped(before: Shape, after: Shape) -> bool:
    """True for (batch, time, features) cut into (batch, heads, time, size): each head gets a part of the time."""
    if len(before) != 3 or len(after) != 4 or before[0] != after[0] or before[1] != after[2]:  # noqa: PLR2004
        return False
    _, time, features = before
    _, heads, _, size = after
    return heads * size == features and min(heads, size, time) > 1 and time not in (heads, features)


def is_spread(before: Shape, after: Shape) -> bool:
    """True for (batch, height * width, channels) cut into (batch, channels, height, width): the reverse."""
    if len(before) != 3 or len(after) != 4 or before[0] != after[0]:  # noqa: PLR2004
        return False
    _, places, channels = before
    _, first, height, width = after
    # Channels as many as a part is wide may be places that were cut into parts.
    return first == channels and min(channels, height, width) > 1 and channels not in (places, height, width)


def _leads_apart(before: Shape, after: Shape) -> bool:
    """True for clips (batch, time, height, width, channels) cut into (batch * time, channels, …), or back."""
    more, less = (before, after) if len(before) > len(after) else (after, before)
    if len(less) != _MANY or len(more) != _MANY + 1 or 1 in (*more, *less):
        return False
    whole = (prod(more[:2]), *more[2:])
    return whole[0] == less[0] and is_shuffled(whole, less, _MANY) and not _may_be_split(whole, less)


def is_turned(before: Shape, after: Shape) -> bool:
    """True for (batch, channels, height, width) cut into (batch, height * width, channels), each from other places."""
    if len(before) != 4 or len(after) != 3:  # noqa: PLR2004
        return False
    batch, channels, height, width = before
    places = height * width
    # Heads as many as each is wide may be merged with the time, which comes to the same sizes.
    return after == (batch, places, channels) and min(places, channels) > 1 and channels not in (places, width)


def reshapes(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A tensor that the text brings to its own sizes in another order."""
    source, sizes = _parts(node)
    if source is None or not sizes or asks_shape(node, statement):
        return
    value = scope.names.value(source)
    shape = _shape(value)
    after = _sizes(scope, sizes, shape) if shape is not None and -1 not in shape else None
    if shape is None:
        shape, after = _of_itself(scope, source, statement) or (None, None)
    names = (ast.unparse(source),)
    if shape is None or after is None:
        yield from _of_image(scope, node, statement, source, sizes)
        if _swaps(scope, source, sizes) and _matters(scope, node, statement):
            yield scope.fact(SHUFFLED, node, statement, names=names, sure=False)
        return
    found = _crossed(scope, source, sizes, shape, after) if prod(shape) else None
    if found is None or may_be_skewed(scope, source, shape, after) or is_drawn(source):
        return
    if _matters(scope, node, statement):
        detail, sure = found
        detail = of_arrays(detail) if _is_of_arrays(scope, source) else detail
        # What a model learns has no order of its own, unless it was given one.
        sure = sure and type(value) is not torch.nn.Parameter
        yield scope.fact(SHUFFLED, node, statement, names=names, shapes=(shape, after), detail=detail, sure=sure)


def _matters(scope: Scope, node: ast.AST, statement: ast.stmt) -> bool:
    """True for a view that surely ran, as another may stand for other sizes, and of which the order tells something."""
    return not is_reduced(scope.node, node) and surely_ran(scope, node, statement, compared_value)


def _crossed(
    scope: Scope, source: ast.expr, sizes: list[ast.expr], shape: Shape, after: Shape
) -> tuple[str, bool] | None:
    """The calls that move the axes, if they are known, and whether the sizes or the text leave no doubt."""
    swaps, written = _swaps(scope, source, sizes), list(map(ast.unparse, sizes))
    least = 2 if swaps else AXES if _plain(scope, sizes) else _MANY
    if is_shuffled(shape, after, least) and not (least == _MANY and _may_be_split(shape, after)):
        return _swap(shape, after, written), swaps or not is_recut(shape, after)
    if _is_mixed(shape, after):
        return "", True
    order = order_of(scope, source, sizes, len(shape))
    if order and not is_in_order(order, shape) and not is_cut_between(shape, after):
        return moved(order, shape, after, written), True
    if is_spread(shape, after):
        return f"transpose(1, 2).reshape({', '.join(written)})", True
    if _leads_apart(shape, after):
        return moved(order_by_sizes(shape, after), shape, after, written), True
    detail = merged_heads(scope, source, shape, after, written)
    detail = detail or merged_past(sizes, [axis_of(scope, source, size) for size in sizes], shape, after)
    return (detail, True) if detail else None


def _of_image(
    scope: Scope, node: ast.AST, statement: ast.stmt, source: ast.expr, sizes: list[ast.expr]
) -> Iterator[ExpressionFact]:
    """`torch.from_numpy(image).float().reshape(c, h, w)`, where `h, w, c` are the image's own sizes."""
    image, of_torch = shown_by(source)
    value = scope.names.value(image)
    shape = _shape(value) if image is not source else None
    axes = [axis for size in sizes if (axis := axis_of(scope, image, size)) is not None] if shape is not None else []
    if shape is None or sorted(axes) != list(range(len(shape))) or -1 in shape or len(sizes) != len(axes):
        return
    after = tuple(shape[axis] for axis in axes)
    if is_shuffled(shape, after, 2) and _matters(scope, node, statement):
        method = "transpose" if is_array(value) and not of_torch else "permute"
        detail = f"{method}({', '.join(map(str, axes))})"
        yield scope.fact(SHUFFLED, node, statement, names=(ast.unparse(source),), shapes=(shape, after), detail=detail)


def _is_mixed(before: Shape, after: Shape) -> bool:
    return is_regrouped(before, after) or is_turned(before, after) or is_frames(before, after)


def _of_itself(scope: Scope, source: ast.expr, statement: ast.stmt) -> tuple[Shape, Shape] | None:
    """Sizes of a variable before and after the statement that last gives it a view of itself, if they are shuffled."""
    name = source.id if isinstance(source, ast.Name) else ""
    stores = stores_in(scope.node).get(name, ())
    if scope.function or name != target_of(statement) or not stores or max(stores) != statement.lineno:
        return None
    value: Any = scope.reading.names.get(name)
    before = sizes_before(value) if is_tensor(value) else array_sizes_before(value) if is_array(value) else None
    return (before, tuple(value.shape)) if before is not None else None


def _shape(value: Any) -> Shape | None:
    """Shape of a tensor or of an array of NumPy's own class; None for numbers and strangers."""
    sized = of_array(value)
    return sized.shape if type(sized) is Sized and sized.shape else None


def _plain(scope: Scope, sizes: list[ast.expr]) -> bool:
    """True if every size is written as it is: `-1` and `batch * heads` cut anew, and may come to the old sizes.

    So does a name that stands for a product or a quotient.
    """
    trees = [file.tree for file in (scope.file, *scope.reading.places.latest()) if file.tree is not None]
    made = names_worked_out(scope.node, trees)
    worked_out = (ast.BinOp, ast.UnaryOp, ast.Starred)
    return not any(isinstance(size, worked_out) or ast.unparse(size) in made for size in sizes)


def _parts(node: ast.AST) -> tuple[ast.expr | None, list[ast.expr]]:
    """What is reshaped, and the sizes as written."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _METHODS:
        return None, []
    source, sizes = node.func.value, list(node.args)
    if isinstance(source, ast.Name) and source.id in {"torch", "np", "numpy"}:
        source, sizes = (sizes[0], sizes[1:]) if sizes else (source, [])
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = list(sizes[0].elts)
    return source, sizes


def _sizes(scope: Scope, sizes: list[ast.expr], shape: Shape) -> Shape | None:
    """The sizes as numbers; one -1 is what is left."""
    values = [scope.names.value(size) for size in sizes]
    if any(type(value) is not int for value in values):
        return None
    total, known = prod(shape), prod([n for n in values if n != -1])
    if values.count(-1) > 1 or not known or total % known:
        return None
    return tuple(total // known if n == -1 else n for n in values)


def _swaps(scope: Scope, source: ast.expr, sizes: list[ast.expr]) -> bool:
    """True if the text itself says that the sizes are the tensor's own, in another order.

    `n, h, w, c = x.shape` and then `x.view(n, c, h, w)`, `x.view(x.shape[1], x.shape[0])`, or
    `x.view(x.size(1), x.size(0), -1)`, where what is left are the axes behind.
    """
    axes = [axis_of(scope, source, size) for size in (sizes[:-1] if ast.unparse(sizes[-1]) == "-1" else sizes)]
    known = [axis for axis in axes if axis is not None]
    if len(known) < 2 or len(known) < len(axes) or len(set(known)) < len(known):  # noqa: PLR2004
        return False
    # Of sizes that are not known, the axes stand for them.
    return known != sorted(known) and not may_be_skewed(scope, source, tuple(sorted(known)), tuple(known))


def _swap(before: Shape, after: Shape, sizes: list[str]) -> str:
    """The method that gives the new sizes, `permute(0, 3, 1, 2)`; empty where two are of one size."""
    if len(before) != len(after):
        return moved(order_by_sizes(before, after), before, after, sizes)
    if len(set(before)) != len(before):
        return ""
    return f"permute({', '.join(str(before.index(n)) for n in after)})"


def _is_of_arrays(scope: Scope, source: ast.expr) -> bool:
    name = source.id if isinstance(source, ast.Name) else ""
    return is_array(scope.names.value(source)) or is_array(scope.reading.names.get(name))


def shuffled(walk: Walk) -> Iterator[PatternFact]:
    """The same in a graph, where a view brings an output to its own sizes in another order."""
    for kind in _NODES:
        for node in walk.by_kind.get(kind, ()):
            before, after = _input_shape(node), private.output_shape(node)
            if before is None or after is None or is_skewed(node, before, after):
                continue
            if _is_mixed(before, after) or _is_apart(walk, node, before, after):
                # Of maps that are cut across their rows, what takes the result for features tells more than the sizes.
                reader = reader_of_channels(walk, node, after) if is_crossed(before, after) else ""
                nodes = (kind, _maker(node), reader) if reader else (kind, _maker(node))
                yield PatternFact(SHUFFLED, nodes, (before, after))
            # Attention cuts (time, batch, features) into (time, batch * heads, size), which may be the same sizes.
            elif not is_shuffled(before, after) or _may_be_split(before, after):
                continue
            elif len(before) >= _MANY or before[0] != after[0]:
                yield PatternFact(SHUFFLED, (kind, _maker(node)), (before, after))


def _is_apart(walk: Walk, node: Node, before: Shape, after: Shape) -> bool:
    """True for a state of layers, or the scores of a convolution that a loss reads: both say what their axes are."""
    made = parents_of(node)[0]
    if is_crossed(before, after):
        return is_convolution(maker_of(made, before))
    if is_merged(before, after):
        maker = maker_of(made, before)
        return bool(maker) and (not is_convolution(maker) or read_as_features(walk, node, after))
    if is_state(before, after):
        return is_stacked(made)
    made = parents_of(made)[0] if type(made).__name__ == _LOGARITHM and made is not None else made
    if type(made).__name__ != "ConvolutionBackward0" or not is_classes(before, after):
        return False
    given = [parents_of(one)[0] for one in walk.by_kind.get("NllLossBackward0", ())]
    given += [parents_of(one)[0] for one in given if type(one).__name__ == _LOGARITHM and one is not None]
    return any(one is node for one in given)


def _input_shape(node: Node) -> Shape | None:
    parent, number = node.next_functions[0]
    if parent is None or private.is_leaf_node(parent):
        return None
    return private.output_shape(parent, number)


def _maker(node: Node) -> str:
    parent = parents_of(node)[0]
    if type(parent).__name__ in _NODES:  # as `nn.Linear` brings its result to the shape of its input
        parent = parents_of(parent)[0]
    return type(parent).__name__ if parent is not None else ""
