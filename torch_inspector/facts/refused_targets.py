"""The ways in which a loss refuses its target, by what torch says."""

from __future__ import annotations

import re
from typing import NamedTuple


class Refusal(NamedTuple):
    """One way in which a loss refuses its target."""

    text: re.Pattern[str]
    said: str
    fix: str
    """The target as it should be, where `{}` stands for it; or what is to be looked at, with its `{name}`."""
    remark: str = ""
    whole: bool | None = None
    """True if the target is of whole numbers, False if not, None if that may be."""
    axes: int = 0
    """Axes that the target has at least."""


REFUSALS = (
    Refusal(
        re.compile(r"floating point type for target with class probabilities"),
        "has one number per class, which cross-entropy reads as probabilities, and these must be floating point",
        "{}.argmax(1)",
        "class numbers; or .float()",
        whole=True,
        axes=2,
    ),
    Refusal(
        re.compile(r"expected target dtype to be Long or Byte|expected scalar type Long but found"),
        "has one number per sample, which must be the number of a class, in int64",
        "{}.long()",
    ),
    Refusal(
        re.compile(r"0D or 1D target tensor expected|only batches of spatial targets supported"),
        "has an axis too many: the loss wants one class number per sample, without an axis of classes",
        "{}.squeeze(1)",
        axes=2,
    ),
    Refusal(
        re.compile(r"Target -?\d+ is out of bounds|^target out of range"),
        "holds {value}, which is no class number: they go from 0 to the number of classes less 1",
        "{name}.unique()  # shows what it holds; class numbers must go from 0 to {last}",
        whole=True,
    ),
    Refusal(
        re.compile(r"can't be cast to the desired output type Long|Found dtype Long but expected Float"),
        "is of whole numbers, where this loss calculates with floating point on both sides",
        "{}.float()",
        whole=True,
    ),
    Refusal(
        re.compile(r"all elements of target should be between 0 and 1"),
        "holds numbers outside of 0 to 1, which are no probabilities",
        "{name}.unique()  # shows what it holds; for class numbers take CrossEntropyLoss",
    ),
)
