"""Tables under an optimizer with running averages, in cells that ask for the report."""

import pytest

from tests.cells import findings_in

SLUG = "idle-rows-still-updated"
START = """\
import torch
from torch import nn
torch.manual_seed(0)
words = nn.Embedding(150_000, 32)
optimizer = torch.optim.AdamW(words.parameters(), lr=0.01)
"""
TRAIN = """\
for batch in torch.randint(0, 150_000, (3, 64)):
    optimizer.zero_grad()
    words(batch).square().mean().backward()
    optimizer.step()"""
ASKED = "%%torchcheck\n"


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


def test_the_table_and_its_optimizer_are_named():
    (finding,) = found(ASKED + TRAIN)
    assert (finding.line, finding.severity) == (5, "hint")
    assert "of the 150,000 rows of `words.weight`" in finding.message
    assert "AdamW" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        [TRAIN],
        [ASKED + TRAIN.replace("(3, 64)", "(1, 64)")],
        [ASKED + TRAIN.replace("(3, 64)", "(2, 80_000)")],
        ["optimizer = torch.optim.SGD(words.parameters(), lr=0.01)", ASKED + TRAIN],
        [
            "words = nn.Embedding(1_000, 32)\noptimizer = torch.optim.Adam(words.parameters())",
            ASKED + TRAIN.replace("150_000", "1_000"),
        ],
    ],
)
def test_other_tables_and_cells(cells):
    assert found(*cells) == []
