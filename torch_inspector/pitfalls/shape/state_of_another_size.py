"""A recurrent layer that was given a state for another batch, or of another size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import ErrorFact, LayerFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(
    r"^Expected hidden(?:\[(?P<part>[01])\])? size \((?P<wanted>[\d, ]+)\), got \[(?P<got>[\d, ]+)\]"
    r"|^Expected hidden size \((?P<wanted2>[\d, ]+)\), got \((?P<got2>[\d, ]+)\)"
)
_STATES = 3
"""Axes of a state: layers, batch, features."""
_BATCH = 1


class _Sizes(NamedTuple):
    wanted: tuple[int, ...]
    got: tuple[int, ...]

    def apart(self) -> list[int]:
        """Axes along which they differ."""
        pairs = zip(self.wanted, self.got, strict=False)
        return [axis for axis, (one, other) in enumerate(pairs) if one != other]


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the state that was refused, and along which axis."""
    error = run.error
    sizes = _sizes(error) if error is not None and error.kind == "RuntimeError" else None
    if error is None or sizes is None:
        return
    layer = error.layer
    name, state = _name(layer), _state(error, sizes)
    yield Finding(
        message=f"{_quoted(name)} got a state of shape {sizes.got}{_of(state)}{_because(sizes)}.",
        subject=state or name,
        fix=_fix(error, layer, sizes, name),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("state wanted", str(sizes.wanted)), Evidence("state given", str(sizes.got))),
    )


def _sizes(error: ErrorFact) -> _Sizes | None:
    told = _REFUSED.match(error.message)
    if told is None:
        return None
    wanted, got = told["wanted"] or told["wanted2"], told["got"] or told["got2"]
    return _Sizes(*(tuple(int(one) for one in text.split(",") if one.strip()) for text in (wanted, got)))


def _name(layer: LayerFact | None) -> str:
    if layer is None:
        return ""
    return f"{layer.root}.{layer.path}" if layer.root and layer.path else layer.root or layer.kind


def _state(error: ErrorFact, sizes: _Sizes) -> str:
    """The variable that holds the state."""
    return next((one.path for one in error.operands if one.shape == sizes.got), "")


def _quoted(name: str) -> str:
    return f"`{name}`" if name else "The layer"


def _of(state: str) -> str:
    return f" (`{state}`)" if state else ""


def _because(sizes: _Sizes) -> str:
    apart = sizes.apart()
    if apart == [_BATCH] and len(sizes.wanted) == len(sizes.got) == _STATES:
        return f", for a batch of {sizes.got[_BATCH]}, and reads its input as a batch of {sizes.wanted[_BATCH]}"
    return f", and takes {sizes.wanted}: layers times directions, batch, features"


def _fix(error: ErrorFact, layer: LayerFact | None, sizes: _Sizes, name: str) -> str:
    if sizes.apart() != [_BATCH] or len(sizes.got) != _STATES:
        return f"torch.zeros{sizes.wanted}  # in place of the state; or leave it out, torch begins with zeros"
    turned = (sizes.got[_BATCH], sizes.wanted[_BATCH])
    inputs = [one.shape for one in error.operands if one.shape is not None and one.shape != sizes.got]
    if name and layer is not None and layer.root and any(one[:2] == turned for one in inputs):
        return f"{name}.batch_first = True  # the input has the batch on its first axis; better where it is built"
    return _without_state(error)


def _without_state(error: ErrorFact) -> str:
    """The call without the state."""
    call = syntax.expression(error.expression)
    if isinstance(call, ast.Call) and len(call.args) == 2 and not call.keywords:  # noqa: PLR2004
        text = restated(error, f"{ast.unparse(call.func)}({ast.unparse(call.args[0])})")
        return f"{text}  # torch begins with zeros; or make the state for x.size(0), or drop_last=True in the loader"
    return "make the state for each batch, with its size: torch.zeros(layers, x.size(0), features)"
