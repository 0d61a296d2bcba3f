import pytest
from ipywidgets import VBox

from tests.views.samples import CARDS
from torch_inspector.views.data import card_data
from torch_inspector.views.widget import RunPanel, to_widget


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


FOUND = {"slug": "a", "cell": 3, "line": 7, "message": "m"}


def test_panel_that_is_answered_names_its_findings_and_tells_the_answer(monkeypatch):
    told: list[object] = []
    answers = {"mute": {"op": "muted"}}
    panel = to_widget(CARDS["run"], {"cell": 4, "findings": [FOUND]}, lambda asked: answers[asked["ask"]])
    monkeypatch.setattr(panel, "send", told.append)
    assert panel.get_state()["findings"] == [{"slug": "a", "cell": 3, "line": 7, "run": 4}]
    panel._handle_custom_msg({"ask": "mute"}, [])
    assert told == [{"op": "muted"}]


def test_panel_that_nobody_answers_names_none(monkeypatch):
    panel = to_widget(CARDS["run"], {"cell": 4, "findings": [FOUND]})
    assert panel.get_state()["findings"] == []
    silent = to_widget(CARDS["run"], None, lambda _: None)
    monkeypatch.setattr(silent, "send", None)
    silent._handle_custom_msg("anything", [])


def test_front_end_gets_script_style_and_card_only():
    state = to_widget(CARDS["run"], {"secret": 1}).get_state()
    assert "export default" in state["_esm"]
    assert ".ti-card" in state["_css"]
    assert "message" not in state
    assert isinstance(to_widget(CARDS["run"]), RunPanel)
