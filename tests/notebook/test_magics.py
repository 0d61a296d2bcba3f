"""The words of `%torchcheck`, the report of `%%torchcheck`, comments that silence, and completion."""

import json
import sys
import traceback

import pytest
from IPython.core.completer import provisionalcompleter

from tests.cells import a_notebook
from tests.notebook.samples import (
    GOOD_LOOP,
    LOOP,
    MIMES,
    RUN_MIME,
    SETUP,
    SLUG,
    as_function,
    found,
    in_step,
    line_of,
    texts,
    typed,
)
from torch_inspector.pitfalls import all_pitfalls, unloaded

# The older door is the one through which a text can be completed without a front end.
pytestmark = pytest.mark.filterwarnings("ignore:`Completer.complete`:PendingDeprecationWarning")

SLUGS = [pitfall.slug for pitfall in all_pitfalls()]


@pytest.fixture
def notebook():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        yield notebook


def answer(notebook, source):
    """The one text that a cell of one magic publishes."""
    before = len(notebook.published)
    notebook.run(source)
    assert notebook.errors[-1] is None
    (data,) = notebook.published[before:]
    return data["text/plain"]


# words -------------------------------------------------------------------------


def test_without_a_word_it_shows_what_is_alive(notebook):
    text = answer(notebook, "%torchcheck")
    assert all(word in text for word in ("model", "Linear", "optimizer", "SGD", "Memory", "train"))
    assert set(notebook.published[-1]) == {"text/plain", "text/html"}


def test_state_while_it_is_off(notebook):
    notebook.run("%torchcheck off")
    assert "Linear" in answer(notebook, "%torchcheck")


def test_list_names_every_pitfall_and_marks_muted_ones(notebook):
    text = answer(notebook, "%torchcheck list")
    assert all(slug in text for slug in SLUGS)
    assert "muted" not in text
    notebook.run(f"%torchcheck mute {SLUG}")
    assert "muted" in answer(notebook, "%torchcheck list")


def test_explain_shows_the_page(notebook):
    text = answer(notebook, f"%torchcheck explain {SLUG}")
    assert all(heading in text for heading in ("Why it hurts", "Bad", "Good", "Sources"))


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("%torchcheck mut", ["'mut'", "did you mean mute?"]),
        ("%torchcheck lst", ["'lst'", "did you mean list?"]),
        ("%torchcheck zzzzqq", ["'zzzzqq'", "%torchcheck help"]),
        ("%torchcheck " + "z" * 500, ["zzz", "%torchcheck help"]),
        ("%torchcheck explain missing-zero-gradd", ["did you mean missing-zero-grad?"]),
        ("%torchcheck mute missing_zero_grad", ["did you mean missing-zero-grad?"]),
        ("%torchcheck explain zzzzqq", ["no pitfall", "zzzzqq"]),
        ("%torchcheck explain", ["name of one pitfall", "%torchcheck list"]),
        ("%torchcheck mute", ["name of one pitfall"]),
        ("%torchcheck unmute a b", ["name of one pitfall"]),
        (f"%torchcheck unmute {SLUG}", ["was not muted"]),
        ("%torchcheck failures", ["nothing went wrong"]),
    ],
)
def test_answers_of_one_line(notebook, source, parts):
    text = answer(notebook, source)
    assert "\n" not in text
    assert len(text) < 160
    assert all(part in text for part in parts)
    in_step(notebook)


def test_help_knows_every_word(notebook):
    text = answer(notebook, "%torchcheck help")
    assert all(word in text for word in notebook.extension._torchcheck.words if word != "help")


def test_mute_and_unmute(notebook):
    assert SLUG in answer(notebook, f"%torchcheck mute {SLUG}")
    assert found(notebook.run(LOOP)) == []
    assert SLUG in answer(notebook, f"%torchcheck unmute {SLUG}")
    in_step(notebook)


def test_off_and_on(notebook):
    answer(notebook, "%torchcheck off")
    assert notebook.run(LOOP) is None
    answer(notebook, "%torchcheck on")
    in_step(notebook)


def test_off_twice_and_on_in_the_same_cell(notebook):
    notebook.run("%torchcheck off\n%torchcheck off\n" + LOOP)
    notebook.run("%torchcheck on\n%torchcheck on")
    in_step(notebook)
    notebook.run("%torchcheck off\n%torchcheck on\n" + LOOP)
    in_step(notebook)


def test_failures_are_shown_on_request(notebook):
    failures = notebook.extension.session.failures
    failures.note("some-part", RuntimeError("secret"))
    text = answer(notebook, "%torchcheck failures")
    assert "some-part 1" in text
    assert "RuntimeError" in text
    failures.counts.clear()


def test_rule_files_that_could_not_be_loaded_are_shown_as_failures(notebook):
    unloaded.note("rule file training.x", ImportError("secret"))
    text = answer(notebook, "%torchcheck failures")
    assert "rule file training.x 1" in text
    unloaded.counts.clear()
    unloaded.recent.clear()


# report ------------------------------------------------------------------------


def test_report_is_shown_when_nothing_is_wrong(notebook):
    run = notebook.run("%%torchcheck\n" + GOOD_LOOP)
    assert found(run) == []
    (bundle,) = notebook.published
    assert set(bundle) == MIMES
    for part in ("no findings", "Memory", "before", "after", "model", "Linear", "train", "backward", "step"):
        assert part in bundle["text/plain"]


def test_report_names_new_tensors_and_graphs(notebook):
    notebook.run("%%torchcheck\nkept = [model(x) for _ in range(3)]\nextra = torch.ones(5, 7)")
    (text,) = texts(notebook)
    assert "kept" in text
    assert "extra" in text
    assert "(5, 7)" in text


def test_report_below_another_magic(notebook):
    for head in ("%%time\n%%torchcheck\n", "%%capture\n%%torchcheck\n", "%%capture\n\n%%torchcheck\n"):
        assert "report" in answer(notebook, head + "a = 1")


def test_report_shows_the_last_expression(notebook):
    result, out = typed(notebook, "%%torchcheck\n20 + 22")
    assert result.result == 42
    assert "42" in out
    assert notebook.shell.user_ns["_"] == 42
    result, out = typed(notebook, "%%torchcheck\n20 + 22;")
    assert "42" not in out


def test_report_runs_magics_inside(notebook):
    _, out = typed(notebook, "%%torchcheck\nfolder = %pwd\n%time a = 1\nfiles = !echo hi")
    assert "Wall time" in out
    assert (notebook.shell.user_ns["a"], list(notebook.shell.user_ns["files"])) == (1, ["hi"])


def test_report_awaits(notebook):
    notebook.run("%%torchcheck\nimport asyncio\nawaited = await asyncio.sleep(0, 5)\nawaited")
    assert notebook.errors[-1] is None
    assert notebook.shell.user_ns["awaited"] == 5


def test_report_defines_variables_in_the_notebook(notebook):
    notebook.run("%%torchcheck\na_new_name = 1\n%torchcheck list")
    assert notebook.shell.user_ns["a_new_name"] == 1


@pytest.mark.parametrize("head", ["", "%%torchcheck\n%%time\n"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("1 / 0", ZeroDivisionError),
        ("model(torch.rand(8, 4))", RuntimeError),
        ("model(x).backward()", RuntimeError),
        ("torch.autograd.grad(torch.ones(()), x)", RuntimeError),
        ("model.train('often')", ValueError),
        ("model.load_state_dict({})", RuntimeError),
        ("optimizer.zero_grad(nonsense=True)", TypeError),
        ("torch.optim.lr_scheduler.StepLR(optimizer, 1).step(nonsense=True)", TypeError),
        ("next(iter(torch.utils.data.DataLoader([object()])))", TypeError),
        ("next(iter(torch.utils.data.DataLoader([])))", StopIteration),
        ("optimizer.step(lambda: 1 / 0)", ZeroDivisionError),
        ("torch.amp.GradScaler('cpu').step(5)", Exception),
    ],
)
def test_error_is_the_users_own(notebook, head, code, kind):
    notebook.run(head + code)
    assert isinstance(notebook.errors[-1], kind)
    assert sys.last_value is notebook.errors[-1]
    error = sys.last_value
    while error is not None:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not [name for name in files if "torch_inspector/" in name.replace("/tests/", "")]
        error = error.__cause__ or error.__context__
    in_step(notebook)


def test_words_behind_the_report_are_told_and_ignored(notebook):
    notebook.run("%%torchcheck please\nresult = 6 * 7\nresult")
    first, second = texts(notebook)
    assert "please" in first
    assert "\n" not in first
    assert "report" in second
    assert notebook.shell.user_ns["result"] == 42
    in_step(notebook)


@pytest.mark.parametrize("head", ["%%torchcheck {}\n", "%%time\n%%torchcheck {}\n", "%%torchcheck {}\n%%time\n"])
def test_report_is_written(notebook, head, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = head.format("--json run.json --html 'my run.html'") + LOOP
    run = notebook.run(source)
    assert found(run) == [(SLUG, 2, line_of(source))]
    report, told = texts(notebook)
    assert "report" in report
    assert [line.partition(":")[0] for line in told.split("\n")] == ["run.json", "my run.html"]
    message = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (message["version"], message["findings"][0]["slug"]) == (1, SLUG)
    assert message["card"]["title"] in (tmp_path / "my run.html").read_text(encoding="utf-8")
    in_step(notebook)


def test_report_that_cannot_be_written_is_told_and_shown(notebook, tmp_path):
    notebook.run(f"%%torchcheck --json {tmp_path}\nresult = 6 * 7")
    report, told = texts(notebook)
    assert "report" in report
    assert told == f"{tmp_path} was not written: it is a folder"
    assert notebook.shell.user_ns["result"] == 42


def test_awaiting_cell_is_written(notebook, tmp_path):
    notebook.run(f"%%torchcheck --json {tmp_path / 'a'}\nimport asyncio\nawait asyncio.sleep(0)")
    assert notebook.errors[-1] is None
    assert (tmp_path / "a").exists()


def test_help_of_the_magic(notebook):
    notebook.run("%torchcheck?")
    assert notebook.errors[-1] is None


def test_data_of_the_bundle_is_the_contract(notebook):
    notebook.run(LOOP)
    (bundle,) = notebook.published
    message = bundle[RUN_MIME]
    assert message["version"] == 1
    assert message["cell"] == 2
    (finding,) = message["findings"]
    assert {"slug", "severity", "cell", "line", "subject", "message", "fix", "evidence"} <= set(finding)
    assert (finding["slug"], finding["severity"], finding["cell"], finding["line"]) == (SLUG, "error", 2, 4)
    assert finding["subject"] == "optimizer"
    assert "optimizer.zero_grad()" in finding["fix"]
    assert all(set(evidence) == {"label", "value", "unit"} for evidence in finding["evidence"])
    assert {"label": "parameters", "value": 2, "unit": "count"} in finding["evidence"]


# comments ----------------------------------------------------------------------

HUSH = f"  # torchcheck: ignore[{SLUG}]"
QUIET_LOOP = LOOP.replace("step()", "step()" + HUSH)


@pytest.mark.parametrize(
    "source",
    [
        QUIET_LOOP,
        LOOP.replace("step()", f"step()  #torchcheck:ignore[eval-missing, {SLUG}]"),
        LOOP.replace("step()", "step()  # torchcheck: ignore"),
        HUSH.strip() + "\n" + LOOP,
        "\n# my training\n" + HUSH.strip() + "\n\n" + LOOP,
        "# torchcheck: ignore\n" + LOOP,
        "%%time\n" + HUSH.strip() + "\n" + LOOP,
        "%%time\n" + QUIET_LOOP,
        "%%capture\n%%time\n" + QUIET_LOOP,
    ],
)
def test_comment_silences(notebook, source):
    assert found(notebook.run(source)) == []
    assert notebook.published == []
    in_step(notebook)


@pytest.mark.parametrize(
    "source",
    [
        LOOP.replace("step()", "step()  # torchcheck: ignore[eval-missing]"),
        LOOP.replace("backward()", "backward()" + HUSH),
        LOOP + HUSH.strip(),
        "# torchcheck: ignore[eval-missing]\n" + LOOP,
        "a = 1\n" + HUSH.strip() + "\n" + LOOP,
    ],
)
def test_comment_elsewhere_does_not(notebook, source):
    assert [slug for slug, _, _ in found(notebook.run(source))] == [SLUG]


def test_comment_on_the_line_of_an_earlier_cell_silences(notebook):
    notebook.run(as_function(QUIET_LOOP))
    assert found(notebook.run("train()")) == []


# completion --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%torchcheck mu", ["mute"]),
        ("%torchcheck mute miss", [SLUG]),
        ("%torchcheck   mute   miss", [SLUG]),
        ("%torchcheck explain eval", [slug for slug in SLUGS if slug.startswith("eval")]),
        ("%torchcheck unmute ", SLUGS),
        ("torchcheck unm", ["unmute"]),
        ("%torchcheck fai", ["failures"]),
        ("%%torchcheck --", ["--json", "--html"]),
        ("%%torchcheck --h", ["--html"]),
        ("%%torchcheck --json a.json --", ["--html"]),
    ],
)
def test_completion(notebook, text, expected):
    assert notebook.shell.complete(None, text, len(text))[1] == expected


def test_completion_of_all_words(notebook):
    text = "%torchcheck "
    assert set(notebook.shell.complete(None, text, len(text))[1]) == set(notebook.extension._torchcheck.words)


@pytest.mark.parametrize("text", ["%torchc", "%%torchc"])
def test_completion_of_the_magic_itself(notebook, text):
    assert "%%torchcheck" in notebook.shell.complete(None, text, len(text))[1]


@pytest.mark.parametrize(
    ("text", "after"), [("%torchcheck mu", ""), ("x = 1\n%torchcheck mu", ""), ("%torchcheck mu", " eval")]
)
def test_completion_as_front_ends_ask_for_it(notebook, text, after):
    with provisionalcompleter():
        completions = list(notebook.shell.Completer.completions(text + after, len(text)))
    assert [completion.text for completion in completions] == ["mute"]


def test_one_slug_is_enough(notebook):
    text = f"%torchcheck mute {SLUG} "
    assert SLUG not in notebook.shell.complete(None, text, len(text))[1]


def test_terminal_waits_behind_options_too(notebook):
    check = notebook.shell.check_complete
    assert check("%%torchcheck --json a\nx = 1\n") == check("%%time --no-raise-error\nx = 1\n")


@pytest.mark.parametrize("text", ["%%{}\n", "%%{}\nx = 1\n", "%%{}\nfor i in range(3):\n    i\n", "%%{}\nx = 1\n\n"])
def test_terminal_waits_for_the_cell_as_with_any_cell_magic(notebook, text):
    check = notebook.shell.check_complete
    assert check(text.format("torchcheck")) == check(text.format("time"))
