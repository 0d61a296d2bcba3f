"""Lines of findings are lines as typed, whatever IPython makes of the cell; unit tests of the text functions below."""

import textwrap

import pytest

from tests.cells import a_notebook
from tests.notebook.samples import GUILTY, LOOP, SETUP, SLUG, as_function, found, in_step, line_of
from torch_inspector.notebook.cells import asks_for_report, make_cell, nested_cell, take_out_report

AWAIT = "import asyncio\nawait asyncio.sleep(0)\n"
TYPED = {
    "plain": LOOP,
    "leading blank lines": "\n  \n\n" + LOOP,
    "indented": "\n    a = 1\n" + textwrap.indent(LOOP, "    "),
    "comment first": "# training\n\n" + LOOP,
    "pasted prompts": ">>> a = 1\n"
    + "\n".join(f"{'...' if n else '>>>'} {s}" for n, s in enumerate(LOOP.splitlines())),
    "await": AWAIT + LOOP,
    "shell escape": "!true\n" + LOOP,
    "time": "%%time\n" + LOOP,
    "time, blank line": "%%time\n\n" + LOOP,
    "blank lines, time, blank lines": "\n\n%%time\n\n\n" + LOOP,
    "time, comment": "%%time\n# training\n" + LOOP,
    "capture": "%%capture\n" + LOOP,
    "capture, blank line": "%%capture out\n\n" + LOOP,
    "capture, time": "%%capture\n%%time\n" + LOOP,
    "capture, blank, time, blank": "%%capture\n\n%%time\n\n" + LOOP,
    "time, capture": "%%time\n%%capture\n" + LOOP,
    "report": "%%torchcheck\n" + LOOP,
    "report, blank lines": "\n%%torchcheck\n\n\n" + LOOP,
    "report, indented": "%%torchcheck\n    a = 1\n" + textwrap.indent(LOOP, "    "),
    "report, await": "%%torchcheck\n" + AWAIT + LOOP,
    "report, time": "%%torchcheck\n%%time\n" + LOOP,
    "report, time, blank line": "%%torchcheck\n%%time\n\n" + LOOP,
    "report, blank line, time": "%%torchcheck\n\n%%time\n" + LOOP,
    "report, capture, time": "%%torchcheck\n%%capture\n%%time\n" + LOOP,
    "report below time": "%%time\n%%torchcheck\n" + LOOP,
    "report below capture": "%%capture\n%%torchcheck\n" + LOOP,
    "report with a word": "%%torchcheck please\n" + LOOP,
    "report with a word, blank line": "%%torchcheck please\n\n" + LOOP,
    "time in a line": as_function() + "%time train()\n",
    "time in a line, one statement": "%time " + LOOP.replace("\n    ", " ", 1).replace("\n    ", "; ").strip(),
    "run in a line": as_function() + "def again():\n    train()\n%prun -q again()\n",
}


@pytest.mark.parametrize("source", TYPED.values(), ids=TYPED)
def test_line_is_the_line_as_typed(source):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        assert notebook.errors == [None, None]
        assert found(run) == [(SLUG, 2, line_of(source))]
        assert GUILTY in run.findings[0].code
        assert run.cell.wants_report == ("%%torchcheck" in source)
        assert len(notebook.published) == 1 + ("please" in source)
        in_step(notebook)


@pytest.mark.parametrize("first", ["", "%%capture\n", "%%torchcheck\n%%capture\n\n"])
@pytest.mark.parametrize("call", ["\n\ntrain()", "%%time\n1\ntrain()", "%time train()"])
def test_function_of_an_earlier_cell(first, call):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(first + as_function())
        run = notebook.run(call)
        assert found(run) == [(SLUG, 2, line_of(first + as_function()))]
        in_step(notebook)


@pytest.mark.parametrize(
    "body",
    [as_function(), "train = lambda: [(model(x).sum().backward(), optimizer.step()) for _ in range(4)]"],
    ids=["function", "lambda"],
)
@pytest.mark.parametrize("call", ["1\ntrain()", "%%time\n1\n2\n3\n4\ntrain()"])
def test_function_of_an_earlier_timed_cell_has_its_own_line_or_that_of_its_call(body, call):
    definition = "%%time\n" + body
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(definition)
        (finding,) = notebook.run(call).findings
        own, called = (2, line_of(definition)), (3, line_of(call, "train()"))
        assert (finding.cell, finding.line) in (own, called)
        in_step(notebook)


@pytest.mark.parametrize("code", [LOOP, "%%time\n" + LOOP, "\n\n" + LOOP])
def test_code_run_as_a_cell_has_the_line_that_runs_it(code):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"code = {code!r}\n\n_ = get_ipython().run_cell(code)\n2")
        assert found(run) == [(SLUG, 2, 3)]
        in_step(notebook)


def test_report_called_from_code_has_the_line_that_calls_it():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"code = {LOOP!r}\n\nget_ipython().run_cell_magic('torchcheck', '', code)")
        assert found(run) == [(SLUG, 2, 3)]
        assert run.cell.wants_report
        in_step(notebook)


def test_same_text_in_two_cells():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        assert [found(notebook.run(LOOP)) for _ in range(2)] == [[(SLUG, 2, 4)], [(SLUG, 3, 4)]]


# the functions -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "line_offset", "body_offset", "wants_report"),
    [
        ("x", 0, 0, False),
        ("", 0, 0, False),
        ("\n \n", 0, 0, False),
        ("\n\nx", 2, 0, False),
        ("%%torchcheck\nx", 0, 0, True),
        ("\n%%torchcheck\nx", 1, 0, True),
        ("%%torchcheck", 0, 0, True),
        ("%%torchchecker\nx", 0, 1, False),
        ("%%time\nx", 0, 1, False),
        ("%%time\n\n\nx", 0, 3, False),
        ("%%torchcheck\n%%time\nx", 1, 2, True),
        ("%%capture\n%%time\nx", 0, 2, False),
        ("%%time\n%%torchcheck\nx", 0, 1, True),
    ],
)
def test_offsets(raw, line_offset, body_offset, wants_report):
    cell = make_cell(raw, raw, 3, "id")
    assert (cell.line_offset, cell.body_offset, cell.wants_report) == (line_offset, body_offset, wants_report)
    assert (cell.number, cell.id, cell.source, cell.code) == (3, "id", raw, raw)


def test_body_of_a_cell_magic_is_a_cell_of_the_same_number():
    outer = make_cell("%%capture\n\nx\ny\n", "…", 7, "id")
    inner = nested_cell("\nx\ny\n", "x\ny\n", outer)
    assert (inner.number, inner.id, inner.source, inner.line_offset) == (7, "id", outer.source, 2)


@pytest.mark.parametrize("raw", ["", "z", "x\ny", "%%capture\nx\ny", "y\nx"])
def test_other_code_is_no_body(raw):
    outer = make_cell("%%capture\nx\ny", "…", 7, None) if raw != "x\ny" else make_cell("x\ny", "x\ny", 7, None)
    assert nested_cell(raw, raw, outer) is None


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("%%torchcheck", True),
        ("%%torchcheck  ", True),
        ("%%torchcheck a", True),
        ("%torchcheck", False),
        ("", False),
        ("%%torchcheck?", False),
    ],
)
def test_first_line_that_asks_for_the_report(line, asks):
    assert asks_for_report(line) is asks


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (["x\n"], ["x\n"]),
        (["%%time\n", "%%torchcheck\n"], ["%%time\n", "%%torchcheck\n"]),
        (["%%torchcheck\n", "x\n"], ["# %%torchcheck\n", "x\n"]),
        (["%%torchcheck"], ["# %%torchcheck"]),
        (["%%torchcheck\n", "%%time\n", "x\n"], ["%%time\n", "x\n"]),
        (["%%torchcheck?\n"], ["%%torchcheck?\n"]),
    ],
)
def test_report_line_is_taken_out(lines, expected):
    assert take_out_report(lines) == expected
