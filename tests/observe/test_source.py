"""What the text of a cell says."""

import ast

import pytest

from tests.fakes import a_cell
from torch_inspector.facts import syntax
from torch_inspector.observe import source


def test_calls_by_line():
    calls = source.call_facts(ast.parse("a.b(c())\nf()()\nx[0].g()"), 3)
    assert [(call.name, call.line) for call in calls] == [("a.b", 4), ("c", 4), ("f", 5)]


@pytest.mark.parametrize("code", ["def broken(:", "\0", "%time x", "(" * 300])
def test_text_that_is_no_python_says_nothing(code):
    assert syntax.parse(code) is None
    assert source.source_trace(a_cell(code)).calls == ()


def test_the_text_of_a_cell_in_full():
    trace = source.source_trace(a_cell("…", code="for i in x:\n    fs.append(lambda: i)", line_offset=2))
    assert trace.loop_functions[0].line == 4
    assert [call.name for call in trace.calls] == ["fs.append"]


NESTED = """a = 1
def f():
    b = 2
    async def g():
        return b
    return g
class C:
    def h(self):
        return 1"""


@pytest.mark.parametrize(
    ("line", "name"), [(1, ""), (2, "f"), (3, "f"), (5, "g"), (6, "f"), (7, ""), (9, "h"), (99, "")]
)
def test_the_innermost_function_around_a_line(line, name):
    tree = ast.parse(NESTED)
    assert syntax.name_around(tree, line) == name
    assert getattr(syntax.scope_at(tree, line), "name", "") == name


@pytest.mark.parametrize(
    ("text", "inner"),
    [("x.detach()", "x"), ("f(x).data", "f(x)"), ("torch.detach(x)", None), ("x.detach", None), ("x.data()", None)],
)
def test_what_a_detach_takes_the_history_of(text, inner):
    found = syntax.attached(ast.parse(text, mode="eval").body)
    assert (ast.unparse(found) if found is not None else None) == inner
