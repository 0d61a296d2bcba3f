"""The sidebar in a real JupyterLab with a real kernel, in the situations that notebooks get into."""

import time

import pytest

from tests.browser.server import SINGLE
from tests.notebook.samples import GOOD_LOOP, LOOP, SETUP, SLUG

LOAD = "%load_ext torch_inspector"
SLOW = "import time\nfor _ in range(60):\n    time.sleep(0.1)\n"
GROW = """\
import time, torch
model = torch.nn.Linear(200, 200)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for _ in range(140):
    loss = model(torch.rand(8, 200)).sum()
    loss.backward()
    optimizer.step()
    kept.append(torch.ones(1 << 18))
    time.sleep(0.04)
"""


def a_live_notebook(lab, name, *sources):
    """A notebook in which the extension is loaded by its first cell."""
    lab.open(name, LOAD, *sources)
    lab.run(0)
    lab.wait_state("live")


def reloaded(lab, name):
    """The same notebook in a page that is loaded anew, its kernel still there."""
    lab.save()
    lab.goto(name)
    lab.wait_for_kernel()
    lab.command("torch-inspector:open")
    lab.wait_state("live")


def test_numbers_cells_and_a_finding(lab, screenshot):
    a_live_notebook(lab, "first.ipynb", SETUP + LOOP, GOOD_LOOP)
    lab.run(1, 2)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    assert "Linear" in lab.words("[data-ti-section=modules]")
    assert "SGD" in lab.words("[data-ti-section=optimizers]")
    assert "cell 2, line 10" in lab.words("[data-ti-section=findings]")
    assert "`" not in lab.words("[data-ti-section=findings]")
    assert lab.find(".ti-Finding-one > span > code").count() > 0
    assert lab.find(".ti-Chart[data-ti-device=host] canvas").count() == 1
    if not SINGLE:
        lab.page.locator("[data-ti-count='1']").wait_for()
        lab.page.locator(".ti-Status").get_by_text("1 finding").wait_for()
    screenshot("light")
    lab.theme(dark=True)
    screenshot("dark")
    lab.theme(dark=False)


def test_a_click_goes_to_the_cell(lab):
    a_live_notebook(lab, "click.ipynb", SETUP + LOOP, "x = 1")
    lab.run(1, 2)
    lab.find(".ti-Cell[data-ti-cell='2']").click()
    assert lab.active_cell() == 1
    lab.find(".ti-Cell[data-ti-cell='3']").click()
    assert lab.active_cell() == 2
    lab.find(f"[data-ti-slug={SLUG}] .ti-Link").first.click()
    assert lab.active_cell() == 1


def test_a_click_on_the_chart_goes_to_the_cell_of_that_time(lab):
    a_live_notebook(lab, "chart.ipynb", "import time; time.sleep(2)", "x = 1")
    lab.run(1, 2)
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    lab.find(".ti-Chart .u-over").hover()
    lab.find(".ti-Chart-words").get_by_text("[2]").wait_for()
    lab.find(".ti-Chart .u-over").click()
    assert lab.active_cell() == 1


def test_a_mended_cell_has_no_finding_any_more(lab):
    a_live_notebook(lab, "mended.ipynb", SETUP + LOOP)
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.set_source(1, SETUP + GOOD_LOOP)
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for(state="detached")
    assert lab.page.locator("[data-ti-count]").count() == 0


@pytest.mark.measured
def test_a_running_loop_shows_steps_growth_and_what_is_certain(lab, screenshot):
    a_live_notebook(lab, "grow.ipynb", "import torch", GROW)
    lab.run(1)
    lab.start(2)
    begun = time.monotonic()
    lab.find(".ti-Head-words").get_by_text("steps").wait_for()
    assert time.monotonic() - begun < 4
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.find(".ti-Head-words").get_by_text("grows").wait_for()
    assert lab.is_busy()
    screenshot("running")


def test_reload_brings_the_history(lab):
    a_live_notebook(lab, "reload.ipynb", SETUP + LOOP)
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    reloaded(lab, "reload.ipynb")
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    assert lab.find(".ti-Cell[data-ti-cell='2']").count() == 1
    assert lab.find(".ti-Chart canvas").count() == 1


def test_reload_while_a_cell_runs(lab):
    a_live_notebook(lab, "busy.ipynb", "x = 1", SLOW.replace("60", "400"))
    lab.run(1)
    lab.save()
    lab.start(2)
    lab.find(".ti-Head-words").get_by_text("running").wait_for()
    lab.goto("busy.ipynb")
    lab.command("torch-inspector:open")
    lab.wait_state("live")
    lab.find(".ti-Cell[data-ti-cell='2']").wait_for()
    lab.find(".ti-Head-words").get_by_text("running").wait_for()


def test_restart_clears_and_load_begins_anew(lab):
    a_live_notebook(lab, "restart.ipynb", SETUP + LOOP)
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.restart()
    lab.wait_state("absent")
    assert lab.page.locator("[data-ti-count]").count() == 0
    lab.run(0)
    lab.wait_state("live")
    assert lab.find(f"[data-ti-slug={SLUG}]").count() == 0


def test_a_kernel_that_is_killed(lab):
    a_live_notebook(lab, "killed.ipynb", SETUP + LOOP, "import os; os.kill(os.getpid(), 9)")
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.start(2)
    lab.wait_state("absent")
    assert lab.find(".ti-Cell[data-ti-cell]").count() == 0


def test_kernel_without_the_extension_is_offered_to_load_it(lab, screenshot):
    lab.open("absent.ipynb", "x = 1")
    lab.wait_state("absent")
    screenshot("absent")
    lab.find("button").get_by_text("Load it").click()
    lab.wait_state("live")
    lab.run(0)
    lab.find(".ti-Cell[data-ti-cell='1']").wait_for()
    assert lab.outputs(0) == 0


def test_unload_is_noticed(lab):
    a_live_notebook(lab, "unload.ipynb", "%unload_ext torch_inspector")
    lab.run(1)
    lab.wait_state("absent")


def test_pages_open_beside_the_notebook(lab, screenshot):
    a_live_notebook(lab, "page.ipynb", SETUP + LOOP)
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}] .ti-Button").get_by_text("why?").click()
    page = lab.page.locator(f"#torch-inspector-page-{SLUG}")
    page.get_by_text("Why it hurts").wait_for()
    if not SINGLE:  # Notebook shows the page in the place of the panel
        lab.find(f"[data-ti-slug={SLUG}] .ti-Button").get_by_text("why?").click()
    assert page.count() == 1
    screenshot("page")
    lab.command("torch-inspector:open-page", {"page": "../../secret"})
    lab.page.get_by_text("has no page of that name").wait_for()


def test_a_second_tab_shows_the_same(lab, another):
    a_live_notebook(lab, "tabs.ipynb", SETUP + LOOP, "x = 1")
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.save()
    another.open("tabs.ipynb")
    another.wait_state("live")
    another.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.run(2)
    for one in (lab, another):
        one.find(".ti-Cell[data-ti-cell='3']").wait_for()


@pytest.mark.skipif(SINGLE, reason="Notebook opens consoles in windows of their own")
def test_a_console_on_the_same_kernel_shows_the_same(lab):
    a_live_notebook(lab, "console.ipynb", SETUP + LOOP, "x = 1")
    lab.run(1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.command("notebook:create-console")
    lab.find(".ti-Head-name").get_by_text("Console").wait_for()
    lab.wait_state("live")
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()


def test_kernel_without_torch(lab):
    a_live_notebook(lab, "bare.ipynb", "x = 1", "import sys; 'torch' in sys.modules")
    lab.run(1, 2)
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    lab.find("button").get_by_text("Look now").click()
    lab.find("[data-ti-section=account]").get_by_text("No tensor is alive").wait_for()
    assert "False" in lab.page.locator(".jp-OutputArea-output").last.inner_text()


def test_pause_and_clear(lab):
    a_live_notebook(lab, "pause.ipynb", "x = 1", "x = 2", "x = 3")
    lab.run(1)
    lab.find(".ti-Cell[data-ti-cell='2']").wait_for()
    lab.find("button").get_by_text("Pause").click()
    lab.run(2)
    time.sleep(0.5)
    assert lab.find(".ti-Cell[data-ti-cell='3']").count() == 0
    lab.find("button").get_by_text("Go on").click()
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    lab.find("button").get_by_text("Clear").click()
    assert lab.find(".ti-Cell[data-ti-cell]").count() == 0
    lab.run(3)
    lab.find(".ti-Cell[data-ti-cell='4']").wait_for()


@pytest.mark.skipif(SINGLE, reason="Notebook shows one document at a time")
def test_two_notebooks_are_kept_apart(lab):
    a_live_notebook(lab, "one.ipynb", "a = 1")
    lab.run(1)
    lab.write("two.ipynb", LOAD, SETUP + LOOP)
    lab.command("docmanager:open", {"path": "two.ipynb"})
    lab.find(".ti-Head-name").get_by_text("two.ipynb").wait_for()
    lab.wait_state("absent")
    lab.run(0, 1)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    lab.command("docmanager:open", {"path": "one.ipynb"})
    lab.find(".ti-Head-name").get_by_text("one.ipynb").wait_for()
    lab.find(f"[data-ti-slug={SLUG}]").wait_for(state="detached")
    assert lab.find(".ti-Cell[data-ti-cell='2']").count() == 1
