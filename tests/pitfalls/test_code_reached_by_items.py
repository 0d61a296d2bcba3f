"""Functions that no text calls by name: what `d[i]`, loops over datasets and loaders, and `map` run."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, random_split
class D(Dataset):
    def __init__(self):
        self.x = torch.rand(8, 6, 5, 3)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return prepared(self.x[i].clone())
class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(4):
            yield prepared(torch.rand(6, 5, 3))
def prepared(image):
    bright = image > 0.5
    {change}
    h, w, c = image.shape
    return image.{move}
d, stream, images = D(), Stream(), [torch.rand(6, 5, 3) for _ in range(4)]
half, rest = random_split(d, [4, 4])
"""
WRONG = {"change": "image[bright][0] = 1", "move": "view(c, h, w)"}
RIGHT = {"change": "image[bright] = 1", "move": "permute(2, 0, 1)"}
SLUGS = {"assignment-to-indexed-copy", "view-where-permute-meant"}
RUNS = [
    "for i in range(8): x = d[i]",
    "for i in range(len(d)): x = d[i]",
    "for x in d: break",
    "for i, x in enumerate(d): pass",
    "xs = [d[i] for i in range(4)]",
    "xs = {i: d[i] for i in range(4)}",
    "for batch in DataLoader(D(), batch_size=4): pass",
    "for batch in DataLoader(dataset=d, shuffle=True): pass",
    "for batch in DataLoader(half): pass",
    "batch = next(iter(DataLoader(D())))",
    "x = list(d)",
    "x = torch.stack([*d])",
    "for x in stream: pass",
    "for batch in DataLoader(stream): pass",
    "xs = list(map(prepared, images))",
    "for x in map(prepared, images): pass",
    "def collected(data, n):\n    return [data[j] for j in range(n)]\nxs = collected(d, 3)",
]


def found(setup, run):
    with a_notebook() as notebook:
        notebook.run(SETUP.format(**setup))
        findings = notebook.run(run).findings
        assert notebook.errors == [None, None]
    return [one for one in findings if one.slug in SLUGS]


@pytest.mark.parametrize("run", RUNS)
def test_what_they_run_is_read(run):
    both = found(WRONG, run)
    assert {(one.slug, one.severity, one.cell) for one in both} == {
        ("assignment-to-indexed-copy", "error", 1),
        ("view-where-permute-meant", "warning", 1),
    }


@pytest.mark.parametrize("run", RUNS[::4])
def test_what_is_right_stays_silent(run):
    assert found(RIGHT, run) == []


@pytest.mark.parametrize(
    "run",
    [
        "later = map(prepared, images)",
        "def later():\n    return d[0]",
        "loader = DataLoader(D())",
        "x = {0: d}[0]",
        "x = images[0]",
    ],
)
def test_what_does_not_run_is_not_read(run):
    assert found(WRONG, run) == []


@pytest.mark.parametrize(
    "run",
    [
        "xs = [i.view(3, 6, 5) for i in images]",
        "xs = [images[k].view(3, 6, 5) for k in range(4)]",
        "xs = {k: i.view(3, 6, 5) for k, i in enumerate(images)}",
    ],
)
def test_elements_of_a_comprehension(run):
    (finding,) = found(RIGHT, run)
    assert (finding.slug, finding.line) == ("view-where-permute-meant", 1)


@pytest.mark.parametrize(
    "run",
    [
        "i = images[0]\nxs = [i.view(3, 6, 5) for i in [torch.rand(3, 30), torch.rand(90)]]",
        "xs = [i.permute(2, 0, 1).reshape(3, 6, 5) for i in images]",
        "xs = [i.view(3, 6, 5) for i in [torch.rand(6, 5, 3).flatten()]]",
    ],
)
def test_a_variable_of_a_comprehension_is_its_own(run):
    assert found(RIGHT, run) == []
