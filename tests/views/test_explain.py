from dataclasses import replace

import pytest

from tests.fakes import a_cell, a_place, a_run, an_error
from tests.views.samples import FINDING, HINT, KEPT, PITFALL, RUN
from torch_inspector.failures import Failures
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.views.card import Card, Code, Details, Line, Prose, Table
from torch_inspector.views.explain import Drawing, finding_part, list_card, page_card, run_card, why_of


def drawn(finding, *, run=RUN, pitfalls=(PITFALL,), **changes):
    return finding_part(finding, Drawing.of(run, pitfalls, **changes))


def parts_of(card, kind):
    return [part for part in card.parts if isinstance(part, kind)]


def test_finding_has_word_sentence_place_evidence_fix_and_reason():
    part = drawn(FINDING)
    assert part.summary == f"error, line 4: {FINDING.message}"
    assert (part.lead, part.tone, part.slug, part.open) == ("error, line 4", "error", FINDING.slug, False)
    assert (part.parts[0].first, part.parts[0].guilty) == (2, 4)
    assert part.parts[0].text.endswith("\nloss.backward()\noptimizer.step()")
    assert part.parts[1] == Table((("steps", "100"), ("gradients", "12.3 MB")))
    assert part.parts[2] == Code("optimizer.zero_grad()", caption="Fix")
    assert (part.parts[3].summary, part.parts[3].more) == ("Why it hurts", "%torchcheck explain missing-zero-grad")


def test_reason_is_one_paragraph_and_the_way_to_the_page():
    prose, link = drawn(FINDING).parts[-1].parts
    assert prose.text.startswith("`backward()` *adds*")
    assert prose.text.endswith("for old weights.")
    assert link == Line("%torchcheck explain missing-zero-grad", slug="missing-zero-grad")


@pytest.mark.parametrize("pitfall", all_pitfalls(), ids=lambda pitfall: pitfall.slug)
def test_every_page_gives_a_short_reason_in_whole_sentences(pitfall):
    why = why_of(pitfall.page)
    assert 40 <= len(why) <= 500
    assert why.endswith((".", ".)", "`."))
    assert why.count("`") % 2 == 0
    assert "\n" not in why


@pytest.mark.parametrize("docs_url", ["https://docs.example/pages", "https://docs.example/pages/"])
def test_link_leads_to_the_web_where_a_place_is_configured(docs_url):
    link = drawn(FINDING, docs_url=docs_url).parts[-1].parts[-1]
    assert link.address == "https://docs.example/pages/missing-zero-grad.html"


@pytest.mark.parametrize("docs_url", ["javascript:alert(1)//", 'https://x/"onclick="', "ftp://x"])
def test_link_leads_nowhere_else(docs_url):
    assert drawn(FINDING, docs_url=docs_url).parts[-1].parts[-1].address == ""


@pytest.mark.parametrize(
    ("line", "cell", "here", "lead"),
    [
        (4, 5, 5, "error, line 4"),
        (4, 2, 5, "error, line 4 of cell 2"),
        (None, 2, 5, "error, cell 2"),
        (4, None, None, "error, line 4"),
        (None, 5, 5, "error"),
    ],
)
def test_place_names_other_cells_only(line, cell, here, lead):
    finding = replace(FINDING, line=line, cell=cell, code="")
    assert drawn(finding, run=a_run(cell=a_cell(number=here))).lead == lead


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("The loss refused `hot`.", "the loss refused `hot`."),
        ("A loader came to its end.", "a loader came to its end."),
        ("Softmax runs along dim 0.", "softmax runs along dim 0."),
        ("A.T is no matrix.", "A.T is no matrix."),
        ("Theta is nan.", "Theta is nan."),
        ("NLLLoss was given probabilities.", "NLLLoss was given probabilities."),
        ("`The` is nan.", "`The` is nan."),
    ],
)
def test_a_sentence_goes_on_behind_the_colon(message, shown):
    assert drawn(replace(FINDING, message=message)).summary == f"error, line 4: {shown}"


def test_finding_without_anything_is_one_line():
    bare = replace(FINDING, severity="", slug="", fix="", code="", line=None, cell=None, evidence=())
    assert drawn(bare) == Details(f"hint: {FINDING.message}", (), tone="hint", lead="hint")


@pytest.mark.parametrize("text", [None, "no page"])
def test_broken_page_leaves_the_finding(tmp_path, text):
    path = tmp_path / "page.md"
    if text:
        path.write_text(text)
    part = drawn(FINDING, pitfalls=[replace(PITFALL, page_path=path)])
    assert part.lead == "error, line 4"
    assert not parts_of(part, Details)


def test_what_cannot_be_drawn_costs_its_finding_the_details_only():
    failures = Failures()
    broken = replace(KEPT, evidence=(None,))  # type: ignore[arg-type]  # the failure
    card = run_card(Drawing.of(replace(RUN, findings=(FINDING, broken)), [PITFALL], failures=failures))
    first, second = card.parts
    assert first.parts
    assert (second.summary, second.parts) == ("warning, line 5 of cell 2: `losses` keeps 300 graphs alive.", ())
    assert failures.counts == {"finding": 1}


def test_gravest_come_first_three_are_open_and_the_rest_is_counted():
    card = run_card(Drawing.of(RUN, [PITFALL]))
    assert (card.title, card.tone) == ("torch_inspector, cell 5: 1 error, 2 warnings, 2 hints", "error")
    assert card.parts[3] == Line("and 2 more", strong=True)
    found = [part for part in card.parts if isinstance(part, Details)]
    assert [part.slug for part in found] == [FINDING.slug, KEPT.slug, KEPT.slug, HINT.slug, HINT.slug]
    assert [part.open for part in found] == [True, True, True, False, False]


@pytest.mark.parametrize("place", [a_place(1, cell=5), a_place(1, cell=None)])
def test_what_explains_the_exception_stands_first_whatever_its_severity(place):
    failed = replace(RUN, error=an_error(place=place))
    card = run_card(Drawing.of(failed, [PITFALL]))
    assert [part.slug for part in card.parts if isinstance(part, Details)][:2] == [HINT.slug, FINDING.slug]
    assert card.tone == "error"


def test_cell_that_was_stopped_by_hand_keeps_the_gravest_first():
    stopped = replace(RUN, error=an_error(place=a_place(1, cell=5), interrupted=True))
    assert run_card(Drawing.of(stopped, [PITFALL])).parts[0].slug == FINDING.slug


def test_findings_by_the_hundred_stay_few_lines():
    run = a_run(findings=tuple(replace(HINT, slug=f"kind-{number}") for number in range(500)))
    parts = run_card(Drawing.of(run, [])).parts
    assert len(parts) == 3 + 1 + 7 + 10 + 1
    assert parts[3] == Line("and 497 more", strong=True)
    assert parts[-2] == Line("hint, line 1 of cell 5: kind-19: the loader waited for most of the time.", "hint")
    assert parts[-1] == Line("and 480 more kinds")


def test_many_findings_of_one_kind_are_one_line():
    parts = run_card(Drawing.of(a_run(findings=(HINT,) * 14), [])).parts
    assert parts[-1] == Line(
        "hint, line 1 of cell 5: loader-waits (4 times): the loader waited for most of the time.", "hint"
    )


def test_run_without_findings_or_number():
    card = run_card(Drawing.of(a_run(cell=a_cell(number=None)), []))
    assert card == Card("torch_inspector: no findings", "calm", ())


def test_page_has_all_of_the_page():
    card = page_card(PITFALL)
    assert card.title == PITFALL.page.title
    assert "## Sources" in parts_of(card, Prose)[0].text


def test_list_says_what_each_sees_and_which_are_muted():
    card = list_card([PITFALL], {"missing-zero-grad"})
    what = "An optimizer stepped several times and nothing cleared the gradients in between"
    assert card.parts[0].rows == (("missing-zero-grad", "error", what, "muted"),)
