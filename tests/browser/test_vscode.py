"""The report where nothing but widgets is drawn: in VS Code's own bundle of them, on a kernel as VS Code starts it."""

import os

import pytest

from tests.browser.server import HAS_ANYWIDGET
from tests.browser.test_panel import AXE, KEPT
from tests.browser.vscode.host import VIEW_MIME, Host, add_kernel, missing, set_up
from tests.images import IMAGES
from tests.notebook.samples import LOOP, RUN_MIME, SETUP

LOAD = "%load_ext torch_inspector"
REPORT = "%%torchcheck\n" + SETUP + LOOP
RETITLE = """\
from ipywidgets.widgets.widget import _instances
for panel in [one for one in _instances.values() if type(one).__name__ == "RunPanel"]:
    panel.card = {**panel.card, "title": "told by another cell"}
"""
# The colours of VS Code's own themes.
THEMES = tuple(
    f"background: {ground}; color: {ink}; font: 13px sans-serif"
    for ground, ink in (("#ffffff", "#3b3b3b"), ("#1f1f1f", "#cccccc"))
)
SLOW = "import time\ntime.sleep(1.5)"
pytestmark = [
    pytest.mark.skipif(not HAS_ANYWIDGET, reason="the kernel has no anywidget"),
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()} (npm run vscode in labextension/)"),
]


@pytest.fixture(scope="module")
def place(server):
    """The server, with the page and a kernel of VS Code."""
    set_up(server)
    add_kernel(server, "vscode", VSCODE_PID="1")
    return server


@pytest.fixture
def host(place, browser):
    """A page, with a clean console at the end."""
    context = browser.new_context(viewport={"width": 1000, "height": 1000})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=place.url)
    one = Host(context.new_page(), place)
    yield one
    context.close()
    place.begin_to_end_sessions()
    assert one.complaints == []


def report_of(host, kernel="vscode"):
    """What a cell with a mistake is answered."""
    host.start(kernel)
    assert host.run(LOAD) == []
    (output,) = host.run(REPORT)
    assert {"text/html", "text/plain", RUN_MIME} <= set(output)
    return output


def answer_of(host, cell):
    """The one panel under a cell, drawn and opened."""
    (output,) = [one for one in host.run(cell) if RUN_MIME in one]
    return finding_in(host.draw(output))


def finding_in(drawn):
    """The first finding, opened."""
    finding = drawn.locator("details.ti-finding").first
    finding.wait_for()
    if finding.get_attribute("open") is None:
        finding.locator(":scope > summary").click()
    finding.locator(":scope > .ti-inside").wait_for(state="visible")
    return finding


def test_finding_is_opened_copied_and_meant(host):
    finding = finding_in(host.draw(report_of(host)))
    finding.get_by_role("button", name="copy: ").first.click()
    finding.get_by_text("copied", exact=True).wait_for()
    assert "zero_grad" in host.page.evaluate("() => navigator.clipboard.readText()")
    assert len(host.run(LOOP)) == 1
    finding.get_by_role("button", name="Mute always").wait_for()
    finding.get_by_role("button", name="I meant this").click()
    finding.get_by_text("Silent at this line, until").wait_for()
    assert "no findings" in host.run(REPORT)[0]["text/plain"], "the kernel has heard it"
    finding.get_by_role("button", name="Undo").click()
    finding.get_by_text("It is reported again.").wait_for()
    assert VIEW_MIME in host.run(REPORT)[0]


def test_every_finding_is_live_here_and_goes_when_its_cell_runs_again(host):
    host.start("vscode")
    assert host.run(LOAD) == []
    first = answer_of(host, SETUP + LOOP)
    first.get_by_role("button", name="Mute in this cell").click()
    first.get_by_text("Silent in this cell, until").wait_for()


def test_holders_are_shown_and_memory_is_freed_after_a_question(host):
    host.start("vscode")
    assert host.run(LOAD) == []
    kept = answer_of(host, KEPT)
    kept.get_by_role("button", name="Show holders").click()
    kept.locator(".ti-told li code").first.get_by_text("losses").wait_for()
    for theme in THEMES:
        host.page.evaluate("style => { document.body.style.cssText = style; }", theme)
        assert host.violations(AXE) == []
    IMAGES.mkdir(parents=True, exist_ok=True)
    host.page.locator("#outputs").screenshot(path=IMAGES / "panel-vscode.png")
    host.run("torch.ones(1 << 20)")
    kept.get_by_role("button", name="Free memory …").click()
    item = kept.locator("[data-ti-item=outputs]")
    item.filter(has_text="old outputs: 4.00 MB").wait_for()
    item.get_by_role("button", name="free …").click()
    item.get_by_role("button", name="Cancel").click()
    item.get_by_role("button", name="free …").click()
    item.get_by_role("button", name="Free", exact=True).click()
    kept.get_by_text("4.00 MB came free.").wait_for()
    # While a cell runs, the click waits.
    host.begin(SLOW)
    kept.get_by_role("button", name="Show holders").click()
    kept.get_by_text("Waiting for the kernel").wait_for()
    kept.locator(".ti-told li code").first.get_by_text("losses").wait_for()


def test_panel_of_the_user_s_own_is_placed_among_other_widgets(host):
    host.start("vscode")
    assert host.run(LOAD + "\nimport ipywidgets, torch_inspector") == []
    (box,) = host.run("ipywidgets.VBox([ipywidgets.Label('mine'), torch_inspector.panel()])")
    drawn = host.draw(box)
    drawn.get_by_text("nothing to show yet").wait_for()
    host.run(SETUP + LOOP)
    drawn.get_by_text("mine").wait_for()
    finding_in(drawn).get_by_role("button", name="I meant this").click()
    drawn.get_by_text("Silent at this line, until").wait_for()


def test_panel_follows_the_kernel(host):
    drawn = host.draw(report_of(host))
    drawn.locator(".ti-card").wait_for()
    host.run(RETITLE)
    drawn.get_by_text("told by another cell").wait_for()
    finding_in(drawn).get_by_role("button", name="Mute in this cell").click()
    drawn.get_by_text("Silent in this cell, until").wait_for()


def test_click_while_a_cell_runs_is_answered_after_it(host):
    finding = finding_in(host.draw(report_of(host)))
    host.begin(SLOW)
    finding.get_by_role("button", name="I meant this").click()
    finding.get_by_text("Waiting for the kernel").wait_for()
    finding.get_by_text("Silent at this line, until").wait_for()


@pytest.mark.parametrize("way", ["end", "restart"])
def test_kernel_that_is_gone_leaves_a_card_that_can_be_read(host, way):
    finding = finding_in(host.draw(report_of(host)))
    words = finding.inner_text()
    getattr(host, way)()
    host.page.wait_for_timeout(1000)
    assert finding.inner_text() == words
    finding.get_by_role("button", name="I meant this").click()
    finding.get_by_text("Not done: the kernel has ended.").wait_for()
    finding.get_by_role("button", name="copy: ").first.click()
    finding.get_by_text("copied", exact=True).wait_for()


@pytest.mark.skipif("VSCODE_PID" in os.environ or "VSCODE_CWD" in os.environ, reason="all kernels are VS Code's here")
def test_kernel_of_nobody_known_gives_no_view(host):
    assert VIEW_MIME not in report_of(host, "python3")
