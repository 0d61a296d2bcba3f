"""What was muted in a notebook stays silent on its next kernel, and is reported again when that is wished."""

import nbformat

from tests.browser.lab import PANEL
from tests.browser.test_panel import Panel
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

NAME = "kept_mutes.ipynb"
UNMUTE = f"%torchcheck unmute {SLUG}"


def kept(lab, name=NAME):
    """What the saved file says under our name; None if nothing."""
    lab.save()
    return nbformat.read(lab.server.work / name, 4).metadata.get("torch_inspector")


def load(lab):
    """The extension, in a kernel that was just started."""
    lab.wait_for_kernel()
    lab.run(0)
    lab.wait_state("live")


def findings(lab, index):
    """How many findings the panel under a cell has, once the sidebar knows of the cell's end."""
    lab.run(index)
    lab.find(".ti-Cell[data-ti-cell='2']").wait_for()
    return Panel(lab, index).node.locator(".ti-finding").count()


def test_it_holds_after_a_restart_and_in_the_next_kernel_until_it_is_undone(lab):
    a_live_notebook(lab, NAME, SETUP + LOOP, UNMUTE)
    assert findings(lab, 1) == 1
    panel = Panel(lab, 1).wait("live")
    panel.click("Mute …")
    panel.click("in this notebook")
    panel.answer("Silent in this notebook, which keeps that in its file.")
    assert kept(lab) == {"muted": [SLUG]}
    lab.restart()
    load(lab)
    assert findings(lab, 1) == 0
    lab.save()
    lab.page.goto("about:blank")
    lab.server.end_sessions()
    lab.goto(NAME)
    lab.command("torch-inspector:open")
    load(lab)
    assert findings(lab, 1) == 0
    lab.run(2)
    lab.page.get_by_text(f"{SLUG} is reported again").wait_for()
    lab.page.wait_for_timeout(500)
    assert kept(lab) is None
    lab.restart()
    load(lab)
    assert findings(lab, 1) == 1
    panel = Panel(lab, 1).wait("live")
    panel.click("Mute …")
    panel.click("in this notebook")
    panel.answer("Silent in this notebook")
    panel.click("Undo")
    panel.answer("It is reported again.")
    assert kept(lab) is None


def test_all_cells_run_after_a_restart(lab):
    a_live_notebook(lab, "all.ipynb", "import torch, time; time.sleep(1)", SETUP + LOOP)
    lab.run(1, 2)
    panel = Panel(lab, 2).wait("live")
    panel.click("Mute …")
    panel.click("in this notebook")
    panel.answer("Silent in this notebook")
    lab.restart()
    lab.wait_for_kernel()
    lab.command("notebook:run-all-cells")
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    # A kernel without subshells hears of it after the cells that wait already, if it was busy by then.
    assert panel.node.locator(".ti-finding").count() in ((0,) if lab.has_subshells() else (0, 1))


# `kept_mutes.test.mjs` has the others.
STRANGE = {
    "muted": [7, None, [SLUG], "<img src=x onerror=window.hacked=1>", "__proto__", "x" * 10_000, "no-such-pitfall"]
}


def test_strange_metadata_mutes_nothing_and_breaks_nothing(lab):
    lab.write(NAME, "%load_ext torch_inspector", SETUP + LOOP, "%torchcheck failures")
    notebook = nbformat.read(lab.server.work / NAME, 4)
    notebook.metadata["torch_inspector"] = STRANGE
    nbformat.write(notebook, lab.server.work / NAME)
    lab.goto(NAME)
    lab.command("torch-inspector:open")
    lab.page.locator(PANEL).wait_for(state="visible")
    load(lab)
    assert findings(lab, 1) == 1
    lab.run(2)
    lab.page.get_by_text("nothing went wrong inside torch_inspector").wait_for()
    assert lab.page.evaluate("() => window.hacked") is None
