"""Every page is run under every pitfall: marks are found, and nothing else is."""

import pytest
import torch

from tests.cells import a_notebook
from torch_inspector.page import MARK
from torch_inspector.pitfalls import all_pitfalls

PITFALLS = all_pitfalls()
IDS = [pitfall.slug for pitfall in PITFALLS]
# The design asks for 30 to 80 lines; the formatter adds a blank line after the imports of each block.
LONGEST, SHORTEST = 95, 30
# Mistakes that only a device shows: their bad examples need one.
NEED_CUDA = {"scalar-read-every-step"}


def marked(blocks):
    """Block index and line of every marked line."""
    return [(i, n) for i, block in enumerate(blocks) for n, line in enumerate(block.splitlines(), 1) if MARK in line]


def found_in(blocks):
    """Findings of the blocks, run as the cells of one notebook."""
    with a_notebook() as notebook:
        for block in blocks:
            notebook.run(block)
        return notebook.findings(), notebook.errors


@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_bad_examples_are_found_at_their_line(pitfall):
    blocks = pitfall.page.blocks("Bad")
    assert marked(blocks), "the page marks no line"
    if pitfall.slug in NEED_CUDA and not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    found, _ = found_in(blocks)
    assert [(cell, line) for cell, slug, line, _ in found if slug == pitfall.slug] == marked(blocks)
    assert {slug for _, slug, _, _ in found} == {pitfall.slug}, "another pitfall was found as well"


@pytest.mark.parametrize("heading", ["Good", "Not flagged"])
@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_good_examples_are_silent_under_every_pitfall(pitfall, heading):
    blocks = pitfall.page.blocks(heading)
    assert blocks or heading == "Not flagged"
    found, errors = found_in(blocks)
    assert found == []
    assert [error for error in errors if error is not None] == []


@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_page_has_a_summary_and_a_fair_length(pitfall):
    page = pitfall.page
    assert page.summary
    assert SHORTEST <= len(page.text.splitlines()) <= LONGEST
    assert "http" in page.sections["Sources"]
