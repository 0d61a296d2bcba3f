"""A batch with one value per channel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, LayerFact, LoaderFact, Run, looped_over
from torch_inspector.facts.loader_anew import loader_with
from torch_inspector.facts.part_names import typed
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"Expected more than 1 value per channel when training, got input size \D*([\d, ]*\d)")
_ONE_PLACE = re.compile(r"Expected more than 1 spatial element when training, got input size \D*(\d+), *(\d+)([\d, ]*)")

# What a cell calls that trains, or would if it came so far.
_TRAINS = re.compile(r"\.(backward|step|zero_grad|fit)\(")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the error with which BatchNorm refuses such a batch in train mode, and InstanceNorm maps of one place."""
    error = run.error
    if error is not None and (places := _ONE_PLACE.search(error.message)) is not None:
        yield _of_maps(error, places)
        return
    match = _REFUSED.search(error.message) if error is not None else None
    # A layer without statistics is the subject of another pitfall; GroupNorm speaks of channels too.
    if error is None or match is None or (error.layer is not None and not _is_batch_norm(error.layer)):
        return
    yield _finding(run, error, f"({match[1]}{',' if ',' not in match[1] else ''})")


def _of_maps(error: ErrorFact, sizes: re.Match[str]) -> Finding:
    """A hint, as torch has said what is wrong: no batch is too small here."""
    layer, channels = error.layer, sizes[2]
    name = (layer.root or layer.root_kind) if layer is not None else ""
    path = _typed(layer) if layer is not None else ""
    path = f"{layer.root_kind}.{layer.path}" if layer is not None and layer.path and not layer.root else path
    who = f"`{path or name}`" if path or name else "InstanceNorm"
    shape = f"({sizes[1]}, {channels}{sizes[3].rstrip(', ')})"
    return Finding(
        message=(
            f"{who} got one value per channel of each sample, {shape}: InstanceNorm takes mean and variance over the "
            "places of one map, and here each map has one place; more samples change nothing."
        ),
        subject=path or name,
        fix=_of_one_sample(error, sizes),
        line=error.place.line,
        cell=error.place.cell,
        severity="hint",
        evidence=(Evidence("shape at the layer", shape),),
    )


def _of_one_sample(error: ErrorFact, sizes: re.Match[str]) -> str:
    """What takes the place of the InstanceNorm: statistics over all channels of a sample, where it has several."""
    layer, channels = error.layer, int(sizes[2])
    none = "or none where the maps have one place"
    if channels == 1:
        return "leave the normalisation out there: each sample has one number"
    if layer is None or "InstanceNorm" not in layer.family:
        return f"nn.functional.group_norm(x, 1)  # in place of instance_norm(x), {none}"
    if layer.got is not None and len(layer.got) == len(sizes[0].rpartition("[")[2].split(",")):
        return f"nn.GroupNorm(1, {channels})  # in place of that layer, {none}"
    batch = f"nn.Unflatten(0, (1, {channels})), nn.GroupNorm(1, {channels}), nn.Flatten(0, 1)"
    return f"nn.Sequential({batch})  # in place of that layer, as the input has no batch axis; {none}"


def _is_batch_norm(layer: LayerFact) -> bool:
    return layer.tracks and "GroupNorm" not in layer.kind and "InstanceNorm" not in layer.kind


def _finding(run: Run, error: ErrorFact, shape: str) -> Finding:
    layer = error.layer
    name = (layer.root or layer.root_kind) if layer is not None else ""
    who = f"`{name}`" if name else "BatchNorm"
    path = _typed(layer) if layer is not None else ""
    where = f"layer `{path}` ({layer.kind})" if layer is not None and path else "the layer"
    return Finding(
        message=f"{who} got a batch with one value per channel in train mode: {where} received {shape}.",
        subject=name,
        fix=_fix(run, error, name),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(
            Evidence("shape at the layer", shape),
            *((Evidence("layer", f"{path or name} ({layer.kind})"),) if layer is not None else ()),
            *(
                Evidence("batches of the loader before", f"{loader.batch_count} of {loader.batch_size}")
                for loader in run.trace.loaders[-1:]
            ),
        ),
    )


def _typed(layer: LayerFact) -> str:
    """`seg.pool[2]` for a layer of `seg`; empty for the whole module."""
    return typed(f"{layer.root}.{layer.path}".lstrip(".")) if layer.path else ""


def _dropped(run: Run, loader: LoaderFact) -> str:
    """The loader as it should be made, by its name where the loop has one."""
    name = looped_over(run, loader.place)
    whose = f"for {name}: its" if name.replace(".", "").isidentifier() else "the"
    made = loader_with(run, loader.place, name, loader.batch_size, drop_last=True)
    return f"{made}  # {whose} last batch had one sample"


def _fix(run: Run, error: ErrorFact, name: str) -> str:
    """For training, batches without a rest of one; for a single question, eval mode."""
    texts = {run.cell.code, run.source_of(error.place.cell)}
    if not run.trace.steps and not run.trace.backwards and not any(_TRAINS.search(text) for text in texts):
        return f"{name or 'model'}.eval()  # before asking about one sample; to train, give it batches of two or more"
    sizes = [loader.batch_size for loader in run.trace.loaders]
    if sizes and sizes[-1] != 1:
        return _dropped(run, run.trace.loaders[-1])
    if run.trace.steps:
        return "leave the last batch of one sample out, or choose another batch size"
    return "train on batches of two samples or more; or take nn.GroupNorm there, which does not look at the batch"
