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


def test_front_end_gets_script_style_and_card_only():
    state = to_widget(CARDS["run"], {"secret": 1}).get_state()
    assert "export default" in state["_esm"]
    assert ".ti-card" in state["_css"]
    assert "message" not in state
    assert isinstance(to_widget(CARDS["run"]), RunPanel)
