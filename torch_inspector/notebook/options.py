"""The words behind `%%torchcheck`: files that the report is written to."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from torch_inspector.views.plain import one_line

OPTIONS = ("--json", "--html")
_SHOWN = 60
# Longer than any two names of files that a system takes.
_LONGEST = 10_000


class ReportFiles(NamedTuple):
    """Where the report goes besides the output; empty for nowhere."""

    json: str = ""
    html: str = ""


def report_files(words: str) -> ReportFiles:
    """The files that the words name: `--json run.json --html=run.html`.

    Raises:
        ValueError: they say anything else; the message is one line for the user.
    """
    if len(words) > _LONGEST:  # `shlex` takes time by the square of it
        raise ValueError(f"{one_line(words, _SHOWN)!r} is ignored: names of files are shorter")
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise ValueError(f"a quotation mark has no partner in {one_line(words, _SHOWN)}") from error
    found: dict[str, str] = {}
    left = iter(parts)
    for part in left:
        option, equals, value = part.partition("=")
        if option not in OPTIONS:
            raise ValueError(f"{one_line(part, _SHOWN)!r} is ignored: %%torchcheck takes --json FILE and --html FILE")
        name = value if equals else next(left, "")
        if not name or name in OPTIONS:
            raise ValueError(f"{option} needs the name of a file")
        found[option.removeprefix("--")] = name
    if len(set(found.values())) < len(found):
        raise ValueError("--json and --html name the same file")
    return ReportFiles(**found)
