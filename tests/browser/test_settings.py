"""Settings, changed in the application's own editor while a notebook is open: each applies at once."""

import pytest

from tests.browser.server import SINGLE
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

pytestmark = pytest.mark.skipif(SINGLE, reason="Notebook opens the editor of settings in a window of its own")

FIELD = "jp-SettingsEditor-torch-inspector:plugin"
LONG_LOOP = f"{SETUP}import time\n{LOOP}".replace("range(4)", "range(400)") + "    time.sleep(0.05)\n"
ASK_FEED = (
    "from torch_inspector.notebook import extension\n"
    "print(tuple(next(iter(extension._loaded.values()))._feed.feed._wishes))"
)


class Editor:
    """The editor of settings beside the notebook.

    Args:
        lab: The page.
    """

    def __init__(self, lab):
        self._page = lab.page
        lab.find(".ti-Head-settings").click()
        self._field("badge").wait_for()

    def switch(self, name, *, on):
        """A box is ticked or not."""
        self._field(name).set_checked(on)

    def type(self, name, value):
        """A number."""
        self._field(name).fill(str(value))

    def _field(self, name):
        return self._page.locator(f"[id='{FIELD}_{name}']")


@pytest.fixture
def editor(lab):
    """Opens the editor; the settings are put back at the end."""
    yield lambda: Editor(lab)
    lab.server.reset_settings()


def front(lab, name):
    """Brings a notebook to the front again."""
    lab.command("docmanager:open", {"path": name})
    lab.find(".ti-Head-name").get_by_text(name).wait_for()


def test_status_bar_and_badge(lab, editor):
    a_live_notebook(lab, "shown.ipynb", SETUP + LOOP)
    lab.run(1)
    lab.page.locator("[data-ti-count='1']").wait_for()
    lab.page.locator(".ti-Status").get_by_text("1 finding").wait_for()
    settings = editor()
    settings.switch("badge", on=False)
    lab.page.locator("[data-ti-count]").wait_for(state="detached")
    settings.switch("statusBar", on=False)
    lab.page.locator(".ti-Status").wait_for(state="hidden")
    settings.switch("badge", on=True)
    lab.page.locator("[data-ti-count='1']").wait_for()
    settings.switch("statusBar", on=True)
    lab.page.locator(".ti-Status").wait_for()


def test_sampling_interval_and_history_reach_the_kernel(lab, editor):
    a_live_notebook(lab, "wishes.ipynb", ASK_FEED)
    lab.listen()
    settings = editor()
    settings.switch("sampling", on=False)
    settings.switch("liveFindings", on=False)
    settings.type("sampleInterval", 2)
    settings.type("historyLength", 500)
    lab.wait_request({"ask": "settings", "sampling": False, "findings": False, "interval_s": 2, "history": 500})
    front(lab, "wishes.ipynb")
    lab.run(1)
    assert "(False, 2, False, 500)" in lab.page.locator(".jp-OutputArea-output").last.inner_text()


@pytest.mark.usefixtures("editor")
def test_a_kernel_that_is_loaded_later_hears_of_them(lab):
    lab.server.set_setting("sampling", value=False)
    a_live_notebook(lab, "later.ipynb", "import time; time.sleep(1.5)", ASK_FEED)
    lab.run(1, 2)
    assert "(False, 0.5, True, 4000)" in lab.page.locator(".jp-OutputArea-output").last.inner_text()
    assert lab.find(".ti-Cell[data-ti-cell='2']").count() == 1


def test_live_findings_can_be_switched_off_while_the_cell_runs(lab, editor):
    a_live_notebook(lab, "live.ipynb", "import torch", LONG_LOOP)
    lab.run(1)
    lab.start(2)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    editor().switch("liveFindings", on=False)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for(state="detached")
    assert "running" in lab.words(".ti-Head-words")
