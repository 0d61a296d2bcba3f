"""Whoever uses the keyboard in a panel goes on where the last key has led, and not at the top of the page."""

from tests.browser.test_panel import Panel
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP

FOCUSED = "() => document.activeElement.innerText"


def press(lab, panel, text, key="Enter"):
    """Presses a button by a key."""
    button = panel.node.locator(".ti-Actions").get_by_text(text, exact=True).first
    button.focus()
    lab.page.keyboard.press(key)
    return button


def test_focus_goes_on_in_the_answer_when_what_had_it_goes(lab):
    a_live_notebook(lab, "focus.ipynb", SETUP + LOOP)
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    opener = press(lab, panel, "Mute …")
    choices = panel.node.locator(".ti-Choices")
    choices.wait_for()
    # Escape closes it, wherever in it one is.
    press(lab, panel, "in this notebook", "Escape")
    choices.wait_for(state="hidden")
    assert lab.page.evaluate(FOCUSED) == "Mute …"
    assert opener.get_attribute("aria-expanded") == "false"
    press(lab, panel, "Mute …")
    press(lab, panel, "Mute …", "Escape")
    choices.wait_for(state="hidden")
    press(lab, panel, "Mute …")
    press(lab, panel, "in this cell")
    panel.answer("Silent in this cell")
    assert lab.page.evaluate(FOCUSED) == "Undo"
    lab.page.keyboard.press("Enter")
    panel.answer("It is reported again.")
    assert lab.page.evaluate(FOCUSED) == "It is reported again."
    press(lab, panel, "I meant this")
    panel.answer("Silent at this line")
    assert lab.page.evaluate(FOCUSED) == "I meant this"
    press(lab, panel, "Write it into the line")
    panel.answer("The comment is in the line.")
    assert lab.page.evaluate(FOCUSED) == "The comment is in the line."
