"""Silence at a line, in a cell, in a notebook, always; in a real shell, with a real file."""

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.profiledir import ProfileDir
from traitlets.config import Config
from traitlets.config.loader import JSONFileConfigLoader

from tests.cells import a_notebook
from tests.notebook.samples import GOOD_LOOP, LOOP, SETUP, SLUG, as_function, found
from tests.notebook.test_magics import answer
from torch_inspector.notebook import extension
from torch_inspector.notebook.muting import FILE, Muting, Wish
from torch_inspector.notebook.settings import TorchInspector
from torch_inspector.session import Settings


@pytest.fixture
def notebook(tmp_path):
    with a_notebook() as notebook:
        notebook.shell.profile_dir = ProfileDir(location=str(tmp_path))
        notebook.run(SETUP)
        yield notebook
        notebook.shell.profile_dir = None


def number(notebook):
    """Of the cell that ran last."""
    return notebook.shell.execution_count - 1


def files(folder):
    return [file.name for file in folder.iterdir() if file.suffix == ".json" or FILE in file.name]


def slugs(run):
    return [slug for slug, _, _ in found(run)]


def test_a_line_is_silent_until_it_is_edited(notebook):
    muting = notebook.extension.muting
    assert slugs(notebook.run(LOOP)) == [SLUG]
    meant = Wish(SLUG, "line", number(notebook), 4)
    assert muting.heed(meant) == ""
    run = notebook.run(LOOP)
    assert slugs(run) == []
    assert SLUG in run.unjudged, "what is silent is not called fixed"
    assert slugs(notebook.run(LOOP.replace("optimizer.step()", "optimizer.step()  # again"))) == [SLUG]
    muting.heed(meant._replace(on=False))
    assert slugs(notebook.run(LOOP)) == [SLUG]


def answers_of(loaded, asked):
    """What a widget is told."""
    told: list[dict[str, Any]] = []
    loaded._answer(asked, told.append)
    return told


def test_a_widget_can_have_it_silent(notebook):
    assert slugs(notebook.run(LOOP)) == [SLUG]
    answer_widget = partial(answers_of, notebook.extension)
    asked = {"v": 1, "ask": "mute", "slug": SLUG, "scope": "line", "cell": number(notebook), "line": 4}
    for bad in (
        None,
        "mute",
        {},
        {**asked, "v": 2},
        {**asked, "ask": "free"},
        {**asked, "ask": []},
        {**asked, "cell": "3"},
    ):
        assert answer_widget(bad) == []
    assert slugs(notebook.run(LOOP)) == [SLUG]
    said = {name: asked[name] for name in ("slug", "scope", "cell", "line")}
    assert answer_widget(asked) == [{"op": "muted", **said, "on": True, "path": "", "error": ""}]
    assert slugs(notebook.run(LOOP)) == []
    assert "no such line" in answer_widget({**asked, "line": 999})[0]["error"]
    answer_widget({**asked, "on": False})
    assert slugs(notebook.run(LOOP)) == [SLUG]


def test_a_widget_of_an_earlier_load_is_told_that_it_is_too_late(notebook):
    notebook.run(LOOP)
    asked = {"v": 1, "ask": "mute", "slug": SLUG, "scope": "line", "cell": number(notebook), "line": 4}
    earlier = notebook.extension
    extension.unload(notebook.shell)
    extension.load(notebook.shell)
    assert "loaded anew" in answers_of(earlier, asked)[0]["error"]
    assert slugs(notebook.run(LOOP)) == [SLUG]


def test_a_line_of_a_function_is_silent_wherever_it_is_called(notebook):
    notebook.run(as_function())
    defined = number(notebook)
    assert found(notebook.run("train()")) == [(SLUG, defined, 5)]
    notebook.extension.muting.heed(Wish(SLUG, "line", defined, 5))
    assert slugs(notebook.run("train()")) == []
    assert slugs(notebook.run("z = 1; train()")) == []
    assert slugs(notebook.run(LOOP)) == [SLUG]


def test_a_cell_is_silent_and_no_other(notebook):
    assert slugs(notebook.run(LOOP)) == [SLUG]
    notebook.extension.muting.heed(Wish(SLUG, "cell", number(notebook), 4))
    assert slugs(notebook.run(LOOP)) == []
    assert slugs(notebook.run("y = y\n" + LOOP)) == [SLUG]


def test_the_notebook_is_silent_and_nothing_is_written(notebook, tmp_path):
    notebook.extension.muting.heed(Wish(SLUG, "notebook"))
    assert slugs(notebook.run(LOOP)) == []
    assert files(tmp_path) == []


def test_always_is_what_ipython_reads_in_the_next_session(notebook, tmp_path):
    (tmp_path / FILE).write_text('{"TorchInspector": {"muted": ["a"], "min_bytes": 7}, "Other": {"x": 1}}')
    path = notebook.extension.muting.heed(Wish(SLUG, "always"))
    assert path == str(tmp_path / FILE)
    assert slugs(notebook.run(LOOP)) == []
    config = JSONFileConfigLoader(FILE, path=str(tmp_path)).load_config()
    settings = Settings()
    TorchInspector(settings, config=config)
    assert settings.muted == {"a", SLUG}
    assert (settings.min_nbytes, config.Other.x) == (7, 1)
    assert files(tmp_path) == [FILE]


def test_always_keeps_what_other_files_mute(tmp_path):
    config = Config({"TorchInspector": {"muted": {"from-another-file"}}})
    shell = SimpleNamespace(profile_dir=SimpleNamespace(location=str(tmp_path)), config=config)
    with a_notebook() as notebook:
        muting = Muting(notebook.extension.settings, notebook.extension.session, shell)
        muting.heed(Wish(SLUG, "always"))
        muting.heed(Wish(SLUG, "always", on=False))
    written = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    assert written == {"TorchInspector": {"muted": ["from-another-file"]}}


def test_magic_mutes_always_and_unmute_undoes_it(notebook, tmp_path):
    said = answer(notebook, f"%torchcheck mute {SLUG} --always")
    assert str(tmp_path / FILE) in said
    assert slugs(notebook.run(LOOP)) == []
    assert "is reported again" in answer(notebook, f"%torchcheck unmute {SLUG}")
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8")) == {"TorchInspector": {"muted": []}}
    assert slugs(notebook.run(LOOP)) == [SLUG]


def test_what_a_magic_undoes_is_told_because_the_notebook_may_keep_it(notebook):
    told: list[Wish] = []
    notebook.extension.muting.tell = told.append
    answer(notebook, f"%torchcheck mute {SLUG}")
    assert told == []
    answer(notebook, f"%torchcheck unmute {SLUG}")
    assert told == [Wish(SLUG, "notebook", on=False)]


@pytest.mark.parametrize("text", ["{", "[]", '{"TorchInspector": 1}', "[" * 100_000])
def test_a_file_that_is_not_understood_is_left_as_it_is(notebook, tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=FILE):
        notebook.extension.muting.heed(Wish(SLUG, "always"))
    assert (tmp_path / FILE).read_text() == text
    assert slugs(notebook.run(LOOP)) == [SLUG], "what was not done is not half done"
    assert FILE in answer(notebook, f"%torchcheck mute {SLUG} --always")


def test_a_folder_that_cannot_be_written_is_said(notebook, tmp_path):
    places = {"cannot be written": SimpleNamespace(location=str(tmp_path / "missing")), "no folder": None}
    for reason, place in places.items():
        shell = SimpleNamespace(profile_dir=place, config=Config())
        muting = Muting(notebook.extension.settings, notebook.extension.session, shell)
        with pytest.raises(ValueError, match=reason):
            muting.heed(Wish(SLUG, "always"))


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (Wish("no-such", "notebook"), "no pitfall"),
        (Wish(SLUG, "cell", 10**6), "not remembered"),
        (Wish(SLUG, "cell"), "not remembered"),
        (Wish(SLUG, "line", 1, 10**6), "no such line"),
        (Wish(SLUG, "line", 1), "no such line"),
        (Wish(SLUG, "line", 1, 0), "no such line"),
    ],
)
def test_what_is_not_there_is_said(notebook, wish, reason):
    assert number(notebook) == 1
    with pytest.raises(ValueError, match=reason):
        notebook.extension.muting.heed(wish)
    assert notebook.extension.session.settings.meant == frozenset()


def test_a_mended_cell_is_called_fixed_only_where_it_is_heard(notebook):
    notebook.run(LOOP)
    notebook.extension.muting.heed(Wish(SLUG, "cell", number(notebook)))
    before = len(notebook.published)
    notebook.run(LOOP)
    assert len(notebook.published) == before
    assert slugs(notebook.run(GOOD_LOOP)) == []
