"""The sidebar in a real JupyterLab with a real kernel."""

from tests.notebook.samples import GOOD_LOOP, LOOP, SETUP, SLUG

LOAD = "%load_ext torch_inspector"
GROW = """\
import time
import torch
model = torch.nn.Linear(200, 200)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for _ in range(120):
    optimizer.zero_grad()
    model(torch.rand(8, 200)).sum().backward()
    optimizer.step()
    kept.append(torch.ones(1 << 18))
    time.sleep(0.05)
"""


def test_live_numbers_and_a_finding(lab, screenshot):
    lab.open("first.ipynb", LOAD, SETUP + LOOP, GOOD_LOOP)
    lab.wait_state("absent")
    lab.run(0)
    lab.wait_state("live")
    lab.run(1, 2)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    assert lab.find(".ti-Cell[data-ti-cell='2']").count() == 1
    lab.find("[data-ti-section=modules]").get_by_text("Linear").first.wait_for()
    assert "SGD" in lab.words("[data-ti-section=optimizers]")
    assert lab.page.locator(".ti-Chart[data-ti-device=host] canvas").count() == 1
    assert "cell 2, line 10" in lab.words("[data-ti-section=findings]")
    screenshot("first")
