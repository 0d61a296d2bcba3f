from importlib import import_module
from typing import Any

import pytest

from tests.fakes import a_run
from torch_inspector import pitfalls
from torch_inspector.findings import SEVERITIES, Finding
from torch_inspector.pitfall import Pitfall, from_check, pitfall
from torch_inspector.pitfalls import all_pitfalls, unloaded

# Guards against a walk that finds nothing; adding a pitfall does not touch it.
FEWEST_PITFALLS = 12


def test_names_follow_from_the_file(tmp_path):
    file = tmp_path / "training" / "missing_zero_grad.py"
    names: dict[str, Any] = {"pitfall": pitfall, "Finding": Finding}
    source = "@pitfall(severity='warning')\ndef check(run):\n    yield Finding('found')\n"
    exec(compile(source, file, "exec"), names)  # noqa: S102  a check without a file on disk

    declared = from_check(names["check"])

    assert (declared.slug, declared.subject) == ("missing-zero-grad", "training")
    assert declared.severity == "warning"
    assert declared.page_path == file.with_suffix(".md")
    assert [finding.message for finding in declared.check(a_run())] == ["found"]


def test_missing_page_is_an_error_only_when_it_is_read(tmp_path):
    declared = Pitfall("x", "training", "hint", lambda _: (), tmp_path / "x.md")
    with pytest.raises(OSError, match=r"x\.md"):
        _ = declared.page


def test_pitfalls_are_found():
    slugs = [each.slug for each in all_pitfalls()]
    assert len(slugs) >= FEWEST_PITFALLS
    assert slugs == sorted(set(slugs))
    assert unloaded.counts == {}


def test_a_file_that_cannot_be_loaded_costs_its_own_rule_only(monkeypatch):
    def failing(name):
        if name.endswith("training.weights_unchanged"):
            raise ImportError("half an upgrade")
        return import_module(name)

    whole = {each.slug for each in all_pitfalls()}
    monkeypatch.setattr(pitfalls, "import_module", failing)
    left = {each.slug for each in all_pitfalls.__wrapped__()}

    assert whole - left == {"weights-unchanged"}
    assert unloaded.counts == {"rule file training.weights_unchanged": 1}
    unloaded.counts.clear()
    unloaded.recent.clear()


def test_every_check_has_its_page_and_every_page_its_check():
    folder = pitfalls._HERE
    checks = {file.relative_to(folder).with_suffix("") for file in folder.glob("*/[!_]*.py")}
    pages = {file.relative_to(folder).with_suffix("") for file in folder.rglob("*.md")}
    assert checks == pages


@pytest.mark.parametrize("each", all_pitfalls(), ids=lambda each: each.slug)
def test_declaration_is_whole(each):
    assert each.severity in SEVERITIES
    assert each.page.title
    assert each.page.summary
    assert each.page_path.parent.parent == pitfalls._HERE
