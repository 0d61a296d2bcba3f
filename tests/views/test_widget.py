import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ipywidgets import VBox

from tests.views.samples import CARDS
from torch_inspector.views.bundle import VIEW_MIME
from torch_inspector.views.data import card_data
from torch_inspector.views.widget import RunPanel, to_widget, view_of


@pytest.mark.parametrize("name", CARDS)
def test_widget_holds_the_card(name):
    panel = to_widget(CARDS[name], {"session": "s"})
    assert panel.card == card_data(CARDS[name])
    assert panel.message == {"session": "s"}


def test_widget_stands_among_others_and_follows_its_card():
    panel = to_widget(CARDS["run"])
    assert VBox([panel]).children == (panel,)
    assert isinstance(panel.model_id, str)
    panel.card = card_data(CARDS["state"])
    assert panel.get_state()["card"]["title"] == "torch_inspector: what is alive"


FOUND = {"slug": "a", "cell": 3, "line": 7, "message": "m", "subject": "losses", "held": "losses", "evidence": []}
NAMED = {"slug": "a", "cell": 3, "line": 7, "run": 4, "memory": False, "held": ""}
BYTES = [{"label": "held", "value": 9, "unit": "bytes"}]


def test_panel_that_is_answered_names_its_findings_and_tells_the_answers(monkeypatch):
    told: list[object] = []
    # Before the panel is made: it gives its own `send` away.
    monkeypatch.setattr(RunPanel, "send", lambda _, answer: told.append(answer))
    panel = to_widget(CARDS["run"], {"cell": 4, "findings": [FOUND]}, lambda asked, tell: tell({"op": asked["ask"]}))
    assert panel.get_state()["findings"] == [NAMED]
    panel._handle_custom_msg({"ask": "free"}, [])
    assert told == [{"op": "free"}]


@pytest.mark.parametrize("held", ["losses", "d['losses']", ""])
def test_panel_names_what_holds_memory(held):
    found = {**FOUND, "held": held, "evidence": BYTES}
    panel = to_widget(CARDS["run"], {"cell": 4, "findings": [found]}, lambda *_: None)
    assert panel.get_state()["findings"] == [{**NAMED, "memory": True, "held": held}]


@pytest.mark.parametrize("answer", [None, lambda *_: None])
def test_panel_shows_another_run(answer):
    panel = to_widget(CARDS["state"], {}, answer)
    panel.show(CARDS["run"], {"cell": 4, "findings": [FOUND]})
    assert panel.get_state()["card"] == card_data(CARDS["run"])
    assert panel.get_state()["findings"] == ([] if answer is None else [NAMED])


def test_view_is_the_widget_s_own():
    panel = to_widget(CARDS["run"])
    data, metadata = view_of(panel)
    assert data[VIEW_MIME]["model_id"] == panel.model_id
    assert (set(data), metadata) == ({VIEW_MIME}, {})


def test_colab_is_told_who_draws_it(monkeypatch):
    asked: list[int] = []
    colab: Any = ModuleType("google.colab.output")
    colab.enable_custom_widget_manager = lambda: asked.append(1)
    colab._widgets = SimpleNamespace(_installed_url="https://example.org/manager.js")
    monkeypatch.setitem(sys.modules, "google.colab.output", colab)
    _, metadata = view_of(to_widget(CARDS["run"]))
    assert metadata == {VIEW_MIME: {"colab": {"custom_widget_manager": {"url": "https://example.org/manager.js"}}}}
    assert asked


def test_panel_that_nobody_answers_names_none(monkeypatch):
    panel = to_widget(CARDS["run"], {"cell": 4, "findings": [FOUND]})
    assert panel.get_state()["findings"] == []
    silent = to_widget(CARDS["run"], None, lambda *_: None)
    monkeypatch.setattr(silent, "send", None)
    silent._handle_custom_msg("anything", [])


def test_front_end_gets_script_style_and_card_only():
    state = to_widget(CARDS["run"], {"secret": 1}).get_state()
    assert "export default" in state["_esm"]
    assert ".ti-card" in state["_css"]
    assert "message" not in state
    assert isinstance(to_widget(CARDS["run"]), RunPanel)
