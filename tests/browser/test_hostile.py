"""Names, messages and notebook files that somebody made to harm: nothing runs or breaks; at most a notice."""

import json

from tests.browser.lab import PANEL
from tests.browser.test_sidebar import a_live_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG

NAME = "<img src=x onerror=window.hacked=1>"
NAMES = f"""\
import torch
name = {NAME!r}
Strange = type(name, (torch.nn.Linear,), {{}})
holder = {{name: Strange(300, 300)}}
optimizer = type(name, (torch.optim.SGD,), {{}})(holder[name].parameters(), lr=0.1)
"""

SEND = """\
import json, uuid
k = get_ipython().kernel
def send(data):
    content = {"comm_id": "torch_inspector.feed", "data": data}
    k.session.send(k.iopub_socket, "comm_msg", content, parent={}, ident=b"x")
"""
MESSAGES = f"""{SEND}
name = {NAME!r}
run = next(iter(__import__("torch_inspector.notebook.extension").notebook.extension._loaded.values()))._feed.feed.run
deep = []
for _ in range(300):
    deep = [deep]
strange = [None, -1, 1e300, 2**63, name, "__proto__", "x" * 1_000_000, [], [None] * 100_000, {{}}, deep,
           {{"__proto__": {{"device": name}}, "constructor": {{"prototype": 1}}}}]
for one in strange:
    for op in ("sample", "cell", "history", "account", "holders", "freed", "refused", "__proto__", "constructor"):
        send({{"v": 1, "run": run, "op": op, "at": 1, "devices": one, "cell": one, "cells": one, "series": one,
              "rows": one, "free": one, "state": one, "findings": one, "path": name, "item": one, "ask": one}})
    send(one)
device = {{"device": name, "allocated": 2**53 - 1, "reserved": 2**53 - 1, "peak": 0, "limit": 1}}
finding = {{"slug": name, "severity": "error", "message": name, "subject": name, "fix": name, "cell": 1, "line": 1,
           "code": name}}
row = {{"path": name, "kind": name, "device": name, "bytes": 2**53 - 1, "pieces": 1, "also": [name], "free": "outputs",
       "cell": 2**53 - 1}}
cell = {{"number": 2**53 - 1, "id": name, "elapsed_s": 3e9, "steps": 2**53 - 1}}
send({{"v": 1, "run": run, "op": "sample", "at": 4 * 10**12, "cell": cell, "devices": [device, device], "gap": True,
      "findings": [finding] * 40}})
send({{"v": 1, "run": run, "op": "account", "at": 0, "rows": [row] * 300, "totals": [], "notes": [name], "free": [
      {{"item": "cycles", "what": name, "bytes": 1, "why": name}}], "duration_s": 0}})
send({{"v": 1, "run": run, "op": "holders", "at": 0, "path": name, "gone": False,
      "rows": [{{"path": name, "kind": name, "fix": name}}]}})
ended = {{"number": 2**53 - 1, "id": name, "began": 4 * 10**12, "duration_s": 3e9, "error": name, "steps": 2**53 - 1,
         "memory": [{{"device": name, "before": 0, "after": 2**53 - 1, "peak": 0}}], "findings": [finding] * 50}}
state = {{"modules": [], "optimizers": [], "complete": True}}
send({{"v": 1, "run": run, "op": "cell", "at": 0, "cell": ended, "state": state}})
"""


def assert_nothing_ran(lab):
    """No markup was made of a text, and no script ran."""
    assert lab.find("img, script, iframe, a").count() == 0
    assert lab.page.evaluate("() => [window.hacked, {}.device]") == [None, None]


def test_names_stay_text(lab):
    a_live_notebook(lab, "hostile.ipynb", NAMES)
    lab.run(1)
    lab.find("[data-ti-section=modules]").get_by_text(NAME).first.wait_for()
    lab.find("button").get_by_text("Look now").click()
    lab.find(".ti-Bar").first.wait_for()
    lab.find("[data-ti-section=optimizers]").get_by_text(NAME).first.wait_for()
    assert_nothing_ran(lab)


def test_messages_cost_a_short_notice(lab, screenshot):
    a_live_notebook(lab, "messages.ipynb", MESSAGES, "x = 1", "%reload_ext torch_inspector", SETUP + LOOP)
    lab.run(1)
    notice = lab.find(".ti-Notice").get_by_text("could not be read")
    notice.wait_for()
    assert len(notice.inner_text()) < 150
    lab.find(".ti-Finding").get_by_text(NAME).first.wait_for()
    lab.find(".ti-Bar-head").first.click()
    lab.find(".ti-Holders").first.wait_for()
    screenshot("hostile")
    assert_nothing_ran(lab)
    lab.run(2)
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()
    lab.run(3, 4)
    lab.find(f"[data-ti-slug={SLUG}]").wait_for()
    assert lab.find(".ti-Cell[data-ti-cell='3']").count() == 0
    assert_nothing_ran(lab)


def test_a_message_of_another_load_does_not_silence_the_inspector(lab):
    forged = "send({'v': 1, 'run': 'forged', 'op': 'bye', 'at': 1})"
    a_live_notebook(lab, "forged.ipynb", SEND + forged, "x = 1")
    lab.run(1, 2)
    lab.find(".ti-Cell[data-ti-cell='3']").wait_for()


# What a stranger's file may hold: JSON of ours in wrong forms, markup, links with forged addresses.
LINKS = "".join(
    f'<a class="ti-doc-link" href="{address}">{word}</a> '
    for word, address in {
        "good": f"#torch-inspector-{SLUG}",
        "unknown": "#torch-inspector-no-such-page",
        "prototype": "#torch-inspector-constructor",
        "script": "javascript:window.hacked=1",
    }.items()
)
HTML = f'<div class="ti-card"><img src="data:," onerror="window.hacked=1"><script>window.hacked=1</script>{LINKS}</div>'
RUN_MIME = "application/vnd.torch-inspector.run+json"


def a_hostile_card():
    """A card of the right form, in which every text is markup."""
    link = {"kind": "line", "text": NAME, "slug": SLUG, "address": "javascript:window.hacked=1"}
    table = {"kind": "table", "rows": [[NAME, NAME]], "columns": [NAME, NAME], "caption": NAME}
    fix = {"kind": "code", "text": NAME, "caption": NAME}
    inside = [
        {"kind": "prose", "text": f"## {NAME}\n\n{NAME}"},
        {"kind": "bars", "rows": [[NAME, NAME]], "lengths": [9]},
    ]
    finding = {"kind": "details", "summary": NAME, "tone": "error", "open": True, "parts": [fix, table, *inside, link]}
    return {"kind": "card", "title": NAME, "tone": "error", "parts": [finding]}


def a_hostile_file():
    """A notebook as text, because no library would write one like it."""
    runs = [
        {"version": 1, "findings": {"__proto__": {"device": 1}}, "card": NAME, "model_id": {"a": 1}},
        {"version": "1", "findings": [[[NAME]]] * 1000, "card": {"parts": ["x" * 500_000]}},
        json.loads('{"__proto__": {"device": "hacked"}, "constructor": {"prototype": {"device": "hacked"}}}'),
        {"version": 1, "session": NAME, "cell": 1, "findings": [], "card": json.dumps(a_hostile_card())},
    ]
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": {RUN_MIME: run, "text/html": HTML, "text/plain": NAME}}
        for run in runs
    ]
    cells = [
        {"cell_type": "code", "id": "one", "metadata": {"torch_inspector": runs[1]}, "execution_count": 10**9,
         "source": "%load_ext torch_inspector", "outputs": outputs},
        {"cell_type": "code", "id": "two", "metadata": {}, "execution_count": None, "source": "x = 1", "outputs": []},
    ]  # fmt: skip
    # JupyterLab itself opens no file whose metadata has a key `constructor`.
    metadata = {"torch_inspector": {"sidebar": NAME, "toString": 1}, "kernelspec": {"name": "python3"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def test_a_notebook_file(lab):
    (lab.server.work / "file.ipynb").write_text(a_hostile_file(), encoding="utf-8")
    lab.open("file.ipynb")
    lab.wait_state("absent")
    card = lab.page.locator(".ti-Run[data-ti-state=static] .ti-finding")
    assert card.locator("summary").inner_text().endswith(NAME)
    assert card.locator("a").get_attribute("href") == f"#torch-inspector-{SLUG}"
    assert card.locator("img").count() == 1
    links = lab.page.locator(".jp-OutputArea-output a.ti-doc-link")
    for word in ("unknown", "prototype"):
        links.get_by_text(word).first.click()
        lab.page.get_by_text("has no page of that name").first.wait_for()
    links.get_by_text("script").first.click(no_wait_after=True)
    links.get_by_text("good").first.click()
    lab.page.locator(f"#torch-inspector-page-{SLUG}").get_by_text("Why it hurts").wait_for()
    assert lab.page.evaluate("() => [window.hacked, {}.device]") == [None, None]
    if lab.page.locator(PANEL).is_hidden():  # Notebook shows the page in its place
        lab.command("torch-inspector:open")
    lab.run(0, 1)
    lab.find(".ti-Cell[data-ti-cell='2']").wait_for()
    assert_nothing_ran(lab)


def test_links_of_a_live_card_open_the_page_here(lab):
    show = f"from IPython.display import HTML\nHTML({LINKS.split(' <a')[0]!r})"
    a_live_notebook(lab, "link.ipynb", show)
    lab.run(1)
    before = lab.page.context.pages
    lab.page.locator(".jp-OutputArea-output a.ti-doc-link").click()
    lab.page.locator(f"#torch-inspector-page-{SLUG}").get_by_text("Why it hurts").wait_for()
    assert lab.page.context.pages == before
