"""A layer that was built for an input of another size."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt, prod

from torch_inspector.facts import ErrorFact, LayerFact, OperandFact, Run, Shape, assigned, in_scope
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# The setting that says what a layer takes, and the axis in which it looks for it: counted from the end, or with the
# axes of places behind it.
_SIZES = {
    "Linear": "in_features",
    "Embedding": "num_embeddings",
    "LSTM": "input_size",
    "GRU": "input_size",
    "RNN": "input_size",
    "LayerNorm": "normalized_shape",
    "MultiheadAttention": "embed_dim",
    **dict.fromkeys(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"], "num_features"),
    **{f"Conv{kind}{n}d": "in_channels" for kind in ("", "Transpose") for n in (1, 2, 3)},
}
_BY_POSITION = frozenset(
    [*_SIZES.values(), "num_heads", "out_features", "out_channels", "hidden_size", "embedding_dim", "kernel_size"]
)
_RGBA, _RGB = 4, 3
# Messages about a batch of one, and about the state of a recurrent layer.
_OTHERS = ("value per channel", "Expected hidden")
# What the layers of torch's transformers call their attention.
_OF_TRANSFORMERS = ("self_attn", "multihead_attn")
# Axes of rows of features, of a batch of pictures, and the most that a normalisation takes.
_ROWS, _PICTURES, _MOST = 2, 4, 5


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the layer behind the error, what it was built for and what it got."""
    error = run.error
    layer = error.layer if error is not None else None
    if error is None or layer is None or layer.got is None or any(text in error.message for text in _OTHERS):
        return
    wants = _wanted(layer)
    if wants is None:
        return
    given = _operand(error, layer.got)
    told = _of_table if layer.family == "Embedding" else _of_size
    message, fix = told(layer, wants, layer.got, given)
    if message:
        yield Finding(
            message=message,
            subject=_name(layer),
            fix=in_scope(run, error.place, fix, once=True),
            line=error.place.line,
            cell=error.place.cell,
            evidence=tuple(_evidence(layer)),
        )


def _wanted(layer: LayerFact) -> int | None:
    size = dict(layer.settings).get(_SIZES.get(layer.family, ""), "")
    return int(size) if size.isdigit() else None


def _evidence(layer: LayerFact) -> Iterator[Evidence]:
    built = _built(layer) if layer.maker else f"{layer.kind}, built as {_built(layer)}"
    yield Evidence("layer", f"{_name(layer)} = {built}")
    yield Evidence("shape of its input", str(layer.got))
    if layer.extremes is not None:
        yield Evidence("numbers in its input", f"{layer.extremes[0]} to {layer.extremes[1]}")


def _operand(error: ErrorFact, shape: Shape) -> OperandFact | None:
    """The variable that was given to the layer: the one of that shape."""
    fitting = [one for one in error.operands if one.kind == "tensor" and one.shape == shape]
    return min(fitting, key=lambda one: one.nested, default=None)


def _name(layer: LayerFact) -> str:
    """`net.body[0]`; the class, if there is no other name for the module."""
    parts = (f"[{part}]" if part.isdigit() else f".{part}" for part in layer.path.split(".") if part)
    return (layer.root or layer.root_kind) + "".join(parts)


def _is_own(layer: LayerFact) -> bool:
    """True for a class of the user's, or of a library, that inherits from the one of torch."""
    return layer.maker != f"nn.{layer.family}"


def _built(layer: LayerFact, size: int | None = None, family: str = "") -> str:
    """The constructor's call, with another size of the input; torch's for a class with a constructor of its own."""
    what = _SIZES[layer.family]
    given = ((name, str(size) if name == what and size is not None else text) for name, text in layer.settings)
    texts = (text if name in _BY_POSITION else f"{name}={text}" for name, text in given)
    maker = layer.maker or f"nn.{layer.family}"
    return f"{f'nn.{family}' if family else maker}({', '.join(texts)})"


def _sized(layer: LayerFact, size: int) -> str:
    return f"as {_built(layer, size)}" if layer.maker else f"with {_SIZES[layer.family]}={size}"


def _rebuilt(layer: LayerFact, size: int, family: str = "") -> str:
    """The statement that builds the layer for what it got, where its class does that, or else outside."""
    made = _built(layer, size, family)
    if not layer.maker:
        return f"{_SIZES[layer.family]}={size}  # what `{layer.kind}` has to give nn.{layer.family}"
    if layer.path.rpartition(".")[2] in _OF_TRANSFORMERS:
        return f"d_model={size}  # where the layer with `{layer.path}` is built; or bring the input to its size"
    if layer.owner:
        name = layer.path.rpartition(".")[2]
        target = f"self.{name}"
        return f"{target} = {made}  # in {layer.owner}.__init__"
    remark = "before the optimizer is made"
    return f"{_name(layer)} = {made}  # {remark}" if layer.root else f"{made}  # in place of {_built(layer)}"


def _of_table(layer: LayerFact, rows: int, shape: Shape, given: OperandFact | None) -> tuple[str, str]:
    """Message and fix for positions that a table does not have."""
    if layer.extremes is None:
        return "", ""
    low, high = layer.extremes
    what = f"`{given.path}`" if given is not None else f"an input of shape {shape}"
    odd = high if high >= rows else low
    message = f"`{_name(layer)}` has {rows} rows, numbered from 0 to {rows - 1}, and {what} asks for row {odd}."
    if high >= rows:
        return message, _rebuilt(layer, high + 1)
    return message, assigned(given.path, "{}.clamp(min=0)", "or give what is missing a row of its own") if given else ""


def _of_size(layer: LayerFact, wants: int, shape: Shape, given: OperandFact | None) -> tuple[str, str]:
    """Message and fix for an input of another size, or with other axes."""
    axis = _axis(layer, shape)
    what = f"`{given.path}` of shape {shape}" if given is not None else f"an input{_shaped(layer, shape)}"
    count = str(shape[axis]) if axis is not None else f"{len(shape)} axes"
    if axis is not None and shape[axis] == wants:
        return "", ""
    need = f"{wants} {_unit(layer)}" if axis is not None else f"an input of {_axes_wanted(layer)} axes"
    message = (
        f"`{_name(layer)}` ({layer.kind if _is_own(layer) else layer.family}) takes {need} and got {what}: {count}."
    )
    change = _change(layer, wants, shape)
    if change and given is not None:
        return message, assigned(given.path, *change)
    if axis is None:
        renamed = "BatchNorm" in layer.family and not _is_own(layer)
        family = f"{layer.family[:-2]}{len(shape) - 2 or 1}d" if renamed else ""
        fits = _ROWS <= len(shape) <= _MOST and family and shape[1] == wants
        return message, _rebuilt(layer, wants, family) if fits else "x.shape  # look at it before the layer"
    return message, _rebuilt(layer, shape[axis])


def _shaped(layer: LayerFact, shape: Shape) -> str:
    """The shape of an input that has no name; attention has turned its axes when it looks, and a GRU has added one."""
    return "" if layer.family in ("MultiheadAttention", "LSTM", "GRU", "RNN") else f" of shape {shape}"


def _unit(layer: LayerFact) -> str:
    channels = "Conv" in layer.family or "BatchNorm" in layer.family
    return "channels" if channels else "features in the last axis"


def _places(layer: LayerFact) -> int:
    """Axes of places: 2 for pictures."""
    return int(layer.family[-2])


def _axes_wanted(layer: LayerFact) -> str:
    places = _places(layer)
    return "2 or 3" if layer.family == "BatchNorm1d" else str(places + 2)


def _axis(layer: LayerFact, shape: Shape) -> int | None:
    """The axis that must have the size; None if the input has too few axes, or too many."""
    if "Conv" in layer.family:
        places = _places(layer)
        return len(shape) - places - 1 if len(shape) in (places + 1, places + 2) else None
    if "BatchNorm" in layer.family:
        fits = len(shape) in (2, 3) if layer.family == "BatchNorm1d" else len(shape) == _places(layer) + 2
        return 1 if fits else None
    return len(shape) - 1 if shape else None


def _change(layer: LayerFact, wants: int, shape: Shape) -> tuple[str, str] | tuple[()]:
    """What makes the input fit, and a remark; nothing if the layer is what has to change."""
    if "Conv" in layer.family:
        return _change_of_picture(_places(layer), wants, shape)
    if "BatchNorm" in layer.family:
        return ("{}.movedim(-1, 1)", "and back behind it") if len(shape) > _ROWS and shape[-1] == wants else ()
    if layer.family == "Linear" and len(shape) > _ROWS and prod(shape[1:]) == wants:
        return ("{}.flatten(1)", "")
    if layer.family == "Linear" and len(shape) == _PICTURES and wants not in shape[1:]:
        return ("{}.flatten(1)", f"and the layer {_sized(layer, prod(shape[1:]))}")
    others = [n for n, size in enumerate(shape[:-1]) if size == wants]
    return (f"{{}}.movedim({others[0]}, -1)", "") if len(others) == 1 and len(shape) > _ROWS else ()


def _change_of_picture(places: int, wants: int, shape: Shape) -> tuple[str, str] | tuple[()]:
    """The same for a convolution: where its channels are, or how they come about."""
    batched = len(shape) == places + 2
    if len(shape) == places + 1 and wants == 1:
        return ("{}.unsqueeze(1)", "an axis for the one channel")
    if len(shape) in (places + 1, places + 2) and shape[-1] == wants:
        return (f"{{}}.movedim(-1, {1 if batched else 0})", "channels before the places")
    return _change_of_colours(wants, shape) if places + 2 == _PICTURES else ()


def _change_of_colours(wants: int, shape: Shape) -> tuple[str, str] | tuple[()]:
    """The same for a batch of pictures with other channels, without them, or laid out in rows."""
    if len(shape) == _ROWS:
        return _unflattened(wants, shape)
    if wants != _RGB:
        return ()
    if len(shape) == _PICTURES - 1 and shape[0] != 1:
        return ("{}.unsqueeze(1).expand(-1, 3, -1, -1)", f"if it holds {shape[0]} gray pictures")
    if len(shape) == _PICTURES and shape[1] == 1:
        return ("{}.expand(-1, 3, -1, -1)", "gray as three channels; or a layer of one")
    return ("{}[:, :3]", "without the transparency") if shape[1:2] == (_RGBA,) else ()


def _unflattened(channels: int, shape: Shape) -> tuple[str, str] | tuple[()]:
    """Rows of numbers as square pictures; one picture as a batch of one."""
    side = isqrt(shape[1] // channels)
    if side * side * channels == shape[1] and side > 1 and shape[0] != shape[1]:
        return (f"{{}}.reshape(-1, {channels}, {side}, {side})", "")
    return ("{}[None, None]", "a batch of one picture") if channels == 1 else ()
