"""Graphs that variables keep alive after a cell."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
x = torch.randn(256, 64)
losses, outs = [], []
"""
HIDDEN = 256 * 64 * 4


def graphs(*cells, setup=SETUP):
    """Graph facts after each cell, by path."""
    with a_notebook() as notebook:
        notebook.run(setup)
        runs = [notebook.run(cell) for cell in cells]
    assert notebook.errors == [None] * (len(cells) + 1)
    return [{graph.path: graph for graph in run.after.graphs} for run in runs]


def test_a_live_graph():
    (after,) = graphs("loss = model(x).sum()")
    fact = after["loss"]
    assert (fact.tensor_count, fact.scalar, fact.spent, fact.container, fact.newest_nodes) == (1, True, False, False, 1)
    assert fact.complete
    assert fact.saved_nbytes == HIDDEN  # the result of tanh; x is held anyway
    assert fact.node_count == 10


def test_a_list_that_is_longer_than_is_looked_at():
    """What was counted of it is the least."""
    (after,) = graphs("w = torch.ones(1, requires_grad=True)\nlosses += [w * 2 for _ in range(1100)]\nloss = w * 3")
    assert (after["losses"].tensor_count, after["losses"].complete) == (1000, False)
    assert after["loss"].complete


def test_a_graph_that_backward_has_spent():
    (after,) = graphs("loss = model(x).sum()\nloss.backward()")
    assert after["loss"].spent
    assert after["loss"].saved_nbytes == 0


def test_a_graph_that_is_kept_by_retain_graph():
    (after,) = graphs("loss = model(x).sum()\nloss.backward(retain_graph=True)")
    assert not after["loss"].spent
    assert after["loss"].saved_nbytes == HIDDEN


def test_a_graph_that_a_later_cell_spends():
    first, second = graphs("loss = model(x).sum()", "loss.backward()")
    assert not first["loss"].spent
    assert second["loss"].spent
    assert second["loss"].saved_nbytes == 0


def test_nothing_is_new_in_a_later_cell():
    first, second = graphs("losses.append(model(x).sum())", "1")
    assert (first["losses"].newest_nodes, second["losses"].newest_nodes) == (1, 0)
    assert first["losses"].saved_nbytes == second["losses"].saved_nbytes
    assert second["losses"].grown_at is None


@pytest.mark.parametrize(
    ("code", "path", "count"),
    [
        ("for i in range(3): losses.append(model(x).sum())", "losses", 3),
        ("h = {'loss': [], 'acc': []}\nfor i in range(3): h['loss'].append(model(x).sum())", "h['loss']", 3),
        ("for i in range(3): outs.append({'loss': model(x).sum(), 'i': i})", "outs", 3),
        ("for i in range(3): outs.append((i, model(x).sum()))", "outs", 3),
        ("for i in range(3): outs.append([model(x).sum(), model(x).mean()])", "outs", 6),
        ("d = {}\nfor i in range(3): d[i] = model(x).sum()", "d", 3),
        ("import collections\nq = collections.deque()\nfor i in range(3): q.append(model(x).sum())", "q", 3),
        ("class A: pass\na = A()\na.seen = []\nfor i in range(3): a.seen.append(model(x).sum())", "a.seen", 3),
        ("t = tuple(model(x).sum() for i in range(3))", "t", 3),
    ],
)
def test_groups(code, path, count):
    (after,) = graphs(code)
    assert after[path].tensor_count == count
    assert after[path].container
    assert after[path].newest_nodes == count


def test_a_key_that_looks_like_an_index():
    (after,) = graphs("h = {'a[3]': [model(x).sum()]}")
    assert list(after) == ["h['a[3]']"]


def test_large_tensors_in_a_list():
    (after,) = graphs("for i in range(3): outs.append(model(x))")
    assert not after["outs"].scalar
    assert after["outs"].nbytes == 3 * HIDDEN
    assert after["outs"].saved_nbytes == 3 * HIDDEN


def test_detached_tensors_have_no_graph():
    (after,) = graphs(
        "for i in range(3):\n    outs.append(model(x).detach())\n    losses.append(model(x).sum().item())"
    )
    assert after == {}


@pytest.mark.parametrize(
    ("step", "length"),
    [("total = total + loss", 9), ("total += loss", 9), ("total = loss", 0), ("total = total * loss", 0)],
)
def test_sums(step, length):
    (after,) = graphs(f"total = 0\nfor i in range(9):\n    loss = model(x).sum()\n    {step}\ndel loss")
    assert after["total"].sum_length == length


@pytest.mark.parametrize(
    ("code", "path", "line", "differentiated"),
    [
        (
            "for i in range(4):\n    loss = model(x).sum()\n    loss.backward()\n    losses.append(loss)",
            "losses",
            4,
            True,
        ),
        ("for i in range(4):\n    losses.append(model(x).sum())", "losses", 2, False),
        ("t = 0\nfor i in range(4):\n    loss = model(x).sum()\n    loss.backward()\n    t = t + loss", "t", 5, True),
        ("t = 0\nfor i in range(4):\n    t = t + model(x).sum()\nt.backward()", "t", 3, False),
    ],
)
def test_the_line_that_collects(code, path, line, differentiated):
    (after,) = graphs(code)
    assert (after[path].grown_at.line, after[path].differentiated) == (line, differentiated)


def test_the_line_is_in_the_cell_of_the_function():
    first, second = graphs("def fit():\n    losses.append(model(x).sum())", "for i in range(4): fit()")
    assert first == {}
    assert tuple(second["losses"].grown_at) == (2, 2, "")


@pytest.mark.parametrize(
    ("code", "path", "kind", "remedy"),
    [
        (
            "for i in range(3): losses.append(model(x).sum())",
            "losses",
            "append",
            "losses.append(model(x).sum().item())",
        ),
        ("for i in range(3): outs.append((i, model(x)))", "outs", "append", ""),
        ("outs = torch.cat([model(x) for i in range(3)])", "outs", "joined", None),
    ],
)
def test_how_it_grows(code, path, kind, remedy):
    (after,) = graphs(code)
    assert after[path].grown_by == kind
    assert after[path].pass_count == 3
    assert remedy is None or after[path].remedy == remedy


def test_what_a_variable_is_computed_from():
    (after,) = graphs("for i in range(3): losses.append(model(x).sum())\nmean = torch.stack(losses).mean()")
    assert (after["mean"].derived_from, after["losses"].derived_from) == ("losses", "")


def test_only_the_newest_groups_are_looked_at():
    (after,) = graphs("many = {f'k{i}': [model(x[:2]).sum()] for i in range(40)}")
    assert len(after) == 24
    assert "many['k39']" in after
