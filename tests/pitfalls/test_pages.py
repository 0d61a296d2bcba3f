"""Every page is run under every pitfall: marks are found, and nothing else is."""

import json

import nbformat
import pytest
import torch

from tests.cells import a_notebook
from torch_inspector.page import MARK
from torch_inspector.pitfalls import all_pitfalls

PITFALLS = all_pitfalls()
IDS = [pitfall.slug for pitfall in PITFALLS]
# Of examples that show nothing on a CPU: what they are about is tested from facts as well.
ON_CUDA = f"{MARK} on cuda"
# The design asks for 30 to 80 lines; the formatter adds a blank line after the imports of each block.
LONGEST, SHORTEST = 95, 30
RUN_MIME = "application/vnd.torch-inspector.run+json"
# Bytes that a notebook file may hold per finding: of the three forms themselves, and as the file lays them out.
FORMS, LAID_OUT = 8_000, 9_200


def marked(blocks):
    """Block index and line of every marked line."""
    return [(i, n) for i, block in enumerate(blocks) for n, line in enumerate(block.splitlines(), 1) if MARK in line]


def found_in(blocks):
    """Findings of the blocks, run as the cells of one notebook; with what the cells raised and published."""
    with a_notebook() as notebook:
        for block in blocks:
            notebook.run(block)
        return notebook.findings(), notebook.errors, notebook.published


def in_a_file(*bundles):
    """How many bytes a notebook has with these outputs."""
    outputs = [nbformat.v4.new_output("display_data", data=bundle) for bundle in bundles]
    cell = nbformat.v4.new_code_cell(id="a", outputs=outputs)
    return len(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode())


@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_bad_examples_are_found_at_their_line(pitfall):
    blocks = pitfall.page.blocks("Bad")
    assert marked(blocks), "the page marks no line"
    if any(ON_CUDA in block for block in blocks) and not torch.cuda.is_available():
        pytest.skip("the example needs CUDA")
    found, _, published = found_in(blocks)
    assert [(cell, line) for cell, slug, line, _ in found if slug == pitfall.slug] == marked(blocks)
    assert {slug for _, slug, _, _ in found} == {pitfall.slug}, "another pitfall was found as well"
    for bundle in published:
        # A report of `%%torchcheck` holds tables besides its findings.
        if RUN_MIME in bundle and ": report," not in bundle["text/plain"]:
            count = max(bundle[RUN_MIME]["finding_count"], 1)
            forms = [json.dumps(form, ensure_ascii=False) for form in bundle.values()]
            assert len("".join(forms).encode()) <= FORMS * count
            assert in_a_file(bundle) - in_a_file() <= LAID_OUT * count


@pytest.mark.parametrize("heading", ["Good", "Not flagged"])
@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_good_examples_are_silent_under_every_pitfall(pitfall, heading):
    blocks = pitfall.page.blocks(heading)
    assert blocks or heading == "Not flagged"
    found, errors, _ = found_in(blocks)
    assert found == []
    assert [error for error in errors if error is not None] == []


@pytest.mark.parametrize("pitfall", PITFALLS, ids=IDS)
def test_page_has_a_summary_and_a_fair_length(pitfall):
    page = pitfall.page
    assert page.summary
    assert SHORTEST <= len(page.text.splitlines()) <= LONGEST
    assert "http" in page.sections["Sources"]
