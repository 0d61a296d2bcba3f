"""Loaders whose samples do not fit on each other."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch.utils.data import DataLoader
words = [torch.arange(n) for n in (3, 5, 4, 4)]
pairs = [(one, len(one)) for one in words]
pictures = [torch.zeros(3, n, 8) for n in (8, 9)]
loader = DataLoader({data}, batch_size=2, num_workers={workers})"""


@pytest.mark.parametrize(
    ("data", "workers", "cell", "sizes", "fix"),
    [
        ("words", 0, "for batch in loader:\n    pass", "(3,) and (5,)", "pad_sequence"),
        ("pairs", 1, "for i, (x, y) in enumerate(loader):\n    pass", "(3,) and (5,)", "pad_sequence"),
        ("pictures", 0, "batch = next(iter(loader))", "(3, 8, 8) and (3, 9, 8)", "collate_fn=list"),
    ],
)
def test_the_loader_and_the_sizes(data, workers, cell, sizes, fix):
    (finding,) = findings_in(SETUP.format(data=data, workers=workers), cell, slug="uneven-samples")
    assert (finding.subject, finding.line) == ("loader", 1)
    assert sizes in finding.message
    assert fix in finding.fix


def test_a_stack_of_ones_own():
    assert not findings_in(SETUP.format(data="words", workers=0), "torch.stack(words)", slug="uneven-samples")
