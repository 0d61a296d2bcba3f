"""The order of the steps around a cell, with an observer that only keeps a diary."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import a_cell, a_memory, a_snapshot, an_error
from torch_inspector.facts import CallFact, Run, Trace
from torch_inspector.facts.part_names import typed_in
from torch_inspector.findings import Evidence, Finding, one_for_each_fix
from torch_inspector.pitfall import Pitfall
from torch_inspector.session import Session, Settings

SOURCE = "one()\ntwo()\nthree()\n"
ALL_STEPS = ("open", "close", "memory", "trace", "error", "snapshot")


class Diary:
    """An observer that notes what it is asked, and fails where it is told to."""

    def __init__(self):
        self.steps = []
        self.failing = {}
        self.full = []

    def _note(self, step):
        self.steps.append(step)
        if step in self.failing:
            raise self.failing[step]

    def foresee(self, cell, names):
        pass

    def open(self, budget_s):
        assert budget_s > 0
        self._note("open")

    def close(self):
        self._note("close")

    def memory(self):
        self._note("memory")
        return (a_memory(allocated_nbytes=len(self.steps)),)

    def trace(self, cell):
        self._note("trace")
        return Trace(calls=(CallFact(cell.source[:3], 1),))

    def snapshot(self, names, history, cell, budget_s, *, full):
        assert names == {"x": 1}
        assert history == {}
        assert cell.source
        assert budget_s > 0
        self._note("snapshot")
        self.full.append(full)
        return a_snapshot(a_memory(allocated_nbytes=len(self.steps)))

    def error(self, error):
        self._note("error")
        return an_error("", kind=type(error).__name__)


def a_pitfall(check, slug="some-mistake", severity="warning"):
    """A pitfall without a page."""
    return Pitfall(slug, "tests", severity, check, Path("no-page.md"))


def finds(*findings):
    """A pitfall that always finds the same."""
    return a_pitfall(lambda _run: iter(findings))


def a_session(*pitfalls, diary=None, **changes):
    """A session whose observer is the diary."""
    watched = diary or Diary()
    session = Session(lambda: watched, lambda: pitfalls, lambda: {"x": 1}, **changes)
    return session, watched


def one(session, source=SOURCE, error=None, number=1, **changes):
    """One cell from begin to end."""
    session.begin(a_cell(source, number=number, **changes))
    return session.end(error)


# order -------------------------------------------------------------------------


def test_order_of_the_steps():
    session, diary = a_session()
    session.begin(a_cell(SOURCE))
    assert diary.steps == ["open", "memory"]
    assert session.cell.source == SOURCE
    run = session.end(None)
    assert diary.steps == ["open", "memory", "close", "trace", "snapshot"]
    assert session.cell is None
    assert (run.error, run.findings, run.earlier) == (None, (), ())
    assert run.before.memory == (a_memory(allocated_nbytes=2),)
    assert run.trace.calls == (CallFact("one", 1),)
    assert run.duration_s > 0
    assert run.inspection_s > 0
    assert session.failures.counts == {}


def test_everything_is_put_back_before_the_look_and_before_the_checks():
    diary = Diary()
    session, _ = a_session(a_pitfall(lambda _run: [Finding(" ".join(diary.steps))]), diary=diary)
    assert one(session).findings[0].message.split().index("close") < diary.steps.index("snapshot")


def test_error_becomes_a_fact():
    session, diary = a_session()
    run = one(session, error=ZeroDivisionError())
    assert run.error == an_error("", kind="ZeroDivisionError")
    assert diary.steps.count("error") == 1


def test_next_run_begins_with_what_the_last_one_left():
    session, _ = a_session()
    first = one(session)
    second = one(session, number=2)
    assert replace(second.before, memory=()) == replace(first.after, memory=())
    assert second.before.memory != first.after.memory, "memory is measured anew"
    assert second.earlier == (first,)


def test_check_gets_the_whole_run():
    seen = []

    def check(run):
        seen.append(run)
        return ()

    session, _ = a_session(a_pitfall(check), settings=Settings(min_nbytes=7))
    one(session)
    run = one(session, number=2)
    assert isinstance(seen[1], Run)
    assert (seen[1].cell, seen[1].before, seen[1].trace, seen[1].after) == (run.cell, run.before, run.trace, run.after)
    assert seen[1].min_nbytes == 7
    assert [earlier.cell.number for earlier in seen[1].earlier] == [1]


def test_report_is_a_full_look():
    session, diary = a_session()
    one(session)
    one(session, wants_report=True)
    session.begin(a_cell())
    session.want_report()
    assert session.end(None).cell.wants_report
    assert diary.full == [False, True, True]


def test_wanting_a_report_outside_a_cell_does_nothing():
    session, _ = a_session()
    session.want_report()
    assert session.cell is None


# out of step -------------------------------------------------------------------


def test_end_without_begin_is_nothing():
    session, diary = a_session()
    assert session.end(None) is None
    assert diary.steps == []


def test_begin_twice_closes_the_first():
    session, diary = a_session()
    session.begin(a_cell("first"))
    session.begin(a_cell("second"))
    assert diary.steps == ["open", "memory", "close", "open", "memory"]
    assert session.end(None).cell.source == "second"
    assert len(session.runs) == 1


def test_abandon_puts_back_and_forgets():
    session, diary = a_session()
    session.begin(a_cell())
    session.abandon()
    assert diary.steps == ["open", "memory", "close"]
    assert session.end(None) is None
    session.abandon()
    assert len(session.runs) == 0


def test_watching_anew_changes_the_observer():
    first, second = Diary(), Diary()
    watchers = iter([first, second])
    session = Session(lambda: next(watchers), tuple, lambda: {"x": 1})
    session.watch_now()
    assert first.steps == [], "no cell is running"
    session.begin(a_cell())
    session.watch_now()
    assert first.steps == ["open", "memory", "close"]
    session.end(None)
    assert second.steps == ["open", "close", "trace", "snapshot"]


def test_state_is_a_full_look_inside_a_cell_and_outside():
    session, diary = a_session()
    diary.snapshot = lambda *_args, full, **_kwargs: a_snapshot(a_memory()) if full else None
    assert session.state() == a_snapshot(a_memory())
    session.begin(a_cell())
    assert session.state() == a_snapshot(a_memory())


# history -----------------------------------------------------------------------


def test_history_is_bounded():
    session, _ = a_session()
    for number in range(120):
        run = one(session, number=number)
    assert [run.cell.number for run in session.runs] == list(range(70, 120))
    assert [earlier.cell.number for earlier in run.earlier] == list(range(99, 119))
    assert all(earlier.earlier == () for earlier in run.earlier), "a chain of runs would keep all of them"


# findings ----------------------------------------------------------------------


def test_findings_are_stamped():
    session, _ = a_session(finds(Finding("at a line", line=2), Finding("nowhere", severity="hint")))
    first, second = one(session, number=9).findings
    assert (first.slug, first.severity, first.cell, first.line, first.code) == (
        "some-mistake",
        "warning",
        9,
        2,
        "two()",
    )
    assert (second.severity, second.cell, second.line, second.code) == ("hint", 9, None, "")


def test_finding_in_an_earlier_cell_keeps_its_cell():
    session, _ = a_session(finds(Finding("there", cell=1, line=2)))
    (finding,) = one(session, source="a\nb\n", number=2).findings
    assert (finding.cell, finding.line) == (1, 2)
    assert finding.code != "b", "that is the text of another cell"


@pytest.mark.parametrize("line", [0, -1, 4, 10**9])
def test_impossible_lines_have_no_text(line):
    session, _ = a_session(finds(Finding("there", line=line)))
    assert one(session).findings[0].code == ""


def test_more_of_the_same_says_nothing_new():
    session, _ = a_session(finds(*(Finding(str(n), line=1) for n in range(40))), finds(Finding("other")))
    assert [finding.message for finding in one(session).findings] == [*"01234", "other"]


def test_muted():
    session, _ = a_session(finds(Finding("one")), replace(finds(Finding("two")), slug="another-mistake"))
    session.settings.muted = frozenset({"some-mistake"})
    assert [finding.message for finding in one(session).findings] == ["two"]
    session.settings.muted = frozenset()
    assert [finding.message for finding in one(session).findings] == ["one", "two"]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("a()\nb()  # torchcheck: ignore[some-mistake]\nc()", [1, 3]),
        ("a()\nb()  # torchcheck: ignore\nc()", [1, 3]),
        ("a()\nb()  #  torchcheck:ignore[x-y , some-mistake] because\nc()", [1, 3]),
        ("a()\nb()  # noqa  # torchcheck: ignore[some-mistake]\nc()", [1, 3]),
        ("a()\nb()  # torchcheck: ignore[other]\nc()", [1, 2, 3]),
        ("a()\nb()  # torchcheck: mute[some-mistake]\nc()", [1, 2, 3]),
        ("# torchcheck: ignore[some-mistake]\nb()\nc()", []),
        ("# torchcheck: ignore\nb()\nc()", []),
        ("# torchcheck: ignore[other]\nb()\nc()", [1, 2, 3]),
        ("# torchcheck: ignore[other]\n# torchcheck: ignore[some-mistake]\nc()", []),
        ("%%time\n# torchcheck: ignore[some-mistake]\nc()", []),
        ("a()\n# torchcheck: ignore[some-mistake]\nc()", [1, 3]),
        ("%%time  # torchcheck: ignore\nb()\nc()", []),
    ],
)
def test_comments_silence(source, lines):
    session, _ = a_session(finds(*(Finding("there", line=line) for line in (1, 2, 3))))
    assert [finding.line for finding in one(session, source).findings] == lines


def test_comment_of_this_cell_does_not_reach_lines_of_another():
    session, _ = a_session(finds(Finding("there", cell=1, line=2)))
    source = "a()\nb()  # torchcheck: ignore\n"
    assert len(one(session, source, number=2).findings) == 1


# failures ----------------------------------------------------------------------


def test_what_was_not_judged_is_no_clean_bill():
    mute, loud = replace(finds(Finding("x")), slug="mute"), replace(finds(Finding("x", line=1)), slug="loud")
    failing = a_pitfall(lambda _run: 1 / 0, slug="failing")
    session, _ = a_session(mute, loud, failing, replace(finds(), slug="clean"), settings=Settings(frozenset({"mute"})))
    assert one(session).unjudged == {"mute", "failing"}
    run = one(session, SOURCE.replace("one()", "one()  # torchcheck: ignore[loud]"), number=2)
    assert run.unjudged == {"mute", "failing", "loud"}


def a_failing_check(error):
    """A check that finds something and then fails."""

    def check(_run):
        yield Finding("before it failed")
        raise error

    return check


def test_check_that_raises_is_counted_and_the_others_are_heard():
    session, _ = a_session(
        replace(a_pitfall(a_failing_check(RuntimeError("user's secret"))), slug="broken"), finds(Finding("other"))
    )
    run = one(session)
    assert [finding.message for finding in run.findings] == ["other"]
    assert session.failures.counts == {"broken": 1}
    assert "RuntimeError" in session.failures.recent[0]
    assert "secret" not in session.failures.recent[0]


def test_check_that_keeps_failing_is_left_out():
    calls = []

    def check(_run):
        calls.append(1)
        raise ValueError

    session, _ = a_session(replace(a_pitfall(check), slug="broken"))
    for number in range(20):
        assert one(session, number=number) is not None
    assert len(calls) == 5


@pytest.mark.parametrize("nonsense", [None, 5, [1], [None], ["text"]])
def test_check_that_gives_nonsense_is_counted(nonsense):
    session, _ = a_session(replace(a_pitfall(lambda _run: nonsense), slug="broken"), finds(Finding("other")))
    assert [finding.message for finding in one(session).findings] == ["other"]
    assert session.failures.counts == {"broken": 1}


@pytest.mark.parametrize("error", [RuntimeError, RecursionError, MemoryError])
@pytest.mark.parametrize("step", ALL_STEPS)
def test_failing_step_hurts_no_cell(step, error):
    session, diary = a_session(finds(Finding("found")))
    diary.failing[step] = error()
    one(session, error=ValueError())
    assert session.cell is None
    assert "close" in diary.steps or step == "open"
    assert sum(session.failures.counts.values()) == 1
    diary.failing.clear()
    assert len(one(session, number=2).findings) == 1


@pytest.mark.parametrize("step", ALL_STEPS)
def test_interrupt_in_any_step_costs_one_run(step):
    session, diary = a_session(finds(Finding("found")))
    diary.failing[step] = KeyboardInterrupt()
    with contextlib.suppress(KeyboardInterrupt):
        one(session, error=ValueError())
    diary.failing.clear()
    assert len(one(session, number=2).findings) == 1
    assert session.cell is None
    assert diary.steps[-3:] == ["close", "trace", "snapshot"]


@pytest.mark.parametrize("step", ["open", "close", "memory", "trace", "error", "snapshot"])
def test_failing_step_leaves_what_the_others_saw(step):
    session, diary = a_session(finds(Finding("found")))
    diary.failing[step] = RuntimeError()
    run = one(session, error=ValueError())
    assert run is not None
    assert len(run.findings) == 1


def test_interrupt_inside_a_check_costs_one_run():
    interrupts = iter([KeyboardInterrupt()])

    def check(_run):
        for error in interrupts:
            raise error
        return ()

    session, _ = a_session(replace(a_pitfall(check), slug="slow"), finds(Finding("other")))
    with contextlib.suppress(KeyboardInterrupt):
        one(session)
    assert len(one(session).findings) == 1
    assert session.failures.counts["slow"] == 1


def test_failing_pitfalls_cost_the_run_only():
    def broken():
        raise ImportError

    diary = Diary()
    session = Session(lambda: diary, broken, lambda: {"x": 1})
    one(session)
    assert session.cell is None
    session.pitfalls = lambda: (finds(Finding("found")),)
    assert len(one(session).findings) == 1


def test_contract_of_names():
    session, _ = a_session(finds(Finding("m", "s", "f", 1, evidence=(Evidence("l", 3, "count"),))))
    run = one(session)
    assert isinstance(run.findings, tuple)
    (finding,) = run.findings
    names = ("slug", "severity", "cell", "line", "subject", "message", "fix", "evidence")
    assert [getattr(finding, name) for name in names] == [
        "some-mistake", "warning", 1, 1, "s", "m", "f", (Evidence("l", 3, "count"),)
    ]  # fmt: skip
    assert [getattr(finding.evidence[0], name) for name in ("label", "value", "unit")] == ["l", 3, "count"]


def test_one_card_for_one_fix_at_one_line():
    first = Finding("1", subject="a", fix="f", line=2, severity="warning", slug="one")
    graver = Finding("2", subject="b", fix="f", line=2, severity="error", slug="two")
    others = [
        Finding("3", subject="c", fix="f", line=2, severity="error", slug="two"),  # of another variable
        Finding("4", subject="a", fix="f", line=3, severity="warning", slug="one"),
        Finding("5", subject="a", fix="f", line=2, severity="hint", slug="one"),
        Finding("6", subject="a", line=2, severity="warning", slug="one"),
        Finding("7", subject="b", line=2, severity="error", slug="two"),
    ]
    assert one_for_each_fix([first, graver, *others]) == [graver, *others]
    assert one_for_each_fix([graver, replace(graver, message="8")]) == [graver]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("net.1.mem = net.1.mem.detach()", "net[1].mem = net[1].mem.detach()"),
        ("trainer.nets[0].layer1.0.conv1", "trainer.nets[0].layer1[0].conv1"),
        ("clip_grad_norm_(net.0.parameters(), 1.0)  # or 0.5", "clip_grad_norm_(net[0].parameters(), 1.0)  # or 0.5"),
        ("state['net.0.weight']", "state['net.0.weight']"),
        ('torch.load("model.2.pt")', 'torch.load("model.2.pt")'),
        ("x * 2.5e3 + x.clamp(-1.5)", "x * 2.5e3 + x.clamp(-1.5)"),
    ],
)
def test_numbers_of_parts_are_written_so_that_they_can_be_typed(text, typed):
    assert typed_in(text) == typed
