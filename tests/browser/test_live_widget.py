"""The widget of a report stands in the place of its card while its kernel lives; after that the card is back."""

import json

import nbformat
import pytest

from tests.browser.server import HAS_ANYWIDGET, SINGLE
from tests.browser.test_panel import RUN_MIME, Panel, violations
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

pytestmark = pytest.mark.skipif(not HAS_ANYWIDGET, reason="this server has no anywidget: the card stays")
REPORT = "%%torchcheck\n" + SETUP + LOOP
EACH = """\
from ipywidgets.widgets.widget import _instances
for panel in [one for one in _instances.values() if type(one).__name__ == "RunPanel"]:
"""
RETITLE = EACH + '    panel.card = {**panel.card, "title": "told by another cell"}'
CLOSE = EACH + "    panel.close()"


def shows(panel, view):
    """Waits until it shows its card or its widget; there is one card to be seen either way."""
    panel.cell.locator(f".ti-Run[data-ti-view={view}]").wait_for()
    assert panel.node.locator(".ti-card:visible").count() == 1
    assert panel.node.get_by_text("Error displaying widget").count() == 0
    return panel


def model_id(lab, name):
    """What the file says of the widget."""
    outputs = nbformat.read(lab.server.work / name, 4).cells[1].outputs
    return next(one.data[RUN_MIME]["model_id"] for one in outputs if RUN_MIME in one.get("data", {}))


def test_it_follows_the_kernel_can_be_acted_on_and_closed(lab):
    a_live_notebook(lab, "widget.ipynb", REPORT, RETITLE, CLOSE)
    lab.run(1)
    panel = shows(Panel(lab, 1).wait("live"), "widget")
    # The extension does that here.
    assert (panel.node.locator(".ti-acts").count(), panel.node.locator(".ti-acts:visible").count()) == (1, 0)
    # So its links lead somewhere.
    link = panel.node.locator("a.ti-doc-link:visible")
    panel.node.get_by_text("Why it hurts").first.click()
    assert link.first.get_attribute("href") == f"#torch-inspector-{SLUG}"
    panel.click("Mute …")
    lab.run(2)
    panel.node.get_by_text("told by another cell").wait_for()
    # What was chosen before the card was another one still is.
    panel.click("in this cell")
    panel.answer("Silent in this cell, until the kernel restarts.")
    panel.click("Undo")
    panel.answer("It is reported again.")
    assert violations(lab, panel) == []
    panel.save("widget")
    lab.run(3)
    shows(panel, "card").wait("live").answer("It is reported again.")
    panel.click("Mute …")


def test_reload_restart_and_a_new_kernel(lab):
    a_live_notebook(lab, "lived.ipynb", REPORT)
    lab.run(1)
    shows(Panel(lab, 1), "widget")
    lab.save()
    assert model_id(lab, "lived.ipynb")
    lab.goto("lived.ipynb")
    lab.wait_for_kernel()
    shows(Panel(lab, 1).wait("live"), "widget")
    lab.restart()
    panel = shows(Panel(lab, 1).wait("static"), "card")
    assert panel.node.get_by_role("button").all_inner_texts() == ["copy"]
    lab.wait_for_kernel()
    lab.run(0)
    shows(panel.wait("static"), "card")
    lab.save()
    assert model_id(lab, "lived.ipynb"), "what ipywidgets does to a view that ends does not reach the file"
    lab.page.goto("about:blank")
    lab.server.end_sessions()
    lab.goto("lived.ipynb")
    lab.wait_for_kernel()
    shows(Panel(lab, 1).wait("static"), "card")
    lab.run(0, 1)
    shows(Panel(lab, 1).wait("live"), "widget")


@pytest.mark.skipif(SINGLE, reason="Notebook shows one document at a time")
def test_a_file_that_is_not_trusted_is_live_once_it_is(lab):
    a_live_notebook(lab, "mine.ipynb", REPORT)
    lab.run(1)
    shows(Panel(lab, 1), "widget")
    lab.save()
    notebook = nbformat.read(lab.server.work / "mine.ipynb", 4)
    notebook.metadata["changed"] = json.dumps("by a stranger")
    nbformat.write(notebook, lab.server.work / "theirs.ipynb")
    lab.share_kernel("theirs.ipynb")
    lab.find(".ti-Head-name").get_by_text("theirs.ipynb").wait_for()
    lab.wait_state("live")
    panel = Panel(lab, 1, ".jp-NotebookPanel:not(.lm-mod-hidden)")
    shows(panel.wait("static"), "card")
    lab.command("notebook:trust")
    lab.page.locator(".jp-Dialog button.jp-mod-warn").click()
    shows(panel.wait("live"), "widget")
