"""Copies by a mask that pile up, and indexing that costs nothing or only once."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_run, a_tensor, a_trace
from torch_inspector.facts import IndexingFact
from torch_inspector.pitfalls.memory.mask_index_copies import check

SETUP = """
import torch
from torch.utils.data import TensorDataset
torch.manual_seed(0)
data, fold_of = torch.zeros(1200, 16, 16, 8), torch.arange(1200) % 4
"""
FOUND = {
    "append": "folds = []\nfor k in range(4):\n    folds.append((data[fold_of != k], data[fold_of == k]))",
    "a comprehension": "folds = [data[fold_of != k] for k in range(4)]",
    "a dict": "folds = {}\nfor k in range(4):\n    mask = fold_of != k\n    folds[k] = {'train': data[mask]}",
    "a dict comprehension": "folds = {k: data[~(fold_of == k)] for k in range(4)}",
    "names": "a = data[fold_of > 0]\nb = data[fold_of > 0]\nc = data[fold_of != 1, :]",
    "bootstrap": "folds = [data[torch.randint(0, 1200, (1200,))] for _ in range(3)]",
    "data sets": "folds = {}\nfor k in range(4):\n    rows = (fold_of != k).nonzero()[:, 0].numpy()\n"
    "    folds[k] = {'train': TensorDataset(data[rows])}",
    "called by name": "folds = {}\nfor k in range(4):\n    folds[k] = dict(a=data[fold_of != k], b=data[fold_of == k])",
    "appended by name": "folds = []\nfor k in range(4):\n    folds.append(dict(a=data[fold_of != k]))",
    "by name in a comprehension": "folds = {k: dict(a=data[fold_of != k]) for k in range(4)}",
    "in a record": "from typing import Any, NamedTuple\nclass Fold(NamedTuple):\n    train: Any\n    test: Any\n"
    "folds = [Fold(data[fold_of != k], test=data[fold_of == k]) for k in range(4)]",
    "a list of data sets": "folds = []\nfor k in range(4):\n    folds.append(TensorDataset(data[fold_of != k]))",
}
SILENT = {
    "a split into data sets": "at = fold_of != 0\ntrain, test = TensorDataset(data[at]), TensorDataset(data[~at])",
    "data sets of the same data": "folds = [TensorDataset(data, fold_of != k) for k in range(4)]",
    "data sets of slices": "folds = [TensorDataset(data[k * 100 :]) for k in range(4)]",
    "data sets that are gone": "for k in range(4):\n    part = TensorDataset(data[fold_of != k])\n    len(part)",
    "one split by name": "parts = dict(train=data[fold_of != 0], test=data[fold_of == 0])",
    "records of slices": "folds = [dict(a=data[k * 300 : (k + 1) * 300]) for k in range(4)] * 3",
    "one split": "train, test = data[fold_of != 0], data[fold_of == 0]",
    "all folds apart": "folds = [data[fold_of == k] for k in range(4)]",
    "slices": "folds = [data[k * 300 : (k + 1) * 300] for k in range(4)] * 3",
    "slices by a name": "part = slice(0, 1000)\nfolds = [data[part] for k in range(4)]",
    "single rows": "rows = [data[k] for k in range(1200)]",
    "rows by a number beside other tensors": "import random\nrows = []\nfor _ in range(20):\n"
    "    q, s = torch.zeros(4), torch.zeros(4)\n    a = random.choice([0, 3])\n    "
    "rows.append((s.clone(), a, q[a], q[a - 1]))",
    "in a function": "rows, q = [], torch.zeros(4)\ndef visit(s):\n    a = random.randrange(3)\n"
    "    rows.append((s.clone(), q[a], q[int(s.argmax())]))\nimport random\n"
    "for _ in range(20):\n    visit(torch.zeros(4))",
    "with a history": "rows = []\ndef visit(s):\n    for a in [1, 2, 3]:\n        rows.append((s.clone(), q[a]))\n"
    "q = torch.ones(4, requires_grad=True).exp()\nfor _ in range(9):\n    visit(torch.zeros(4))",
    "gone": "for k in range(4):\n    total = data[fold_of != k].sum()",
    "something else is made of it": "folds = [torch.relu(data[fold_of != k]) for k in range(4)]",
    "the name is bound anew": "far = data[fold_of.repeat(3) % 1200]\nfar = (far - 1).abs()",
    "numbers only": "folds = [(fold_of != k).nonzero() for k in range(4)]",
    "a copy that is meant": "other = data.clone()\nthird = [data.clone(), data[:7]]",
}
MAKES = """
def make(x, y):
    out = []
    for k in range(4):
        {line}
    return out
folds = make(data, fold_of)
"""
SPLITS = "def split(k):\n    a, b = data[fold_of != k], data[fold_of == k]\n    return a, b\n"
OBJECT = """
class Folded:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def make(self):
        out = {}
        for k in range(4):
            picked = self.y == k
            out[k] = {'train': (self.x[~picked], self.y[~picked]), 'rest': self.x[picked]}
        return out
"""
IN_FUNCTIONS = {
    "appended": (MAKES.format(line="out.append((x[y != k], x[y == k]))"), 5),
    "named before": (MAKES.format(line="a = x[y != k]; out.append({'a': a})"), 5),
    "given back at once": ("def make(x, y):\n    return [x[y != k] for k in range(4)]\nfolds = make(data, fold_of)", 2),
    "called again and again": (f"{SPLITS}folds = [split(k) for k in range(4)]", 2),
    "a function in a function": (SPLITS + MAKES.format(line="out.append(split(k))"), 2),
    "of an object without a name": (OBJECT + "folds = Folded(data, fold_of).make()", 9),
    "of an object": (OBJECT + "made = Folded(data, fold_of)\nfolds = made.make()", 9),
}
LEFT_IN_FUNCTIONS = {
    "made of them": MAKES.format(line="part = x[y != k]; out.append(part + 1)"),
    "slices": MAKES.format(line="out.append(x[k * 300 : 900])"),
    "single rows": MAKES.format(line="out.append(x[k])"),
    "a split": f"{SPLITS}folds = split(0)",
    "used by others": f"{SPLITS}sums = [one.sum() for k in range(4) for one in split(k)]",
    "beside copies that are meant": MAKES.format(line="first = x[y == k]; out.append(x.clone())"),
}


def found(*cells, min_bytes=0):
    with a_notebook(min_bytes=min_bytes) as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [one for one in notebook.findings() if one[1] == "mask-index-copies"]


@pytest.mark.parametrize("name", FOUND)
def test_copies_several_times_as_large_as_the_data(name):
    ((cell, _, line, severity),) = found(FOUND[name])
    assert (cell, severity) == (1, "hint")
    assert "data[" in FOUND[name].splitlines()[line - 1]


@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_copies_that_a_function_gives_back(name):
    text, line = IN_FUNCTIONS[name]
    assert [(cell, told, severity) for cell, _, told, severity in found(text)] == [(1, line, "hint")]


@pytest.mark.parametrize("name", LEFT_IN_FUNCTIONS)
def test_functions_that_give_back_something_else(name):
    assert found(LEFT_IN_FUNCTIONS[name]) == []


@pytest.mark.parametrize("name", SILENT)
def test_no_copies_or_few(name):
    assert found(SILENT[name]) == []


def test_small_copies_are_left_alone():
    small = "small = data[:50]\nfolds = [small[fold_of[:50] != k] for k in range(4)]"
    assert found(small, min_bytes=1 << 20) == []
    assert len(found(small)) == 1


def test_copies_are_told_of_once():
    assert len(found(FOUND["append"], "len(folds)", "data[fold_of == 1].sum()")) == 1


def test_only_new_tensors_of_the_same_rows_count():
    mb = 1 << 20
    data = a_tensor("data", shape=(100, 8), nbytes=8 * mb, storage_nbytes=8 * mb, key=1, made_by="")
    copy = a_tensor("folds[0]", shape=(90, 8), nbytes=20 * mb, storage_nbytes=20 * mb, key=2, made_by="")
    trace = a_trace(IndexingFact(3, "data", "mask", "folds"))
    (finding,) = check(a_run(trace=trace, after=[data, copy]))
    assert (finding.line, finding.subject) == (3, "folds")
    assert "2.5 times" in finding.message
    others = [
        copy._replace(shape=(90, 7)),
        copy._replace(storage_nbytes=80 * mb),
        copy._replace(dtype="int64"),
        copy._replace(device="cuda:0"),
        copy._replace(path="models[0]"),
        copy._replace(made_by="AddmmBackward0"),
        copy._replace(nbytes=15 * mb, storage_nbytes=15 * mb),
    ]
    assert [list(check(a_run(trace=trace, after=[data, other]))) for other in others] == [[]] * len(others)
    assert list(check(a_run(trace=trace, before=[data, copy], after=[data, copy]))) == []
    assert list(check(a_run(trace=trace, after=[copy]))) == []


def test_the_fix_for_data_sets_copies_nothing():
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(FOUND["a list of data sets"])
        (finding,) = [one for one in run.findings if one.slug == "mask-index-copies"]
        notebook.run(
            f"whole = TensorDataset(data)\npart = {finding.fix.split('  #')[0]}\nassert len(part) == 900; part[0]"
        )
        assert notebook.errors == [None] * 3


def test_two_ways_of_indexing_are_both_told():
    folds = "folds = {i: {'b': data[tr], 'c': data[va]} for i, (tr, va) in enumerate(parts)}"
    with a_notebook(min_bytes=0) as notebook:
        notebook.run("import torch\ndata = torch.randn(900, 40)\nrows = torch.randperm(900)")
        notebook.run("parts = [(rows[100:], rows[:100]), (rows[:800], rows[800:]), (rows[50:], rows[:50])]")
        run = notebook.run(folds)
    (finding,) = [one for one in run.findings if one.slug == "mask-index-copies"] if run else []
    assert finding.message.startswith("`data[tr]` and `data[va]` copy: `folds` keeps 6 of these copies")
    assert finding.fix.startswith("keep the indices instead (tr, va)")


NOISY = "x, y = torch.randn(3000, 64), torch.randint(0, 3, (3000,))\n"
BESIDE = {
    "noise in a function": "def views(x, y):\n    out = [x[y == 2]]\n    for _ in range(3):\n"
    "        out.append(x + torch.randn_like(x))\n    return out\nv = views(x, y)",
    "noise": "v = [x[y == 2]]\nfor _ in range(3):\n    v.append(x + torch.randn_like(x))",
    "joined": "def part(x, y):\n    return [x[y == 2]]\nv = part(x, y)\nv.append(torch.cat([x, x + 1]))",
}


@pytest.mark.parametrize("name", BESIDE)
def test_other_tensors_beside_a_copy_are_none(name):
    assert found(NOISY + BESIDE[name]) == []


def test_copies_are_known_by_their_rows():
    assert len(found(NOISY + "v = [(x[y != k], x[y == k]) for k in range(3)]")) == 1
