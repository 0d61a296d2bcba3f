"""Which indices in a text may copy, and what keeps the result."""

import ast

import pytest

from torch_inspector.facts.syntax import parse
from torch_inspector.observe.indexing import indexing_facts


def seen(code):
    tree = parse(code)
    assert tree is not None
    return [tuple(fact) for fact in indexing_facts(tree, 10)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a = x[mask]", [(11, "x", "mask", "a")]),
        ("a, b = x[~mask], x[[1, 2]]", [(11, "x", "~mask", "a"), (11, "x", "[1, 2]", "a")]),
        ("folds.append((x[m], 3))", [(11, "x", "m", "folds")]),
        ("\nfolds['a'][0] = {1: data.x[:, m]}", [(12, "data.x", ":, m", "folds")]),
        ("parts = [x[i == k] for k in range(3)]", [(11, "x", "i == k", "parts")]),
        ("i = len(x)\na = x[i]\nb = x[k]", [(13, "x", "k", "b")]),
        ("for i in range(3):\n    a = x[i]\ndef f(k):\n    b = x[k]", [(14, "x", "k", "b")]),
    ],
)
def test_indices_that_may_copy(code, expected):
    assert [(line, source, index.strip("()"), target) for line, source, index, target in seen(code)] == expected


@pytest.mark.parametrize(
    "code",
    ["a = x[1:3]", "a = x[0]", "a = x[-1]", "a = x['key']", "a = x[:, None]", "x[mask] = 0", "x[mask]", "f(x[mask])"],
)
def test_views_and_results_that_are_not_kept(code):
    assert seen(code) == []


def test_what_another_function_makes_of_it_is_no_copy():
    assert seen("a = net(x[mask])\nb.append(net(x[mask]))\nc = x[mask].mean()") == []


@pytest.mark.parametrize("index", ["(*idx, mask)", "(*idx,)", "mask, :", "(mask, 0)"])
def test_an_index_can_be_read_again(index):
    ((_, _, written, _),) = seen(f"a = x[{index}]")
    assert (written[0] == "(") == ("*" in index)
    ast.parse(f"_[{written}]")
