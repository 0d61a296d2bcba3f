"""Which findings let a front end ask who holds the memory, and that the answer is about what they mean."""

from typing import Any

import pytest

from tests.cells import a_notebook
from torch_inspector.facts import Snapshot
from torch_inspector.notebook.feed.answers import Answers
from torch_inspector.pitfalls import find_pitfall
from torch_inspector.views.message import run_message

LEAK = "import torch\nfrom torch import nn\nnet = nn.Linear(64, 64)\n{}\nfor _ in range(40):\n    {}.append({})\n"
LOSS = "net(torch.rand(64, 64)).sum()"


def answers_in(*cells: str, slug: str) -> list[tuple[str, list[str]]]:
    """For each finding of a pitfall the path that is offered, and the paths of the answer."""
    muting: Any = None
    with a_notebook(min_bytes=0) as notebook:
        answers = Answers(notebook.shell, lambda: False, Snapshot, muting)
        told = []
        for source in cells:
            run = notebook.run(source)
            found = run_message(run, session="s")["findings"] if run is not None else []
            for held in [one["held"] for one in found if one["slug"] == slug]:
                ((_, answer),) = answers.to({"v": 1, "ask": "holders", "path": held})
                told.append((held, [row["path"] for row in answer["rows"]]))
    return told


@pytest.mark.parametrize(
    ("made", "path"),
    [
        ("losses = []", "losses"),
        ("d = {'losses': []}", "d['losses']"),
        ("class Trainer: pass\ntrainer = Trainer(); trainer.losses = []", "trainer.losses"),
        ("key = 'x' * 150\nd = {key: []}", "d[key]"),
    ],
)
def test_what_a_loop_collects_is_found_where_it_is(made, path):
    ((held, rows),) = answers_in(LEAK.format(made, path, LOSS), slug="graph-retained-in-list")
    assert rows == [held]


@pytest.mark.parametrize(
    ("slug", "first"),
    [("traceback-pins-tensors", "failures[0]"), ("view-pins-storage", "photo"), ("training-state-left", "optimizer")],
)
def test_holders_of_what_the_page_shows(slug, first):
    told = answers_in(*find_pitfall(slug).page.blocks("Bad"), slug=slug)
    assert (first, [first]) in [(held, rows[:1]) for held, rows in told]
    assert all(rows for _, rows in told)


@pytest.mark.parametrize(
    "slug",
    [
        "deleted-name-still-referenced", "old-model-still-alive", "cycle-holds-tensors", "out-of-memory",
        "retain-graph-growth", "dense-embedding-gradient", "broadcast-blowup",
    ],
)  # fmt: skip
def test_nothing_is_offered_where_no_name_leads_to_what_is_meant(slug):
    told = answers_in(*find_pitfall(slug).page.blocks("Bad"), slug=slug)
    assert told
    assert {held for held, _ in told} == {""}
