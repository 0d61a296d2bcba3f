"""The line that makes a collection or a total grow."""

import ast

import pytest

from torch_inspector.observe.growth import growth


def line_of(code, path):
    found = growth(ast.parse(code), path)
    return found.line if found is not None else None


@pytest.mark.parametrize(
    ("code", "path", "line"),
    [
        ("losses = []\nfor x in y:\n    losses.append(f(x))", "losses", 3),
        ("total = 0\nfor x in y:\n    total += f(x)", "total", 3),
        ("total = 0\nfor x in y:\n    total = total + f(x)", "total", 3),
        ("h = {'loss': []}\nfor x in y:\n    h['loss'].append(f(x))", "h['loss']", 3),
        ('h = {"loss": []}\nfor x in y:\n    h["loss"].append(f(x))', "h['loss']", 3),
        ("d = {}\nfor i, x in y:\n    d[i] = f(x)", "d", 3),
        ("s = set()\nfor x in y:\n    s.add(f(x))", "s", 3),
        ("q = deque()\nfor x in y:\n    q.appendleft(f(x))", "q", 3),
        ("for x in y:\n    self.losses.append(f(x))", "self.losses", 2),
        ("outs = [f(x) for x in y]", "outs", 1),
        ("other.append(1)", "losses", None),
        ("losses.clear()", "losses", None),
        ("for x in y: losses.extend([f(x)])", "losses", 1),
    ],
)
def test_the_line_that_collects(code, path, line):
    assert line_of(code, path) == line


@pytest.mark.parametrize(
    ("code", "line"),
    [
        pytest.param(
            "def fit():\n    for x in y:\n        losses.append(f(x))\nlosses = []\nfit()", 3, id="made below"
        ),
        pytest.param(
            "for x in y:\n    losses.append(f(x))\nkept = losses\nlosses = losses[-5:]", 2, id="cut afterwards"
        ),
    ],
)
def test_the_line_that_collects_and_an_assignment_is_given(code, line):
    assert line_of(code, "losses") == line
