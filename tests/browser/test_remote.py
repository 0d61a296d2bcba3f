"""A kernel on another server than the one that the page and its notebooks come from.

Only where it is asked for: with a kernel of version 7, JupyterLab itself may wait for ever for such a one.
"""

import os
import time

import pytest

from tests.browser.lab import Lab
from tests.browser.server import Server
from tests.browser.test_panel import Panel
from tests.browser.test_sidebar import SLOW, a_live_notebook, reloaded
from tests.notebook.samples import LOOP, SETUP, SLUG

pytestmark = pytest.mark.skipif("TORCH_INSPECTOR_REMOTE" not in os.environ, reason="TORCH_INSPECTOR_REMOTE is not set")


@pytest.fixture
def far(server, browser, tmp_path):
    """A page of a server that has its kernels on the usual one."""
    near = Server(tmp_path / "near", server.url)
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    lab = Lab(context.new_page(), near)
    yield lab
    context.close()
    server.end_sessions()
    near.stop()
    assert lab.complaints == []


def test_the_sidebar_and_the_panel_are_live(far, server):
    a_live_notebook(far, "far.ipynb", SETUP + LOOP, SLOW)
    assert len(server.call("GET", "kernels")) == 1
    far.run(1)
    far.find(f"[data-ti-slug={SLUG}]").wait_for()
    panel = Panel(far, 1).wait("live")
    far.start(2)
    far.find(".ti-Head-words").get_by_text("running").wait_for()
    begun = time.monotonic()
    panel.click("I meant this")
    panel.answer("Silent at this line")
    assert time.monotonic() - begun < 3 or not far.has_subshells()
    far.find(".ti-Cell[data-ti-cell='3']").wait_for()


def test_reload_and_restart(far):
    a_live_notebook(far, "far_reload.ipynb", SETUP + LOOP)
    far.run(1)
    far.find(f"[data-ti-slug={SLUG}]").wait_for()
    reloaded(far, "far_reload.ipynb")
    far.find(f"[data-ti-slug={SLUG}]").wait_for()
    # The other server does not say that a kernel has started again: that shows with its next answer.
    far.restart()
    far.run(0)
    far.wait_state("live")
    far.find(f"[data-ti-slug={SLUG}]").wait_for(state="detached")
