"""Names that are given a value again and again are looked at once each, not in every order."""

import ast
from typing import Any

import pytest

from tests.cells import a_notebook
from torch_inspector.observe import expressions
from torch_inspector.observe.behind_names import values_behind

START = "import torch\nimport torch.nn.functional as F\n"
AGAIN = "\n".join(["x = torch.sin(x)"] * 40)


class Given:
    """A scope of which only what names are given is asked."""

    def __init__(self, text):
        self.values, self.asked = text, []

    def given(self, name):
        self.asked.append(name)
        return [(ast.parse(one, mode="eval").body, self) for one in self.values.get(name, ())]


def test_each_name_is_asked_for_once_and_the_nearest_come_first():
    scope: Any = Given({"x": ["x + y", "y * x"], "y": ["x + z"], "z": ["a"], "a": ["b"]})
    found = [ast.unparse(one) for one, _ in values_behind(scope, ast.parse("x.T", mode="eval").body, 3)]
    assert found == ["x.T", "x + y", "y * x", "x + z", "a"]
    assert scope.asked == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("first", "last", "slug"),
    [
        ("torch.randn(8, 5, 3)", "rows = x.reshape(8, 3, 5)", "view-where-permute-meant"),
        ("torch.randn(8, 1)", "d = x - torch.randn(8)", "silent-broadcast"),
        ("torch.randn(2, 4, 6)", "rows = x.view(2, 6, 4)", "view-where-permute-meant"),
    ],
)
def test_a_variable_that_is_given_a_value_in_many_lines_costs_as_many_looks(monkeypatch, first, last, slug):
    asked, given = list[str](), expressions.Scope.given

    def counted(scope, name):
        asked.append(name)
        return given(scope, name)

    monkeypatch.setattr(expressions.Scope, "given", counted)
    with a_notebook() as notebook:
        notebook.run(f"{START}x0, y = {first}, torch.randn(8)")
        found = notebook.run(f"x = x0\n{AGAIN}\n{last.replace('torch.randn(8)', 'y')}").findings
    assert [one.slug for one in found] == [slug]
    assert len(asked) < 400
