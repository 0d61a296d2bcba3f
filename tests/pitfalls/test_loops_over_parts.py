"""What is said in the place of a loop gives what the loop gave: of all elements, of a part, or in words only."""

import gc

import pytest
import torch

from tests.cells import a_notebook

SETUP = """
import torch
x, k = torch.randn(3000), torch.randint(0, 5, (3000,))
m, rows = torch.randn(60, 60), torch.randn(2000, 2)
size, begin = 3000, 1000
"""
TOTAL = "made = 0\n{}:\n    made += {}"
TWICE = "made = 0\nfor i in {}:\n    for j in {}:\n        made += {}"
LISTED = "made = []\n{}:\n    made.append({})"
IN_A_FUNCTION = (
    "def f(a, n):\n    made = 0\n    for i in range({}):\n        made += a[i]\n    return made\nmade = f(x, {})"
)


@pytest.fixture(autouse=True)
def _no_pause():
    gc.disable()
    yield
    gc.enable()


def fix_and_shell(notebook, cell):
    notebook.run(SETUP)
    (finding,) = (one for one in notebook.run(cell).findings if one.slug == "python-loop-over-tensor")
    return finding.fix.partition("  #")[0], notebook.shell.user_ns


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("made = [x[i].item() for i in range(begin, 3000)]", "x[begin:3000].tolist()"),
        ("made = [x[i] for i in range(0, 3000, 2)]", "list(x[:3000:2].unbind())"),
        (TOTAL.format("for i in range(1, len(x))", "x[i]"), "x[1:len(x)].sum()"),
        (TOTAL.format("for i in range(0, size)", "x[i].item()"), "x.sum()"),
        (TOTAL.format("for i in range(len(k))", "int(k[i])"), "k.sum()"),
        (TOTAL.format("for i in range(60)", "max(m[i])"), "m.amax(-1).sum()"),
        (LISTED.format("for i in range(2000 - 7)", "rows[i]"), "list(rows[:2000 - 7].unbind())"),
        (TWICE.format("range(m.shape[0])", "range(1, m.size(1))", "m[i][j]"), "m[:, 1:m.size(1)].sum()"),
        ("h, w = m.shape\n" + TWICE.format("range(h)", "range(w)", "m[i, j]"), "m.sum()"),
    ],
)
def test_a_part_is_the_same_part(cell, fix):
    with a_notebook(min_bytes=0) as notebook:
        said, variables = fix_and_shell(notebook, cell)
        assert said == fix
        made, again = variables["made"], eval(said, dict(variables))  # noqa: S307
        assert len(made) == len(again) if isinstance(made, list) else True
        assert torch.allclose(_stacked(made), _stacked(again), atol=1e-2)


def _stacked(made):
    return (
        torch.stack([torch.as_tensor(one) for one in made]) if isinstance(made, list) else torch.as_tensor(made).float()
    )


@pytest.mark.parametrize(
    ("bound", "given", "fix"),
    [("n", "2500", "a[:n].sum()"), ("n", "3000", "a[:n].sum()"), ("len(a)", "1", "a.sum()")],
)
def test_a_function_may_be_given_another_count(bound, given, fix):
    with a_notebook(min_bytes=0) as notebook:
        assert fix_and_shell(notebook, IN_A_FUNCTION.format(bound, given))[0] == fix


@pytest.mark.parametrize(
    "cell",
    [
        "made = [v.item() for v in x if v > 0]",
        "made = [v.item() for v in x for _ in range(2)]",
        "made = [x[-i].item() for i in range(3000)]",
        "made = [x[i].item() for i in range(2999, -1, -1)]",
        "made = [x[i].item() for i in range(-1500, 1500)]",
        LISTED.format("for e in range(5):\n  for i in range(len(x))", "x[i]"),
        TWICE.format("range(60)", "range(60)", "m[i]"),
        TWICE.format("range(60)", "range(60)", "m[j, i]"),
        TOTAL.format("for i in range(3000)", "int(x[i])"),
        "made = torch.zeros(61)\nfor i in range(60):\n    made[i + 1] = max(m[i])",
    ],
)
def test_what_is_no_plain_part_is_told_in_words(cell):
    with a_notebook(min_bytes=0) as notebook:
        assert fix_and_shell(notebook, cell)[0].startswith("one call on whole tensors")


@pytest.mark.parametrize("made", ["torch.zeros(3000)", "[0.0] * 3000"])
def test_a_place_of_its_own_on_each_turn_is_no_sum(made):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"tot = {made}\nfor i in range(len(x)):\n    tot[i] += x[i].item()")
        assert [one.fix for one in run.findings if not one.fix.startswith("one call on whole tensors")] == []
