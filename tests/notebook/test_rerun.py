"""What a cell says when it runs again: once that it became clean, else what is still there."""

import pytest
import torch

from tests.cells import a_notebook
from tests.notebook.samples import GOOD_LOOP, LOOP, MIMES, RUN_MIME, SETUP, SLUG, as_function, texts


@pytest.fixture
def notebook():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(LOOP)
        notebook.published.clear()
        yield notebook


def test_mended_cell_says_so_once(notebook):
    notebook.run(GOOD_LOOP)
    notebook.run(GOOD_LOOP)
    (bundle,) = notebook.published
    assert set(bundle) == MIMES
    assert bundle["text/plain"].startswith(f"✓ torch_inspector, cell 3: fixed: {SLUG} (`optimizer`,")
    assert "3 before, 0 now" in bundle["text/plain"].replace("\n", " ")
    (fixed,) = bundle[RUN_MIME]["fixed"]
    assert (fixed["slug"], fixed["change"]["before"], fixed["change"]["after"]) == (SLUG, 3, 0)


def test_mistake_that_stays_is_still_there(notebook):
    notebook.run(LOOP.replace("range(4)", "range(9)"))
    (bundle,) = notebook.published
    assert "error, line 4, still there:" in bundle["text/plain"]
    (finding,) = bundle[RUN_MIME]["findings"]
    assert finding["status"] == "still there"
    assert finding["change"] == {"label": "steps in this cell", "before": 4, "after": 9, "unit": "count"}


def test_other_cells_say_nothing_about_it(notebook):
    notebook.run("other = model(x).detach()\nprint(other.shape)")
    assert notebook.published == []


@pytest.mark.parametrize(
    "source",
    [
        LOOP.replace("step()", f"step()  # torchcheck: ignore[{SLUG}]"),
        GOOD_LOOP + "1 / 0\n",
    ],
    ids=["silenced", "failed"],
)
def test_nothing_is_called_fixed_that_is_not(notebook, source):
    notebook.run(source)
    assert notebook.published == []


def test_muted_is_not_fixed(notebook):
    notebook.extension.settings.muted = {SLUG}
    notebook.run(LOOP)
    assert notebook.published == []


def test_call_of_a_function_that_was_mended_elsewhere(notebook):
    for source in (as_function(), "train()", as_function(GOOD_LOOP), "train()"):
        notebook.run(source)
    assert "fixed" in texts(notebook)[-1]


def test_cell_is_known_by_its_id(notebook):
    run = notebook.shell.run_cell
    run(LOOP, store_history=True, cell_id="a")
    notebook.published.clear()
    run("quite = 'another text'", store_history=True, cell_id="a")
    assert f"cell 4: gone, with its code: {SLUG}" in texts(notebook)[0]


USED_UP = LOOP.replace("range(4)", "batches")
KEEPS = "ls = []\nfor _ in range(40):\n    ls.append(model(torch.rand(64, 3)).sum())\n"
DIVERGES = """\
line = nn.Linear(3, 1)
sgd = torch.optim.SGD(line.parameters(), lr=50.0)
for _ in range(60):
    sgd.zero_grad()
    error = line(x).square().mean()
    error.backward()
    sgd.step()
"""


@pytest.mark.parametrize(
    "cells",
    [
        ("batches = iter(range(4))", USED_UP, USED_UP),
        ("", LOOP, LOOP.replace("range(4)", "range(1)")),
        ("", LOOP, LOOP.replace("range(4)", "range(0)")),
        ("", LOOP, "if False:\n" + "".join(f"    {line}\n" for line in LOOP.splitlines())),
        ("", KEEPS, KEEPS.replace("40", "2")),
        ("", KEEPS, KEEPS.replace("40", "2"), KEEPS.replace("40", "1")),
        ("", DIVERGES, DIVERGES.replace("60", "2")),
        ("torch.autograd.set_detect_anomaly(True)", LOOP, LOOP + "\nprint(1)"),
    ],
    ids=["used up", "one turn", "no turn", "never", "two kept", "one kept", "fewer steps", "told only once"],
)
def test_mistake_that_is_only_not_seen_is_not_called_fixed(cells):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        for number, source in enumerate(cells):
            notebook.shell.run_cell(source, store_history=True, cell_id=f"{number}" if number == 0 else "same")
        torch.autograd.set_detect_anomaly(False)
        assert notebook.extension.session.runs[-2].findings or notebook.extension.session.runs[-3].findings
        assert not any("fixed" in text or "gone" in text for text in texts(notebook))


@pytest.mark.parametrize(("panel", "count"), [("off", 0), ("text", 1)])
def test_panel_setting_holds_for_the_quiet_line(notebook, panel, count):
    notebook.extension.settings.panel = panel
    notebook.run(GOOD_LOOP)
    assert len(notebook.published) == count


def test_report_tells_what_was_fixed(notebook):
    notebook.run("%%torchcheck\n" + GOOD_LOOP)
    (text,) = texts(notebook)
    assert "✓ fixed since cell 2" in text
    assert "No findings." in text
