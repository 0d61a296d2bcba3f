"""Every view over random facts: it draws them, and no part is left out for a failure."""

import json

from hypothesis import given, settings
from rich.cells import cell_len

from tests.test_never_crash import Draw, seeds
from tests.views.test_html import Outline
from torch_inspector.failures import Failures
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.views.bundle import to_bundle
from torch_inspector.views.explain import Drawing, run_card
from torch_inspector.views.html import to_page
from torch_inspector.views.message import RUN_MIME, run_message
from torch_inspector.views.report import report_card, state_card


@given(seed=seeds)
@settings(max_examples=60)
def test_no_view_raises(seed):
    run = Draw(seed).run(earlier=2)
    failures = Failures()
    drawing = Drawing.of(run, all_pitfalls()[:5], "https://docs.example", failures)
    for card in (run_card(drawing), report_card(drawing), state_card(run.after)):
        bundle = to_bundle(card, run_message(run, session="s", card=card, drawing=drawing))
        assert max(map(cell_len, bundle["text/plain"].split("\n"))) <= 80
        outline = Outline(bundle["text/html"])
        assert (outline.bad, outline.open) == ([], [])
        json.dumps(bundle[RUN_MIME], allow_nan=False).encode()
        to_page(card).encode()
    assert failures.counts == {}, failures.recent
