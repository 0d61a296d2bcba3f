"""What is sent is what the schema says, and what the files say that the sidebar is tested with."""

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from tests.fakes import a_cell, a_memory, a_module, a_run, a_snapshot, an_optimizer
from tests.notebook.feed.samples import FOLDER, HOST, RUN, a_finished_cell, all_messages, made
from torch_inspector.account import MemoryReport, MemoryRow
from torch_inspector.findings import Finding
from torch_inspector.notebook.feed import messages

SCHEMA = json.loads(messages.SCHEMA.read_text(encoding="utf-8"))
CHECK = jsonschema.Draft202012Validator(SCHEMA)
MADE = all_messages()
NASTY = "\ud800\x00\u202e<script>" * 500


def valid(message):
    """The message as JSON gives it back, found to be what the schema says."""
    read = json.loads(json.dumps(message, allow_nan=False).encode("utf-8"))
    CHECK.validate(read)
    return read


def test_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_there_is_a_file_for_each_message_and_no_other():
    assert {file.stem for file in FOLDER.glob("*.json")} == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_files_hold_what_the_kernel_sends(name):
    assert valid(MADE[name]) == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def test_schema_knows_every_message_that_is_sent():
    known = {name for name, form in SCHEMA["$defs"].items() if "op" in form.get("properties", {})}
    assert known == {message["op"] for message in MADE.values()}


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"op": "unheard"}, {"run": "x"}, {"at": -1}, {"cell": {}}, {"devices": "host"}, {"gap": None}]
)
def test_schema_refuses(change):
    assert not CHECK.is_valid({**MADE["sample"], **change})


def test_nasty_names_are_made_harmless():
    module = a_module(path=NASTY, kind=NASTY, devices=(NASTY,) * 50)
    snapshot = a_snapshot(a_memory(NASTY), *[module] * 200, *[an_optimizer(path=NASTY)] * 50)
    row = messages.cell_row(a_run(cell=a_cell(id=NASTY), after=snapshot), 1, {}, 0)
    state = messages.state(snapshot)
    valid(made("cell", cell=row, state=state))
    assert not state["complete"]


@pytest.mark.parametrize("rate", [math.nan, math.inf, None, 10**400, 0.1, 1])
def test_learning_rates_that_json_cannot_say(rate):
    state = messages.state(a_snapshot(an_optimizer(learning_rate=rate)))
    valid(made("cell", cell=MADE["cell"]["cell"], state=state))


def test_an_account_of_thousands_of_rows_is_cut():
    rows = tuple(MemoryRow(NASTY, NASTY, NASTY, 10**30, also=(NASTY,) * 100) for _ in range(3000))
    valid(made("account", **messages.account(MemoryReport(rows=rows, notes=(NASTY,) * 50))))


@pytest.mark.parametrize(
    ("before", "after", "seen", "peak"),
    [
        (HOST, HOST._replace(peak_nbytes=900 << 20), 0, 900 << 20),
        (HOST, HOST, 350 << 20, 350 << 20),
        (HOST, HOST, 0, 300 << 20),
        (HOST, HOST._replace(allocated_nbytes=1), 0, 300 << 20),
    ],
)
def test_peak_of_a_cell(before, after, seen, peak):
    run = a_run(before=a_snapshot(before), after=a_snapshot(after))
    (change,) = messages.cell_row(run, 1, {"host": seen}, 0)["memory"]
    assert change["peak"] == peak


def test_message_of_a_cell():
    run = replace(a_finished_cell(), duration_s=2.0)
    row = messages.cell_row(run, 10_000, {}, 7)
    assert (row["number"], row["id"], row["began"], row["steps"]) == (1, "cell-1", 8_000, 7)
    assert [change["after"] - change["before"] for change in row["memory"]] == [0, 624 << 20]
    assert [found["slug"] for found in row["findings"]] == ["missing-zero-grad"]
    assert MADE["cell"]["run"] == RUN


@pytest.mark.parametrize(
    ("fix", "sentence"),
    [
        ("# give the loss raw scores,\n# without sigmoid", "give the loss raw scores, without sigmoid"),
        ("del losses  # when they are read", ""),
        ("", ""),
    ],
)
def test_fix_that_is_no_code_is_a_sentence_too(fix, sentence):
    (told,) = messages.early_findings([Finding("m", fix=fix)], a_cell())
    assert (told["fix"], told["fix_sentence"]) == (fix, sentence)
