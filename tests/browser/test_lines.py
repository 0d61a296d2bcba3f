"""The line that a finding is about: gone to where it is now, and written into only where that harms nothing."""

from tests.browser.test_panel import CURSOR, Panel, source
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

TRAINING = SETUP + LOOP
STEP = "optimizer.step()"
COMMENT = f"  # torchcheck: ignore[{SLUG}]"
CELLS = CURSOR.replace(".activeCell.editor.getCursorPosition().line", ".widgets")
# Ends of the line, what is said, and what is written if anything is.
ENDS = [
    (f"{STEP}; one = 1 + \\\n        2", "No comment may stand behind a backslash: nothing was written.", None),
    (f"{STEP}; text = '''a\n    b'''", "The line ends inside of a string: nothing was written.", None),
    (
        f"{STEP}  # torchcheck: ignore[other]",
        "The comment is in the line.",
        f"{STEP}  # torchcheck: ignore[other, {SLUG}]",
    ),
    (f"{STEP}  # my words", "The comment is in the line.", f"{STEP}  # my words{COMMENT}"),
]


def test_comment_is_written_where_python_takes_it_for_one(lab):
    cells = [TRAINING.replace(STEP, end) for end, _, _ in ENDS]
    a_live_notebook(lab, "written.ipynb", *cells)
    for index, (cell, (end, said, wanted)) in enumerate(zip(cells, ENDS, strict=True), 1):
        lab.run(index)
        panel = Panel(lab, index).wait("live")
        panel.click("I meant this")
        panel.answer("Silent at this line")
        panel.click("Write it into the line")
        panel.answer(said)
        assert source(lab, index) == cell.replace(end, wanted or end)
    # As the kernel reads them, also after what was silent is reported again.
    lab.restart()
    lab.wait_for_kernel()
    lab.run(0, *range(1, len(ENDS) + 1))
    for index, (_, _, wanted) in enumerate(ENDS, 1):
        panel = Panel(lab, index)
        if wanted is None:
            panel.wait("live")
        else:
            panel.node.wait_for(state="detached")


def test_locked_cell_stays_as_it_is(lab):
    a_live_notebook(lab, "locked.ipynb", TRAINING)
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    panel.click("I meant this")
    panel.answer("Silent at this line")
    lab.page.evaluate(f"() => {CELLS}[1].model.setMetadata('editable', false)")
    panel.click("Write it into the line")
    panel.answer("The cell cannot be edited: nothing was written.")
    assert source(lab, 1) == TRAINING


def test_line_is_gone_to_where_it_is_now(lab):
    a_live_notebook(lab, "moved.ipynb", TRAINING)
    lab.run(1)
    panel = Panel(lab, 1).wait("live")
    lab.set_source(1, "# one\n# two\n# three\n" + TRAINING)
    panel.click("Go to line 10")
    assert lab.page.evaluate(f"() => {CURSOR}") == 12
    # From the sidebar too.
    lab.set_source(1, "# one\n" + TRAINING)
    lab.find("[data-ti-section=findings] .ti-Link").click()
    assert lab.page.evaluate(f"() => {CURSOR}") == 10
    lab.set_source(1, "import torch")
    panel.click("Go to line 10")
    panel.answer("This line is not in its cell any more.")
    lab.find("[data-ti-section=findings] .ti-Link").click()
    lab.page.locator(".Toastify").get_by_text("This line is not in its cell any more.").wait_for()
