import pytest

from torch_inspector.notebook.cells import files_of
from torch_inspector.notebook.options import ReportFiles, report_files


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("", ReportFiles()),
        ("--json a.json", ReportFiles(json="a.json")),
        ("--html=b.html --json=a=b", ReportFiles(json="a=b", html="b.html")),
        ("--json 'my runs/a.json'", ReportFiles(json="my runs/a.json")),
        ("--json a --json b", ReportFiles(json="b")),
    ],
)
def test_files(words, files):
    assert report_files(words) == files


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--json", "--json needs the name of a file"),
        ("--json=", "--json needs the name of a file"),
        ("--json --html x", "--json needs the name of a file"),
        ("please", "'please' is ignored: %%torchcheck takes --json FILE and --html FILE"),
        ("--json a b", "'b' is ignored: %%torchcheck takes --json FILE and --html FILE"),
        ("--json a --html a", "--json and --html name the same file"),
        ("--json 'a", "a quotation mark has no partner in --json 'a"),
    ],
)
def test_what_is_not_understood_is_told_in_one_line(words, told):
    with pytest.raises(ValueError, match=r".") as caught:
        report_files(words)
    assert str(caught.value) == told


def test_long_and_hostile_words_are_cut():
    for words in ("x" * 10**6, "\u202e\x1b[2J", "'" + "y" * 10**5):
        with pytest.raises(ValueError, match=r".") as caught:
            report_files(words)
        assert len(str(caught.value)) < 160
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("%%torchcheck --json a\nx = 1", ReportFiles("a")),
        ("\n%%time\n%%torchcheck --html b\nx = 1", ReportFiles(html="b")),
        ("%%torchcheck\nx = 1", ReportFiles()),
        ("%%torchcheck please\nx = 1", ReportFiles()),
        ("x = '''\n%%torchcheck --json a\n'''", ReportFiles()),
        ("", ReportFiles()),
    ],
)
def test_files_of_a_cell(source, files):
    assert files_of(source) == files
