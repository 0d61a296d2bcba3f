"""The widget in Colab's own manager of widgets, where somebody has built that, on a kernel that looks like Colab's."""

import pytest

from tests.browser.colab.host import BUILT, LIKE_COLAB, VIEW_MIME, Host, is_built, set_up
from tests.browser.server import HAS_ANYWIDGET
from tests.browser.test_vscode import LOAD, REPORT, RETITLE, finding_in
from tests.notebook.samples import LOOP, RUN_MIME

WHY = "TORCH_INSPECTOR_COLAB does not name a folder with manager.min.js, as Colab's manager of widgets is built"
pytestmark = [
    pytest.mark.skipif(not HAS_ANYWIDGET, reason="the kernel has no anywidget"),
    pytest.mark.skipif(not is_built(), reason=f"{WHY}: {BUILT!r}"),
]


@pytest.fixture(scope="module")
def place(server):
    """The server, with the page."""
    set_up(server)
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


@pytest.fixture
def output(host):
    """What a cell with a mistake is answered."""
    host.start("python3")
    assert host.run(LOAD) == []
    assert host.run(LIKE_COLAB) == []
    (one,) = host.run(REPORT)
    assert {"text/html", "text/plain", RUN_MIME, VIEW_MIME} == set(one)
    return one


def test_finding_is_opened_copied_and_meant(host, output):
    finding = finding_in(host.draw(output))
    finding.get_by_role("button", name="copy: ").first.click()
    finding.get_by_text("copied", exact=True).wait_for()
    assert "zero_grad" in host.page.evaluate("() => navigator.clipboard.readText()")
    assert len(host.run(LOOP)) == 1
    for name, said in (
        ("I meant this", "Silent at this line, until"),
        ("Mute in this cell", "Silent in this cell, until"),
        ("Mute always", "Silent in every notebook: "),
    ):
        finding.get_by_role("button", name=name).click()
        finding.get_by_text(said).wait_for()
        finding.get_by_role("button", name="Undo").click()
        finding.get_by_text("It is reported again.").wait_for()


def test_panels_of_other_frames_follow_the_kernel(host, output):
    first, second = host.draw(output), host.draw(output)
    finding_in(first).get_by_role("button", name="I meant this").wait_for()
    host.run(RETITLE)
    second.get_by_text("told by another cell").wait_for()
    first.get_by_text("told by another cell").wait_for()
    finding_in(first).get_by_role("button", name="Mute in this cell").click()
    first.get_by_text("Silent in this cell, until").wait_for()


def test_notebook_that_was_opened_anew_has_no_dead_button(host, output):
    finding_in(host.draw(output)).get_by_role("button", name="I meant this").wait_for()
    host.leave()
    finding = finding_in(host.draw(output))
    assert [one.strip() for one in finding.get_by_role("button").all_inner_texts()] == ["copy"]
    finding.get_by_role("button", name="copy: ").click()
    finding.get_by_text("copied", exact=True).wait_for()
