from dataclasses import replace

import pytest

from tests.fakes import a_cell, a_run
from tests.views.samples import FINDING, HINT, KEPT, PITFALL, RUN
from torch_inspector.views.card import Card, Code, Details, Line, Prose, Table
from torch_inspector.views.explain import finding_card, list_card, page_card, run_card


def parts_of(card, kind):
    return [part for part in card.parts if isinstance(part, kind)]


def test_finding_has_word_sentence_place_evidence_fix_and_reason():
    card = finding_card(FINDING, PITFALL, cell=5)
    assert card.title == "error: Gradients add up from step to step"
    assert card.parts[0] == Line(FINDING.message)
    assert card.parts[1] == Code("optimizer.step()", caption="line 4")
    assert card.parts[2] == Table((("steps", "100"), ("gradients", "12.3 MB")))
    assert card.parts[3] == Code("optimizer.zero_grad()", caption="Fix")
    assert card.parts[4].more == "%torchcheck explain missing-zero-grad"
    assert card.parts[4].parts[0].text.startswith("`backward()` *adds*")


@pytest.mark.parametrize(
    ("line", "cell", "here", "place"),
    [(4, 5, 5, "line 4"), (4, 2, 5, "line 4 of cell 2"), (None, 2, 5, "cell 2"), (4, None, None, "line 4")],
)
def test_place_names_other_cells_only(line, cell, here, place):
    finding = replace(FINDING, line=line, cell=cell, code="")
    assert finding_card(finding, None, cell=here).parts[1] == Line(place)


def test_finding_without_anything_still_makes_a_card():
    bare = replace(FINDING, severity="", slug="", fix="", code="", line=None, cell=None, evidence=())
    assert finding_card(bare, None) == Card("hint: finding", "hint", (Line(FINDING.message),))


@pytest.mark.parametrize("text", [None, "no page"])
def test_broken_page_leaves_the_finding(tmp_path, text):
    path = tmp_path / "page.md"
    if text:
        path.write_text(text)
    card = finding_card(FINDING, replace(PITFALL, page_path=path))
    assert card.title == "error: missing-zero-grad"
    assert not parts_of(card, Details)


def test_gravest_come_first_and_the_rest_is_counted():
    card = run_card(RUN, [PITFALL])
    assert (card.title, card.tone) == ("torch_inspector, cell 5: 1 error, 2 warnings, 2 hints", "error")
    assert [part.slug for part in card.parts] == [FINDING.slug, KEPT.slug, KEPT.slug, ""]
    assert card.parts[3] == Card(
        "2 more findings",
        "calm",
        (Line("hint: loader-waits (2 times): The loader waited for most of the time.", "hint"),),
    )


def test_findings_by_the_hundred_stay_few_lines():
    run = a_run(findings=tuple(replace(HINT, slug=f"kind-{number}") for number in range(500)))
    rest = run_card(run, []).parts[-1]
    assert len(rest.parts) == 11
    assert rest.parts[-1] == Line("and 487 more kinds")


def test_run_without_findings_or_number():
    card = run_card(a_run(cell=a_cell(number=None)), [])
    assert card == Card("torch_inspector: no findings", "calm", ())


def test_page_has_all_of_the_page():
    card = page_card(PITFALL)
    assert card.title == PITFALL.page.title
    assert "## Sources" in parts_of(card, Prose)[0].text


def test_list_says_what_each_sees_and_which_are_muted():
    card = list_card([PITFALL], {"missing-zero-grad"})
    what = "An optimizer stepped several times and nothing cleared the gradients in between"
    assert card.parts[0].rows == (("missing-zero-grad", "error", what, "muted"),)
