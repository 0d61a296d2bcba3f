"""Every pitfall over random facts: it yields findings or stays silent, and never raises."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.fakes import SOURCE
from torch_inspector.account import MemoryReport
from torch_inspector.facts import Cell, Run
from torch_inspector.findings import SEVERITIES, Evidence, Finding
from torch_inspector.pitfalls import all_pitfalls

# Words that pitfalls look for, so that random facts get past their first lines.
KNOWN = (
    *("model", "optimizer", "loss", "history['loss']", "Out[3]", "losses", "weight", "head.weight"),
    *("cpu", "cuda:0", "cuda:1", "mps:0", "meta", "host", "float32", "float16", "int64", "tensor"),
    *("backward", "step", "zero_grad", "forward", "scheduler", "scaler.step", "loss.backward", "list.append"),
    *("softmax-before-log-softmax", "stretched-operands", "SoftmaxBackward0", "SubBackward0", "NllLossBackward0"),
    *("Adam", "LBFGS", "Linear", "Dropout", "BatchNorm1d", "Tensor", "DataLoader", "lambda", "append", "__main__"),
    *("RuntimeError", "OutOfMemoryError", "KeyboardInterrupt"),
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    "CUDA out of memory. Tried to allocate 2.00 GiB.",
)
HOSTILE = (
    "",
    " ",
    "\n",
    "{",
    "{0}",
    "%s",
    "`",
    "'\"",
    "<script>",
    "# finding",
    "a.b[",
    "Ω🔥",
    "\ud800",
    "\0",
    "x" * 500,
)
SOURCES = (
    SOURCE,
    "",
    "%%time\nmodel(x)",
    "def broken(:",
    "losses = []\nfor x in data:\n    losses.append(model(x))\nprint(len(losses))\n",
    "model.eval()\nfor i in range(3):\n    fs.append(lambda: i)\nwith torch.no_grad():\n    model(x)\n",
)

# Few small numbers, so that keys, lines and orders of different facts meet.
NUMBERS = (*range(7), 32, 1 << 20, 1 << 31, 1 << 33, 1 << 80)
AMOUNTS = (0.0, 1e-9, 0.1, 1.0, 90.0, 1e300, float("inf"), float("nan"))
SIZES = (0, 0, 1, 1, 2, 3)
"""Entries of any tuple."""


class Draw:
    """Facts by chance: every field of them, as deep as its types go.

    Hypothesis draws the seed alone. Drawn one by one by it, the thousands of fields of one run take most of a second.
    """

    def __init__(self, seed: int):
        self.random = Random(seed)

    def value(self, hint: Any) -> Any:
        """A value of an annotation."""
        origin, parts = get_origin(hint), get_args(hint)
        if hint in self._LEAVES:
            return self._LEAVES[hint](self)
        if origin is Literal:
            return self.random.choice(parts)
        if origin in (Union, types.UnionType):
            return self.value(self.random.choice(parts))
        if origin is frozenset:
            return frozenset(self._several(parts[0]))
        if origin is tuple:
            return self._several(parts[0]) if parts[-1] is ... else tuple(map(self.value, parts))
        return self.whole(hint)

    def whole(self, kind: type, **given_fields: Any) -> Any:
        """Facts of one kind with every field drawn, also those that have a default."""
        hints = hints_of(kind)
        return kind(**{name: self.value(hints[name]) for name in hints if name not in given_fields}, **given_fields)

    def run(self, earlier: int) -> Run:
        """A run after up to so many others."""
        past = tuple(self.run(0) for _ in range(self.random.randint(0, earlier)))
        cell = self.whole(Cell, source=self._source(), code=self._source())
        return self.whole(Run, cell=cell, earlier=past, findings=())  # type: ignore[no-any-return]

    def _several(self, hint: Any) -> tuple[Any, ...]:
        return tuple(self.value(hint) for _ in range(self.random.choice(SIZES)))

    def _text(self) -> str:
        letters = "".join(chr(self.random.randrange(0x110000)) for _ in range(self.random.randrange(8)))
        return self.random.choice((self.random.choice(KNOWN), self.random.choice(HOSTILE), letters))

    def _source(self) -> str:
        return self.random.choice((*SOURCES, self._text()))

    _LEAVES: ClassVar[dict[Any, Callable[[Draw], Any]]] = {
        str: _text,
        int: lambda self: self.random.choice(NUMBERS),
        float: lambda self: self.random.choice(AMOUNTS),
        bool: lambda self: self.random.random() < 0.5,
        type(None): lambda _: None,
    }


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of the fields of facts."""
    hints = get_type_hints(kind, localns={"Finding": Finding, "MemoryReport": MemoryReport})
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]
    return {name: hints[name] for name in names}


seeds = st.integers(0, (1 << 32) - 1)


@given(seed=seeds)
@settings(max_examples=400)
def test_no_pitfall_raises(seed: int) -> None:
    run = Draw(seed).run(earlier=1)
    for pitfall in all_pitfalls():
        note(pitfall.slug)
        for finding in pitfall.check(run):
            assert_is_whole(finding)


def assert_is_whole(finding: Finding) -> None:
    assert type(finding) is Finding
    assert all(
        type(text) is str for text in (finding.message, finding.subject, finding.fix, finding.slug, finding.code)
    )
    assert finding.message
    assert finding.severity in (*SEVERITIES, "")
    assert all(type(number) in (int, type(None)) for number in (finding.line, finding.cell))
    assert all(type(entry) is Evidence and type(entry.value) in (str, int, float) for entry in finding.evidence)
