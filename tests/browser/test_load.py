"""A long session: much history, many cells, many holders. The page stays quick, and costs little while it is live."""

import sys
import time
from statistics import median

import pytest

from tests.browser.lab import PANEL
from tests.browser.test_sidebar import a_live_notebook

CLICK_MS = 100
# 10 are promised and 8 to 9 measured; a machine that does something else at the same time counts some of that too.
TASK_MS_PER_S = 30

FILL = """\
import time
from torch_inspector.notebook import extension
feed = next(iter(extension._loaded.values()))._feed.feed
now = int(time.time() * 1000)
at = [now - 3_000_000 + 500 * i for i in range(5000)]
column = [300_000_000 + 50_000 * (i % 997) for i in range(5000)]
empty = [None] * 5000
columns = {"at": at, "allocated": column, "reserved": empty, "gaps": []}
series = [{"device": name, "limit": 1 << 34, "peak": 1 << 29, **columns} for name in ("host", "cuda:0")]
finding = {"slug": "missing-zero-grad", "severity": "error", "message": "m" * 200, "subject": "s", "fix": "f",
           "cell": 1, "line": 1, "code": "s.step()"}
cells = [{"number": i, "id": None, "began": now - 3_000_000 + 5000 * i, "duration_s": 4.0, "error": None, "steps": 0,
          "memory": [{"device": "host", "before": 1, "after": 2, "peak": 3}], "findings": [finding] * (i % 2)}
         for i in range(500)]
rows = [{"path": f"losses[{i}]", "kind": "tensor", "device": "cpu", "bytes": 300 - i, "pieces": 1, "also": []}
        for i in range(300)]
rows = [{**row, "path": f"layer{i}.weight", "free": None, "cell": 1} for i, row in enumerate(rows)]
state = {"modules": [], "optimizers": [], "complete": True}
feed.answer("history", complete=True, series=series, cells=cells, state=state)
feed.answer("account", rows=rows, free=[], totals=[], notes=[], duration_s=0.1)
"""
SLOW = "import time\nfor _ in range(130):\n    time.sleep(0.1)\n"

# From the click to the frame after it, in the page's own time.
CLICK = """async selector => {
    const row = document.querySelector(selector);
    const begun = performance.now();
    row.click();
    await new Promise(requestAnimationFrame);
    await new Promise(resolve => setTimeout(resolve));
    return performance.now() - begun;
}"""


def task_seconds(client):
    """Seconds that the page's main thread has worked so far."""
    metrics = client.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def cost(lab, client, seconds=3):
    """Milliseconds per second that the page's main thread works."""
    begun, worked = time.monotonic(), task_seconds(client)
    lab.page.wait_for_timeout(1000 * seconds)
    return 1000 * (task_seconds(client) - worked) / (time.monotonic() - begun)


@pytest.mark.measured
def test_a_full_panel_answers_and_costs_little(lab, screenshot, capsys):
    a_live_notebook(lab, "full.ipynb", FILL, SLOW)
    lab.run(1)
    lab.find(".ti-Cell[data-ti-cell='499']").wait_for(state="attached")
    screenshot("full")
    lab.find(".ti-Bar").nth(99).wait_for(state="attached")
    client = lab.page.context.new_cdp_session(lab.page)
    client.send("Performance.enable")
    # Filling the panel leaves a page's worth of garbage, which is no part of what it costs from then on.
    client.send("HeapProfiler.collectGarbage")
    idle = cost(lab, client, 2)
    lab.start(2)
    lab.find(".ti-Head-words").get_by_text("running").wait_for()
    live = cost(lab, client)
    lab.page.evaluate("() => { window.jupyterapp.shell.collapseRight(); }")
    hidden = cost(lab, client)
    lab.command("torch-inspector:open")
    lab.page.wait_for_timeout(500)
    clicks = {}
    for section, count in (("cells", 4), ("account", 2)):
        more = f"{PANEL} [data-ti-section={section}] .ti-More"
        clicks[f"more {section}"] = [lab.page.evaluate(CLICK, more) for _ in range(count)]
    lab.find(".ti-Bar").nth(299).wait_for(state="attached")
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for(state="attached")
    clicks["cell"] = [lab.page.evaluate(CLICK, f"{PANEL} [data-ti-cell='3']") for _ in range(4)]
    clicks["holder"] = [lab.page.evaluate(CLICK, f"{PANEL} .ti-Bar-head") for _ in range(4)]
    words = ", ".join(f"{name} {median(taken):.0f}" for name, taken in clicks.items())
    with capsys.disabled():
        sys.stdout.write(f"\nclicks in ms: {words}; at work in ms/s: idle {idle:.0f}, live {live:.0f}, ")
        sys.stdout.write(f"live with the panel closed {hidden:.0f}\n")
    assert max(median(taken) for taken in clicks.values()) < CLICK_MS
    assert live - hidden < TASK_MS_PER_S
