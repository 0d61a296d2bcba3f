"""Every pitfall over random facts: it yields findings or stays silent, and never raises."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, given, note, settings
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

texts = st.sampled_from(KNOWN) | st.sampled_from(HOSTILE) | st.text(max_size=8)
# Few small numbers, so that keys, lines and orders of different facts meet.
numbers = st.integers(0, 6) | st.sampled_from((32, 1 << 20, 1 << 31, 1 << 33, 1 << 80))
amounts = st.sampled_from((0.0, 1e-9, 0.1, 1.0, 90.0, 1e300, float("inf"), float("nan")))
LEAVES = {str: texts, int: numbers, float: amounts, bool: st.booleans(), type(None): st.none()}
MOST = 3
"""Entries of any tuple."""


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation, as deep as its types go."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in LEAVES:
        return LEAVES[hint]
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(strategy, parts))
    if origin is frozenset:
        return st.frozensets(strategy(parts[0]), max_size=MOST)
    if origin is tuple:
        several = parts[-1] is ...
        return st.lists(strategy(parts[0]), max_size=MOST).map(tuple) if several else st.tuples(*map(strategy, parts))
    return whole(hint)


def whole(kind: type, **given_fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Facts of one kind with every field drawn, also those that have a default."""
    hints = get_type_hints(kind, localns={"Finding": Finding, "MemoryReport": MemoryReport})
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]
    drawn = {name: given_fields.get(name) or strategy(hints[name]) for name in names if name not in given_fields}
    return st.builds(kind, **drawn, **given_fields)


cells = whole(Cell, source=st.sampled_from(SOURCES) | texts, code=st.sampled_from(SOURCES) | texts)
runs = whole(Run, cell=cells, earlier=st.just(()), findings=st.just(()))
histories = st.lists(runs, max_size=1).map(tuple)


@given(run=whole(Run, cell=cells, earlier=histories))
@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
def test_no_pitfall_raises(run: Run) -> None:
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
