import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import a_run
from tests.views.samples import CARDS, FINDING, HOSTILE, RUN, hostile_run
from tests.views.test_plain import ANY_TEXT
from torch_inspector.findings import Evidence
from torch_inspector.views.data import card_data
from torch_inspector.views.message import RUN_MIME, encodable, run_message

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=3)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3))


def test_names_are_the_contract():
    message = run_message(replace(RUN, findings=(FINDING,)), session="s", model_id="m", card=CARDS["run"])
    assert RUN_MIME == "application/vnd.torch-inspector.run+json"
    assert message.pop("card") == card_data(CARDS["run"])
    assert message == {
        "version": 1,
        "session": "s",
        "cell": 5,
        "duration_s": 12.5,
        "finding_count": 1,
        "fixed": [],
        "gone": [],
        "model_id": "m",
        "findings": [
            {
                "slug": "missing-zero-grad",
                "severity": "error",
                "cell": 5,
                "line": 4,
                "subject": "optimizer",
                "message": FINDING.message,
                "fix": "optimizer.zero_grad()",
                "code": "    optimizer.step()",
                "evidence": [
                    {"label": "steps", "value": 100, "unit": "count"},
                    {"label": "gradients", "value": 12_900_000, "unit": "bytes"},
                ],
                "status": "",
                "change": None,
            }
        ],
    }


def test_finding_without_a_cell_belongs_to_the_run():
    message = run_message(a_run(findings=(replace(FINDING, cell=None, severity=""),)), session="s")
    assert (message["findings"][0]["cell"], message["findings"][0]["severity"]) == (1, "hint")
    assert (message["card"], message["model_id"]) == (None, None)


def test_many_findings_are_cut_and_counted():
    message = run_message(a_run(findings=(FINDING,) * 1000), session="s")
    assert (len(message["findings"]), message["finding_count"]) == (50, 1000)


@pytest.mark.parametrize(
    ("value", "sent"),
    [(math.nan, "nan"), (-math.inf, "-inf"), (2**53, 2**53), (2**64, str(2**64)), (0.5, 0.5), (True, True)],
)
def test_numbers_that_json_or_javascript_lack_become_text(value, sent):
    run = a_run(findings=(replace(FINDING, evidence=(Evidence("x", value),)),), duration_s=math.inf)
    message = run_message(run, session="s")
    assert message["findings"][0]["evidence"][0]["value"] == sent
    assert message["duration_s"] == "inf"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_can_be_sent(text):
    sent = json.dumps(run_message(hostile_run(text), session=text), ensure_ascii=False, allow_nan=False).encode()
    assert len(sent) < 200_000


@given(VALUES)
def test_anything_can_be_encoded(value):
    json.dumps(encodable(value), ensure_ascii=False, allow_nan=False).encode()


def test_huge_numbers_can_be_encoded():
    json.dumps(encodable([10**5000, {"x": -(10**5000)}]))
