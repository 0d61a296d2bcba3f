"""Findings, runs and cards that the tests of views share. Run as a program, it writes the expected text files anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fakes import (
    SOURCE,
    a_backward,
    a_cell,
    a_count,
    a_graph,
    a_holder,
    a_loader,
    a_memory,
    a_module,
    a_place,
    a_run,
    a_step,
    a_tensor,
    an_optimizer,
)
from torch_inspector.facts import CountFact, LossFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import Pitfall
from torch_inspector.views.card import Bars, Card, Code, Details, Line, Prose, Table
from torch_inspector.views.explain import Drawing, list_card, page_card, run_card
from torch_inspector.views.report import report_card, state_card
from torch_inspector.views.text import to_text

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"

PITFALL = Pitfall("missing-zero-grad", "training", "error", lambda _: (), HERE / "sample_page.md")
FINDING = Finding(
    "`optimizer.step()` ran 100 times and no gradient was cleared in between.",
    subject="optimizer",
    fix="optimizer.zero_grad()",
    line=4,
    cell=5,
    evidence=(Evidence("steps", 100, "count"), Evidence("gradients", 12_900_000, "bytes")),
    severity="error",
    slug="missing-zero-grad",
    code="    optimizer.step()",
)
KEPT = Finding("`losses` keeps 300 graphs alive.", line=5, cell=2, severity="warning", slug="losses-kept-with-graph")
HINT = Finding("The loader waited for most of the time.", line=1, cell=5, severity="hint", slug="loader-waits")
FINDINGS = (HINT, KEPT, FINDING, replace(HINT, line=7), replace(KEPT, line=6))

BEFORE = (a_memory(), a_tensor("old", key=1))
AFTER = (
    a_memory(allocated_nbytes=420 << 20, peak_nbytes=1 << 30),
    a_memory(
        "cuda:0", allocated_nbytes=20 << 20, reserved_nbytes=32 << 20, free_nbytes=79 << 30, total_nbytes=80 << 30
    ),
    a_tensor("old", key=1),
    a_tensor("history['loss'][3]", shape=(32, 10), nbytes=1280, storage_nbytes=4 << 20, key=2),
    a_tensor(
        "batch", shape=(64, 3, 224, 224), device="cuda:0", nbytes=38535168, storage_nbytes=38535168, made_by="", key=3
    ),
    a_module(asleep=(("BatchNorm1d", 2),), trainable_count=2),
    an_optimizer(kind="Adam", learning_rate=1e-3, state_nbytes=64),
    a_graph(),
    a_graph("history['loss']", complete=False, spent=True, key=32),
    a_holder(graph_nbytes=3 << 20),
)
RUN = a_run(
    a_count("backward", 100),
    a_count("step", 100, place=a_place(7, cell=2, function="train"), name="Adam"),
    a_loader(),
    cell=a_cell(number=5),
    before=BEFORE,
    after=AFTER,
    duration_s=12.5,
    inspection_s=0.004,
    findings=FINDINGS,
)
STRETCHED = Finding(
    "`mse_loss` stretches (64, 1) and (64,) to (64, 64): each prediction meets all 64 targets.",
    subject="loss",
    fix="mse_loss(pred.squeeze(1), target)",
    line=2,
    evidence=(
        Evidence("pred", "(64, 1)"),
        Evidence("target", "(64,)"),
        Evidence("stretched to", "(64, 64)"),
        Evidence("graph", "MseLossBackward0"),
        Evidence("loss of call 1", 2.31),
    ),
    severity="error",
    slug="loss-broadcast",
    code="loss = criterion(model(features), labels)",
)
HEAVY = replace(
    KEPT,
    cell=1,
    line=4,
    code="optimizer.step()",
    evidence=(
        Evidence("activations", 3 << 30, "bytes"),
        Evidence("the tensors", 1 << 28, "bytes"),
        Evidence("steps", 3),
    ),
)
LAST_TIME = replace(HEAVY, cell=4, evidence=(Evidence("activations", 5 << 30, "bytes"),))
TURNS = CountFact("backward", a_place(3), "", 5)
LAST = a_run(
    TURNS._replace(place=a_place(3, cell=4)),
    cell=a_cell(SOURCE + "print(loss)\n", number=4),
    findings=(LAST_TIME, replace(HINT, cell=4)),
)
RERUN = a_run(
    TURNS,
    a_backward(),
    a_step(),
    a_step(index=2, kept_gradients=True),
    *(LossFact(n, a_place(3), n + 1, value) for n, value in enumerate((2.31, 1.8, 1.9, 4.2, float("inf")))),
    cell=a_cell(number=6),
    earlier=(LAST,),
    findings=(STRETCHED, HEAVY),
)
EVERYTHING = Card(
    "A title with `code`",
    "warning",
    (
        Line("calm"),
        Line("an error with one ` in it", "error", strong=True),
        Code("x = 1\n\ny = 2", caption="line 1"),
        Code("no caption"),
        Table((("a", "1"), ("b", "2")), ("name", "count"), "Caption", (1,)),
        Table((("label", "`value`"),)),
        Bars((("activations", "1.00 GB"), ("`key`", "12.0 MB")), (1_000, 12), "Bars"),
        Details("Summary", (Line("inside"), Table((("a", "b"),))), more="%torchcheck explain x"),
        Details("Open in text", (Line("inside too"),)),
        Card("nested", "hint", (Card("deeper", "calm", ()),), slug="x"),
    ),
)
PROSE = Card(
    "Prose", "calm", (Prose("## Head\n\nA `word`, <b>bold</b>.\n\n```python\nx = 1\n```\n\n![i](https://x/y.png)"),)
)
CARDS = {
    "run": run_card(Drawing.of(RUN, [PITFALL])),
    "rerun": run_card(Drawing.of(RERUN, [])),
    "clean": run_card(Drawing.of(replace(RERUN, findings=()), [])),
    "quiet": report_card(Drawing.of(a_run(cell=a_cell(number=6)), [PITFALL])),
    "report": report_card(Drawing.of(RUN, [PITFALL])),
    "state": state_card(replace(RUN.after, complete=False)),
    "page": page_card(PITFALL),
    "list": list_card([PITFALL, replace(PITFALL, slug="another", severity="hint")], {"another"}),
    "parts": EVERYTHING,
    "prose": PROSE,
}
HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "rich markup": "[bold red]x[/bold red][/]:smile:[link=http://x]y",
    "jinja": "{{ 7 * 7 }}{% raw %}",
    "markdown": "`a` ![x](javascript:alert(1)) [y](javascript:alert(1)) <b onclick=x>",
    "turned around": "abc\u202egpj.exe\u2066\u200f",
    "terminal": "\x1b[2J\x1b]0;owned\x07\r\x00\x9b31m",
    "half surrogate": "\ud800\udfff",
    "lines": "a\nb\r\nc\u2028d",
    "long": "x" * 10**6,
    "long lines": "y\n" * 10**5,
    "wide": "宽" * 300,
}


def hostile_run(text):
    """A run in which everything that comes from the user is the given text."""
    finding = Finding(text, text, text, 1, 1, (Evidence(text, text, text),), "error", text, text)
    after = (
        a_memory(text),
        a_tensor(text, dtype=text, device=text, made_by=text),
        a_module(text, kind=text, devices=(text,), asleep=((text, 2),)),
        an_optimizer(text, kind=text),
        a_graph(text),
        a_holder(text, kind=text, dtype=text, device=text),
    )
    counts = (a_count(text, name=text, place=a_place(function=text)), a_loader(None, kind=text))
    told = a_run(cell=a_cell(text, number=1), findings=(replace(finding, evidence=(Evidence(text, 1, text),)),))
    now = replace(finding, evidence=(Evidence(text, 2, text), Evidence(text, "(2, 1)"), Evidence(text, "(2, 2)")))
    found = (now, finding, finding, finding, replace(finding, slug="other"))
    return a_run(*counts, source=text, after=after, findings=found, earlier=(told,))


def hostile_cards(text):
    """Every kind of card over such a run."""
    run = hostile_run(text)
    made = (
        Line(text),
        Code(text, text, text),
        Table(((text, text),), (text, text), text),
        Prose(text),
        Bars(((text, text),), (500,), text),
    )
    parts = Card(text, "hint", (*made, Details(text, made, text), Details(text, made), Card(text, "calm", made)), text)
    return run_card(Drawing.of(run, [])), report_card(Drawing.of(run, [])), state_card(run.after), parts


if __name__ == "__main__":
    for name, card in CARDS.items():
        (EXPECTED / f"{name}.txt").write_text(to_text(card), encoding="utf-8")
