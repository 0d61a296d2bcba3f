"""Who holds memory, in the panel: bars, where it was made, what keeps it, and letting go of what is safe."""

from tests.browser.test_sidebar import a_live_notebook

HOLD = "import torch\nlosses = [torch.ones(1 << 18) for _ in range(3)]\nmodel = torch.nn.Linear(300, 300)"
SHOWN = "torch.ones(1 << 20)"


def look(lab):
    """Asks for the account and waits for the answer."""
    lab.find("button").get_by_text("Look now").click()
    lab.find(".ti-Bar").first.wait_for()


def opened(lab, path):
    """The opened bar of a holder."""
    bar = lab.find(f".ti-Bar[data-ti-path='{path}']")
    bar.locator(".ti-Bar-head").click()
    return bar


def test_bars_names_and_what_keeps_them(lab, screenshot):
    a_live_notebook(lab, "account.ipynb", HOLD, SHOWN, "x = 1")
    lab.run(1, 2, 3)
    look(lab)
    losses = opened(lab, "losses[…]")
    assert "losses" in losses.inner_text()
    assert losses.locator(".ti-Holder").count() == 3
    losses.locator(".ti-Holder").nth(2).get_by_text("holders").click()
    lab.find(".ti-Holders").get_by_text("del losses[").first.wait_for()
    losses.get_by_text("show").first.click()
    assert lab.active_cell() == 1
    widths = lab.page.evaluate("() => [...document.querySelectorAll('.ti-Bar-fill')].map(one => one.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[2]
    screenshot("account")
    lab.theme(dark=True)
    screenshot("account_dark")
    lab.theme(dark=False)


def test_names_are_copied(lab):
    a_live_notebook(lab, "copy.ipynb", HOLD)
    lab.run(1)
    look(lab)
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(lab, "model.weight").get_by_text("copy").click()
    lab.page.get_by_text("Copied: model.weight").wait_for()
    assert lab.page.evaluate("() => navigator.clipboard.readText()") == "model.weight"


def test_an_old_output_is_freed_when_the_question_is_answered(lab):
    a_live_notebook(lab, "free.ipynb", HOLD, SHOWN)
    lab.run(1, 2)
    look(lab)
    out = opened(lab, "Out[3]")
    out.get_by_text("free …").click()
    lab.page.locator(".jp-Dialog").get_by_text("Free Out[3]?").wait_for()
    lab.page.locator(".jp-Dialog button").get_by_text("Cancel").click()
    assert out.count() == 1
    out.get_by_text("free …").click()
    lab.page.locator(".jp-Dialog button.jp-mod-warn").click()
    lab.find(".ti-Account-hint").get_by_text("4.00 MB came free").wait_for()
    out.wait_for(state="detached")
    assert lab.find(".ti-Bar[data-ti-path='losses[…]']").count() == 1
    assert lab.find(".ti-Freeable").count() == 0


def test_what_is_the_users_own_has_no_free(lab):
    a_live_notebook(lab, "own.ipynb", HOLD)
    lab.run(1)
    look(lab)
    assert opened(lab, "model.weight").get_by_text("free").count() == 0


def test_no_look_while_a_cell_runs(lab):
    a_live_notebook(lab, "busy_look.ipynb", HOLD, "import time; time.sleep(4)")
    lab.run(1)
    lab.start(2)
    lab.find(".ti-Head-words").get_by_text("running").wait_for()
    lab.find("button").get_by_text("Look now").click()
    hint = lab.find(".ti-Account-hint").get_by_text("A cell is running")
    hint.wait_for()
    lab.find(".ti-Bar").first.wait_for()
    hint.wait_for(state="detached")
