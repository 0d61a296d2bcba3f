"""What is published under a cell: one bundle per finding cell, nothing under a clean one, the panel settings."""

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import torch_inspector
from tests.cells import a_notebook
from tests.notebook.samples import GOOD_LOOP, LOOP, MIMES, RUN_MIME, SETUP, typed
from torch_inspector.notebook import display, extension
from torch_inspector.views.bundle import VIEW_MIME
from torch_inspector.views.card import Card, Line

CARD = Card("a title", "calm", (Line("a line"),))
KEEPING = "for _ in range(4):\n    loss = model(x).sum()\n    loss.backward()\n    {}.append(loss)"
LONG = "'k' * 10**6"
TURNED = "\u05d0\u05d1\u05d2"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def notebook():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        yield notebook


class Published(list[Any]):
    """Takes the place of `shell.display_pub`."""

    def publish(self, data, metadata):
        assert metadata == {}
        self.append(data)


def a_shell(*, kernel=True, stdin=True):
    """As much of a shell as the view looks at."""
    if not kernel:
        return type("TerminalInteractiveShell", (), {})()
    return SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=stdin), display_pub=Published())


def shown(shell, panel="auto", *, live=False):
    """The one bundle that a card becomes."""
    shell.display_pub = Published()
    display.show_card(shell, CARD, None, display.Manner(panel, live))
    (data,) = shell.display_pub
    return data


def test_finding_is_one_bundle(notebook):
    notebook.run(LOOP)
    (bundle,) = notebook.published
    assert set(bundle) == MIMES
    json.dumps(bundle[RUN_MIME])


def test_clean_cells_show_nothing(notebook):
    for source in (GOOD_LOOP, "1 + 1", "%%time\n" + GOOD_LOOP, "1 / 0"):
        notebook.run(source)
    assert notebook.published == []


def test_clean_cell_prints_nothing(notebook):
    assert typed(notebook, GOOD_LOOP)[1] == ""


@pytest.mark.parametrize(
    ("panel", "mimes"),
    [
        ("auto", MIMES),
        ("html", MIMES),
        ("text", {"text/plain"}),
        ("widget", {*MIMES, VIEW_MIME}),
        ("off", None),
    ],
)
def test_panel_setting(notebook, panel, mimes):
    notebook.extension.settings.panel = panel
    run = notebook.run(LOOP)
    assert [set(data) for data in notebook.published] == ([] if mimes is None else [mimes])
    assert len(run.findings) == 1, "the setting is about what is shown only"


@pytest.mark.parametrize("panel", ["auto", "html", "text", "widget", "off"])
def test_report_and_magics_answer_under_every_setting(notebook, panel):
    notebook.extension.settings.panel = panel
    for number, source in enumerate(("%%torchcheck\n1", "%torchcheck", "%torchcheck list", "%torchcheck help"), 1):
        notebook.run(source)
        assert len(notebook.published) == number
        assert notebook.published[-1]["text/plain"]


@pytest.mark.parametrize(
    "source",
    [
        f"held = {{{HOSTILE!r}: []}}\n" + KEEPING.format(f"held[{HOSTILE!r}]"),
        f"# {HOSTILE}\n" + LOOP.replace("step()", f"step()  # {HOSTILE}"),
        f"class Net(nn.Linear): pass\nNet.__name__ = {HOSTILE!r}\nNet(3, 1)",
        f"{TURNED} = []\n" + KEEPING.format(TURNED),
        f"held = {{{LONG}: []}}\n" + KEEPING.format(f"held[{LONG}]"),
        f"# {'x' * 10**6}\n" + LOOP + f"# {'y' * 10**6}",
        f"text = {HOSTILE!r}\nmodel(x.to('meta'))  # \u202e {HOSTILE} \x1b[2J",
    ],
    ids=[
        "key of a dictionary",
        "comment",
        "name of a class",
        "letters of the right",
        "long key",
        "long lines",
        "error",
    ],
)
@pytest.mark.parametrize("head", ["", "%%torchcheck\n"])
def test_hostile_names_are_escaped(notebook, head, source):
    notebook.extension.settings.min_bytes = 0
    run = notebook.run(head + source)
    assert run.findings
    (bundle,) = notebook.published
    assert "<script" not in bundle["text/html"]
    assert not set("\u202e\x1b\u200f") & set("".join(bundle[mime] for mime in ("text/html", "text/plain")))
    assert len(json.dumps(bundle).encode()) < 60_000


def test_terminal_gets_text_only():
    assert set(shown(a_shell(kernel=False), live=True)) == {"text/plain"}


VIEWS = {
    # (live, of a run): the front end gets the view itself
    "vscode": {(True, True): True, (True, False): True, (False, True): True, (False, False): False},
    "colab": {},
    "another": {},
}
MADE = {
    "vscode": {(True, True), (True, False), (False, True)},
    "colab": set(),
    "another": {(True, True), (True, False)},
}


@pytest.mark.parametrize("front_end", VIEWS)
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("of_run", [True, False])
def test_where_a_card_becomes_a_widget_by_itself(monkeypatch, front_end, live, of_run):
    monkeypatch.setattr(display, "in_vscode", lambda _: front_end == "vscode")
    monkeypatch.setattr(display, "in_colab", lambda: front_end == "colab")
    shell = a_shell()
    message = {"session": "s", "cell": 1, "findings": []} if of_run else None
    widget = display.show_card(shell, CARD, message, display.Manner("auto", live))
    assert (widget is not None) == ((live, of_run) in MADE[front_end])
    assert (VIEW_MIME in shell.display_pub[0]) == VIEWS[front_end].get((live, of_run), False)


def test_colab_gets_a_widget_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(display, "in_colab", lambda: True)
    assert VIEW_MIME in shown(a_shell(), "widget")


@pytest.mark.parametrize("panel", ["auto", "html", "text", "widget"])
def test_no_widget_where_nobody_sits(monkeypatch, panel):
    def fail(*_):
        raise AssertionError("a widget was made")

    monkeypatch.setattr(display, "_widget", fail)
    assert VIEW_MIME not in shown(a_shell(stdin=False), panel, live=True)


def test_missing_ipywidgets_means_html(monkeypatch):
    monkeypatch.setattr(display, "_widget", lambda *_: None)
    assert set(shown(a_shell(), "widget", live=True)) == {"text/plain", "text/html"}


@pytest.mark.parametrize(("name", "value"), [("VSCODE_PID", "1"), ("VSCODE_CWD", "/")])
def test_vscode_is_known_by_its_environment(monkeypatch, name, value):
    for other in ("VSCODE_PID", "VSCODE_CWD"):
        monkeypatch.delenv(other, raising=False)
    assert not display.in_vscode(SimpleNamespace(user_ns={}))
    monkeypatch.setenv(name, value)
    assert display.in_vscode(SimpleNamespace(user_ns={}))


def test_vscode_is_known_by_what_it_writes_into_kernels_elsewhere(monkeypatch):
    for other in ("VSCODE_PID", "VSCODE_CWD"):
        monkeypatch.delenv(other, raising=False)
    assert display.in_vscode(SimpleNamespace(user_ns={"__vsc_ipynb_file__": "/a.ipynb"}))


def test_colab_is_known_by_its_package(monkeypatch):
    assert not display.in_colab()
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    assert display.in_colab()


def run_as(notebook, source, cell_id):
    """Runs a cell as a front end that names it does."""
    notebook.shell.run_cell(source, store_history=True, cell_id=cell_id)


def test_widget_of_a_cell_ends_when_it_runs_again(notebook):
    notebook.extension.settings.panel = "widget"
    panels = notebook.extension.panels
    run_as(notebook, LOOP, "a")
    (first,) = panels._of.values()
    run_as(notebook, LOOP, "b")
    assert first.comm is not None
    run_as(notebook, GOOD_LOOP, "a")
    assert first.comm is None
    quiet_line = panels._of["a"]
    run_as(notebook, GOOD_LOOP, "a")
    assert quiet_line.comm is None
    assert set(panels._of) == {"b"}


def test_panel_of_the_user_s_own_follows_until_it_is_closed(notebook):
    panel = notebook.extension.panels.follow()
    assert panel.card["title"] == "torch_inspector: nothing to show yet"
    notebook.run(LOOP)
    first = panel.card["title"]
    assert len(panel.findings) == 1
    notebook.run(LOOP)
    assert panel.card["title"] != first
    panel.close()
    notebook.run(LOOP)
    assert notebook.extension.panels._following == []


def test_panel_needs_the_extension(monkeypatch):
    monkeypatch.setattr(extension, "get_ipython", lambda: None)
    with pytest.raises(RuntimeError, match="load_ext torch_inspector"):
        torch_inspector.panel()


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("400", 120)])
def test_text_is_as_wide_as_reads_well(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert display.text_width() == width
