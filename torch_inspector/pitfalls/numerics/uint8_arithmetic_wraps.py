"""Whole numbers of 8 or 16 bits whose difference, sum or square does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, assigned
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Ciphers and check sums go round at 256 on purpose, and say so.
_MODULAR = re.compile(r"%\s*256|\bmod(ulo)?\.?\s*256|\bbytes\(|\bbytearray\(", re.IGNORECASE)
_SLICED = re.compile(r"(\w+)\[[^\[\]]*[:,][^\[\]]*\]")
# Before the kind of number of an array.
_ARRAY = "numpy."
_RANGES = {"uint8": "0 to 255", "int8": "-128 to 127", "int16": "-32768 to 32767"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds arithmetic between such tensors that gave other numbers than it should."""
    facts = run.expressions("wrapped")
    for fact in facts:
        if not _is_modular(run, fact):
            yield _finding(fact)


def _is_modular(run: Run, fact: ExpressionFact) -> bool:
    """True where bytes are reckoned with: the text speaks of 256 or makes bytes."""
    return fact.detail.endswith("uint8") and _MODULAR.search(run.source_of(fact.place.cell)) is not None


def _finding(fact: ExpressionFact) -> Finding:
    first = fact.names[0] if fact.names else fact.text
    kind, made = fact.detail.removeprefix(_ARRAY), "{}.float()"
    held = _RANGES.get(kind, "few numbers")
    if kind != fact.detail:
        made = "{}.astype('int32')"
    return Finding(
        message=(
            f"`{fact.text}` is worked out in {kind}, which holds {held}: "
            f"{fact.share:.0%} of the results do not fit and come out as other numbers."
        ),
        subject=fact.target or first,
        fix=assigned(_whole(first), made, _remark(fact)),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("kind of number", kind),
            Evidence("results that do not fit", round(fact.share, 3)),
            *(Evidence(name, str(shape)) for name, shape in zip(fact.names, fact.shapes, strict=False)),
        ),
    )


def _remark(fact: ExpressionFact) -> str:
    if fact.detail.startswith(_ARRAY):
        return "before the arithmetic"
    image = "; .clamp(0, 255).byte() of the result is a picture again" if fact.detail == "uint8" else ""
    second = fact.names[1] if len(fact.names) == 2 and fact.names[1] != fact.names[0] else ""  # noqa: PLR2004
    widened = f"; {second} may stay as it is" if re.search("[A-Za-z]", second) else ""
    return f"or .int(), before the arithmetic{widened}{image}"


def _whole(text: str) -> str:
    """The tensor that a slice is cut from: `frames` of `frames[:, 0]`, which no dictionary or list would take."""
    sliced = _SLICED.fullmatch(text)
    return sliced[1] if sliced else text
