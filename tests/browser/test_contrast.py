"""Panel and sidebar where the system forces its own few colours, or asks for more contrast."""

import pytest

from tests.browser.lab import PANEL
from tests.browser.test_holders import HOLD, look
from tests.browser.test_panel import KEPT, THREE, Panel, violations
from tests.browser.test_sidebar import a_live_notebook

# What is painted of an element, and what it lies on.
SEEN = """node => {
    const grounds = [];
    for (let one = node.parentElement; one; one = one.parentElement) { grounds.push(one); }
    const painted = one => getComputedStyle(one).backgroundColor;
    const clear = colour => colour === 'rgba(0, 0, 0, 0)';
    const style = getComputedStyle(node);
    return {
        ground: painted(node),
        behind: painted(grounds.find(one => !clear(painted(one))) ?? document.body),
        edge: style.borderLeftColor,
        width: parseFloat(style.borderLeftWidth),
        outline: style.outlineStyle,
        text: style.color,
    };
}"""


def seen(place):
    """What is to be seen of the first such element."""
    return place.first.evaluate(SEEN)


@pytest.fixture
def notebook(lab):
    """A notebook with three findings, one about memory, and the sidebar with its account."""
    a_live_notebook(lab, "contrast.ipynb", THREE, KEPT, HOLD, "import time; time.sleep(1)")
    lab.run(1, 2, 3, 4)
    look(lab)
    yield lab
    lab.page.emulate_media(forced_colors="none", contrast="no-preference", color_scheme="light")


def test_nothing_is_lost_with_fewer_colours_or_more_contrast(notebook, screenshot):
    for scheme in ("dark", "light"):
        has_the_colours_of_the_system(notebook, screenshot, scheme)
    notebook.page.emulate_media(forced_colors="none", color_scheme="light")
    for dark in (False, True):
        has_more_contrast_where_it_is_asked_for(notebook, screenshot, dark=dark)


def has_the_colours_of_the_system(lab, screenshot, scheme):
    """Nothing is told by a colour that is not there."""
    lab.page.emulate_media(forced_colors="active", color_scheme=scheme)
    panel = Panel(lab, 1).wait("live")
    for place in (panel.node.locator(".ti-finding"), panel.node.locator("pre"), panel.node.locator(".ti-Button")):
        one = seen(place)
        assert one["width"] >= 1
        assert one["edge"] != one["behind"]
    sidebar = lab.page.locator(PANEL)
    for name in (".ti-Share > span", ".ti-Bar-fill", ".ti-Dot", ".ti-Mark", ".ti-Legend i"):
        one = seen(sidebar.locator(name))
        assert one["ground"] != one["behind"], name
    plot = seen(sidebar.locator(".ti-Chart-plot"))
    assert plot["text"] != plot["ground"]
    assert seen(sidebar.locator(".ti-Bar-track"))["outline"] == "solid"
    assert seen(sidebar.locator(".ti-Button"))["width"] >= 1
    # The system's colours are its own matter; axe reads others than are shown.
    assert violations(lab, panel, ["button-name"]) == []
    assert violations(lab, Panel(lab, 2), ["button-name"]) == []
    panel.save(f"forced-{scheme}")
    screenshot(f"forced_{scheme}")


def has_more_contrast_where_it_is_asked_for(lab, screenshot, *, dark):
    """Wider and darker than without."""
    panel = Panel(lab, 1).wait("live")
    lab.theme(dark=dark)
    before = seen(panel.node.locator(".ti-finding"))
    lab.page.emulate_media(contrast="more")
    after = seen(panel.node.locator(".ti-finding"))
    assert after["width"] > before["width"]
    one = seen(panel.node.locator(".ti-Button"))
    assert one["edge"] == one["text"]
    assert violations(lab, panel) == []
    panel.save(f"more-contrast-{'dark' if dark else 'light'}")
    screenshot(f"more_contrast_{'dark' if dark else 'light'}")
    lab.page.emulate_media(contrast="no-preference")
    lab.theme(dark=False)
