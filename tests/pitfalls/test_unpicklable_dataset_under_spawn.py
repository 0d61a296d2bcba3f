"""Functions without a name that spawned workers cannot find: named by the line that has them."""

import pytest

from tests.cells import findings_in

SLUG = "unpicklable-dataset-under-spawn"
START = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
rows = TensorDataset(torch.rand(6, 4))
def loader(**more):
    return DataLoader(rows, batch_size=2, num_workers=1, multiprocessing_context="spawn", **more)
other = sorted([3, 1], key=lambda n: -n)"""
LOOP = "for batch in batches:\n    pass"


@pytest.mark.parametrize(
    ("made", "words", "named"),
    [
        (
            "batches = loader(\n    collate_fn=lambda x: x[0])",
            "`collate_fn=lambda x: x[0]` (line 2 of cell 2)",
            "def collate(x): return x[0]",
        ),
        (
            "join = lambda x: x[0]\nbatches = loader(collate_fn=join)",
            "cannot find `<lambda>`",
            "a function with a name",
        ),
    ],
)
def test_a_lambda_is_named_by_its_place(made, words, named):
    (finding,) = findings_in(START, made, LOOP, slug=SLUG, fails=True)
    assert words in finding.message
    assert f"{named}, at the top level of a .py file" in finding.fix
