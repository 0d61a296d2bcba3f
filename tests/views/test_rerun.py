from dataclasses import replace

from tests.fakes import SOURCE, a_cell, a_graph, a_run, a_snapshot
from tests.test_outcome import HINT, KEPT, a_cell_run
from torch_inspector.views.card import Card, Line
from torch_inspector.views.explain import Drawing, run_card


def rerun(first, second):
    return run_card(Drawing.of(replace(second, earlier=(first,)), []))


def test_cell_that_became_clean_is_one_quiet_line():
    held = a_snapshot(a_graph(saved_nbytes=3 << 20))
    card = rerun(a_cell_run(KEPT, number=4, after=held), a_cell_run(number=5))
    what = "graph-retained-in-list (`losses`, activations: 3.00 MB before, 0 B now)"
    assert card == Card(f"✓ torch_inspector, cell 5: fixed since cell 4: {what}", "calm", ())


def test_one_line_leaves_out_numbers_that_would_be_cut():
    others = (replace(HINT, slug="x" * 40), replace(HINT, slug="y" * 20))
    held = a_snapshot(a_graph(saved_nbytes=3 << 20))
    card = rerun(a_cell_run(*others, KEPT, number=4, after=held), a_cell_run(number=5))
    assert card.title.endswith("; graph-retained-in-list (`losses`)")
    assert "before" not in card.title


def test_many_fixed_findings_stay_one_line():
    first = a_cell_run(*(replace(HINT, slug=f"kind-{number}") for number in range(9)), number=1)
    assert rerun(first, a_cell_run(number=2)).title.endswith("kind-0; kind-1; kind-2; and 6 more")


def test_fixed_still_there_and_new_are_told_apart():
    new = replace(HINT, slug="another")
    card = rerun(a_cell_run(KEPT, HINT, number=4), a_cell_run(KEPT, new, number=5))
    assert card.parts[0] == Line("✓ fixed since cell 4: loader-waits")
    assert [part.lead for part in card.parts[1:]] == ["warning, line 2, still there", "hint, new"]


def test_number_that_changed_is_told():
    fewer = replace(KEPT, evidence=(replace(KEPT.evidence[1], value=1 << 20),))
    card = rerun(a_cell_run(replace(KEPT, cell=5)), a_cell_run(replace(fewer, cell=5), number=5))
    assert card.parts[0].parts[0] == Line("activations: 3.00 MB before, 1.00 MB now")


def test_first_run_says_nothing_about_it():
    card = run_card(Drawing.of(a_run(cell=a_cell(SOURCE), findings=(KEPT,)), []))
    assert card.parts[0].lead == "warning, line 2"
