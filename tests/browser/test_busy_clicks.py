"""Clicks while a cell runs: answered at once where there are subshells, and after the cell elsewhere."""

import time

import pytest

from tests.browser.server import SINGLE
from tests.browser.test_panel import Panel
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

SECONDS = 6
SLEEP = f"import time\ntime.sleep({SECONDS})\nprint('slept well')"
WAITS = "A cell is running: the answer comes when it has ended."
# The subshells of the kernel of the notebook in front, over a connection of its own.
WATCH = """async () => {
    const all = [window.jupyterapp.shell.currentWidget, ...window.jupyterapp.shell.widgets('main')];
    const { kernel } = all.find(one => one?.sessionContext).sessionContext.session;
    window.tiOther = kernel.clone();
    await window.tiOther.info;
}"""
SUBSHELLS = "async () => (await window.tiOther.requestListSubshell({}).done).content.subshell_id.length"
CLOSE = """() => {
    const all = [window.jupyterapp.shell.currentWidget, ...window.jupyterapp.shell.widgets('main')];
    all.find(one => one?.sessionContext).dispose();
}"""


def sleep(lab):
    """Begins to run the cell that sleeps."""
    lab.start(2)
    lab.find(".ti-Head-words").get_by_text("running").wait_for()


def slept(lab):
    """What that cell says when it has ended."""
    return lab.page.locator(".jp-Notebook .jp-Cell").nth(2).locator(".jp-OutputArea-output").get_by_text("slept well")


def assert_slept(lab):
    """The cell has come to its end, and the kernel is said to be idle."""
    slept(lab).wait_for()
    lab.page.wait_for_timeout(500)
    assert lab.status() == "idle"


@pytest.mark.measured
def test_mute_is_answered_as_soon_as_it_can_be(lab):
    a_live_notebook(lab, "click.ipynb", SETUP + LOOP, SLEEP, "%torchcheck failures")
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    sleep(lab)
    begun = time.monotonic()
    panel.click("I meant this")
    if lab.has_subshells():
        panel.answer("Silent at this line")
        assert time.monotonic() - begun < 1
        for _ in range(10):
            lab.page.wait_for_timeout(100)
            assert lab.status() == "busy"
        panel.click("Undo")
        panel.answer("It is reported again.")
    else:
        panel.answer(WAITS)
        panel.answer("Silent at this line")
        slept(lab).wait_for(timeout=1000)
    assert_slept(lab)
    lab.run(3)
    lab.page.get_by_text("nothing went wrong inside torch_inspector").wait_for()


def test_a_look_at_memory_waits_and_says_so(lab):
    kept = "kept = []\nfor _ in range(30):\n    kept.append((model(x) ** 2).sum())\n"
    a_live_notebook(lab, "look.ipynb", "%config TorchInspector.min_bytes = 0\n" + SETUP + kept, SLEEP)
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    sleep(lab)
    panel.click("Free memory …")
    panel.answer(WAITS)
    panel.node.locator(".ti-Answer").get_by_text(WAITS).wait_for(state="detached")
    assert_slept(lab)


@pytest.mark.skipif(SINGLE, reason="Notebook shows one document at a time")
def test_one_subshell_is_made_and_it_goes_with_the_notebook(lab):
    a_live_notebook(lab, "subshell.ipynb", SETUP + LOOP, SLEEP)
    if not lab.has_subshells():
        pytest.skip("this kernel or application has no subshells")
    lab.page.evaluate(WATCH)
    assert lab.page.evaluate(SUBSHELLS) == 0
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    sleep(lab)
    for _ in range(2):
        panel.click("I meant this")
        panel.answer("Silent at this line")
        panel.click("Undo")
        panel.answer("It is reported again.")
    assert lab.page.evaluate(SUBSHELLS) == 1
    assert_slept(lab)
    lab.page.evaluate(CLOSE)
    lab.page.wait_for_function(f"async () => await ({SUBSHELLS})() === 0")


def test_a_page_that_is_closed_takes_its_subshell_along(lab, another):
    a_live_notebook(lab, "closed.ipynb", SETUP + LOOP, SLEEP)
    if not lab.has_subshells():
        pytest.skip("this kernel or application has no subshells")
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    sleep(lab)
    panel.click("I meant this")
    panel.answer("Silent at this line")
    assert_slept(lab)
    lab.save()
    lab.page.evaluate(WATCH)
    assert lab.page.evaluate(SUBSHELLS) == 1
    lab.page.close(run_before_unload=True)
    another.goto("closed.ipynb")
    another.wait_for_kernel()
    another.page.evaluate(WATCH)
    another.page.wait_for_function(f"async () => await ({SUBSHELLS})() === 0")


def test_a_restart_forgets_the_subshell(lab):
    a_live_notebook(lab, "again.ipynb", SETUP + LOOP, SLEEP)
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    sleep(lab)
    panel.click("I meant this")
    panel.answer("Silent at this line" if lab.has_subshells() else WAITS)
    lab.restart()
    panel.wait("static")
    lab.wait_for_kernel()
    lab.run(0)
    lab.wait_state("live")
    lab.run(1)
    sleep(lab)
    panel.wait("live").click("I meant this")
    panel.answer("Silent at this line")
    assert_slept(lab)
    assert SLUG in panel.node.inner_html()
