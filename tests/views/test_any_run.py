"""Every view over random facts: it draws them, and no part is left out for a failure."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.test_never_crash import cells, whole
from tests.views.test_html import Outline
from torch_inspector.facts import Run
from torch_inspector.failures import Failures
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.views.bundle import to_bundle
from torch_inspector.views.explain import Drawing, run_card
from torch_inspector.views.html import to_page
from torch_inspector.views.message import RUN_MIME, run_message
from torch_inspector.views.report import report_card, state_card

PAST = st.lists(whole(Run, cell=cells, earlier=st.just(())), max_size=2).map(tuple)


@given(run=whole(Run, cell=cells, earlier=PAST))
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
def test_no_view_raises(run):
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
