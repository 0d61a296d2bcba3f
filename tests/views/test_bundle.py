import json
from dataclasses import replace
from time import process_time

import pytest

from tests.fakes import a_cell, a_place, a_run, a_step
from tests.views.samples import CARDS, FINDING, HOSTILE, PITFALL, RUN, hostile_cards
from torch_inspector.facts import LossFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.views.bundle import to_bundle
from torch_inspector.views.explain import Drawing, run_card, why_of
from torch_inspector.views.message import RUN_MIME, run_message

TEXT_LIMIT, HTML_LIMIT, JSON_LIMIT = 1_000, 5_000, 3_000


def test_one_finding_is_a_small_bundle():
    run = replace(RUN, findings=(FINDING,))
    drawing = Drawing.of(run, [PITFALL])
    card = run_card(drawing)
    bundle = to_bundle(card, run_message(run, session="s", card=card, drawing=drawing))
    assert list(bundle) == ["text/plain", "text/html", RUN_MIME]
    sizes = [len(data.encode() if isinstance(data, str) else json.dumps(data)) for data in bundle.values()]
    assert sizes[0] <= TEXT_LIMIT
    assert sizes[1] <= HTML_LIMIT
    assert sizes[2] <= JSON_LIMIT
    assert sum(sizes) <= 8_000


def ten_findings():
    """Ten large findings, each with code around it, a ledger or a curve or bars, and one of the longest reasons."""
    pages = sorted(all_pitfalls(), key=lambda pitfall: -len(why_of(pitfall.page)))[:10]
    source = "".join(f"value_{n:02} = some_function(of_this, and_that, more={n})  # why\n" for n in range(60))
    evidence = (
        *(Evidence(f"a long label of evidence {n}", f"{n} of something with a name") for n in range(4)),
        Evidence("something that was measured", 0.25, "s"),
    )
    kinds = (
        (Evidence("steps like this, of those looked at", 4, "count"),),
        tuple(Evidence(f"bytes of kind {n}", n << 20, "bytes") for n in (1, 2)),
        (Evidence("loss of call 1", 2.5),),
    )
    findings = [
        Finding(
            f"`optimizer.step()` {'did something that hurts, with names and numbers, ' * 3}in the end.",
            f"history['loss'][{n}]",
            "optimizer.zero_grad()  # and some words of advice that are long\n" * 2,
            10 + n,
            1,
            (*evidence, *kinds[n % 3]),
            "error",
            page.slug,
        )
        for n, page in enumerate(pages)
    ]
    steps = [a_step(line=10 + n, index=m, kept_gradients=True, order=m) for n in range(10) for m in range(1, 5)]
    losses = [LossFact(n, a_place(3), n + 1, 2.5 + n) for n in range(10)]
    told = a_run(cell=a_cell(source), findings=tuple(replace(one, evidence=()) for one in findings[:5]))
    return a_run(*steps, *losses, source=source, findings=tuple(findings), earlier=(told,)), pages


def bundle_of(run, pitfalls):
    """The whole bundle, as the notebook makes it."""
    drawing = Drawing.of(run, pitfalls)
    card = run_card(drawing)
    return to_bundle(card, run_message(run, session="s" * 32, card=card, drawing=drawing))


def test_ten_findings_are_at_most_eight_kilobytes_each():
    bundle = bundle_of(*ten_findings())
    sizes = [len(data.encode() if isinstance(data, str) else json.dumps(data)) for data in bundle.values()]
    assert bundle["text/html"].count('<details class="ti-finding') == 10
    assert bundle["text/html"].count('<details class="ti-finding ti-error" open>') == 3
    assert len(bundle[RUN_MIME]["findings"]) == 10
    assert sum(sizes) <= 10 * 8_000


def test_ten_findings_are_drawn_fast():
    run, pitfalls = ten_findings()
    bundle_of(run, pitfalls)

    def once():
        begun = process_time()
        bundle_of(run, pitfalls)
        return process_time() - begun

    # A few hundredths of a second on a slow desk: what is seen of a cell's end must not wait for it.
    assert min(once() for _ in range(5)) < 0.1


@pytest.mark.parametrize("name", CARDS)
def test_every_card_makes_a_bundle(name):
    assert all(to_bundle(CARDS[name], {"version": 1}).values())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_makes_a_bundle(text):
    for card in hostile_cards(text):
        bundle = to_bundle(card, {text: [text, float("nan"), 10**5000]})
        json.dumps(bundle, ensure_ascii=False, allow_nan=False).encode()
