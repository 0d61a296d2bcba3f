"""`%torchcheck` and `%%torchcheck`: each word is a few lines that call the session and a view."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from torch_inspector.notebook.asked import Asked
from torch_inspector.notebook.muting import Wish
from torch_inspector.notebook.options import OPTIONS, report_files
from torch_inspector.pitfalls import all_pitfalls, find_pitfall, unloaded

if TYPE_CHECKING:
    from torch_inspector.notebook.extension import Extension

HELP = """\
%torchcheck                  what holds now: memory, modules, optimizers, graphs
%%torchcheck                 run this cell and show the full report, also when nothing is wrong; --json FILE and
                             --html FILE write it, too
%torchcheck memory           who holds the memory, by name; --since 12: made after cell 12
%torchcheck holders NAME     everything that keeps a tensor or module alive; a number picks from the last table
%torchcheck free             what the notebook holds on to; --yes lets go of it
%torchcheck list             all pitfalls
%torchcheck explain NAME     why it hurts, with examples
%torchcheck mute NAME        be silent about it; --always: in every notebook; unmute NAME undoes both
%torchcheck off              look at nothing; on begins again
%torchcheck failures         what went wrong inside torch_inspector itself
# torchcheck: ignore[NAME]   on a line: silent there; on top of a cell: silent in the whole cell"""


class Torchcheck:
    """The words behind `%torchcheck`."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        asked = Asked(extension)
        self.words: dict[str, Callable[[list[str]], None]] = {
            "memory": asked.memory,
            "holders": lambda words: asked.holders(" ".join(words)),
            "free": asked.free,
            "list": self._list,
            "explain": self._explain,
            "mute": self._mute,
            "unmute": self._unmute,
            "off": self._off,
            "on": self._on,
            "failures": self._failures,
            "help": self._help,
        }

    def __call__(self, line: str, cell: str | None = None) -> None:
        """Ask about PyTorch state, or run a cell with the full report.

        Runs one `%torchcheck` line. As `%%torchcheck` it is reached only where the input transformer did not act
        (from code, or with words behind it): the cell then runs as a nested one.
        """
        word, *rest = line.split() or [""]
        if cell is not None:
            try:
                report_files(line)
            except ValueError as error:
                self._extension.say(f"%%torchcheck: {error}")
            self._extension.run_with_report(cell)
        elif not word:
            self._extension.show_state()
        elif word in self.words:
            self.words[word](rest)
        else:
            self._unknown(word)

    def complete(self, line: str) -> list[str]:
        """What may follow in a `%torchcheck` line."""
        words = line.split()[1:]
        if line.startswith("%%"):
            return [option for option in OPTIONS if option not in words[:-1]] if _awaits_option(line) else []
        finished = words if line.endswith(" ") else words[:-1]
        if not finished:
            return list(self.words)
        takes_slug = len(finished) == 1 and finished[0] in ("explain", "mute", "unmute")
        return [pitfall.slug for pitfall in all_pitfalls()] if takes_slug else []

    def _unknown(self, word: str) -> None:
        near = get_close_matches(word, self.words, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "%torchcheck help lists the words"
        self._extension.say(f"%torchcheck does not know {word[:40]!r}; {hint}")

    def _list(self, _rest: list[str]) -> None:
        self._extension.show_list()

    def _explain(self, rest: list[str]) -> None:
        self._with_slug("explain", rest, self._extension.show_page)

    def _mute(self, rest: list[str]) -> None:
        scope = "always" if "--always" in rest else "notebook"

        def mute(slug: str) -> None:
            path = self._extension.muting.heed(Wish(slug, scope))
            where = f", in every notebook: {path} says so," if path else ""
            self._extension.say(f"{slug} stays silent{where} until `%torchcheck unmute {slug}`")

        self._with_slug("mute", [word for word in rest if word != "--always"], mute)

    def _unmute(self, rest: list[str]) -> None:
        def unmute(slug: str) -> None:
            muted = self._extension.muting.forget(slug)
            self._extension.say(f"{slug} is reported again" if muted else f"{slug} was not muted")

        self._with_slug("unmute", rest, unmute)

    def _with_slug(self, word: str, rest: list[str], act: Callable[[str], None]) -> None:
        if len(rest) != 1:
            self._extension.say(f"%torchcheck {word} takes the name of one pitfall; %torchcheck list shows them")
            return
        try:
            act(find_pitfall(rest[0]).slug)
        except ValueError as error:
            self._extension.say(str(error))

    def _off(self, _rest: list[str]) -> None:
        self._extension.switch(on=False)
        self._extension.say("torch_inspector is off; %torchcheck on begins again")

    def _on(self, _rest: list[str]) -> None:
        self._extension.switch(on=True)
        self._extension.say("torch_inspector looks at every cell from the next one on")

    def _failures(self, _rest: list[str]) -> None:
        both = (self._extension.session.failures, unloaded)
        found = sorted((part, count) for failures in both for part, count in failures.counts.items())
        if not found:
            self._extension.say("nothing went wrong inside torch_inspector")
            return
        counts = ", ".join(f"{part} {count}" for part, count in found)
        self._extension.say("\n".join((f"inner failures: {counts}", *(one for each in both for one in each.recent))))

    def _help(self, _rest: list[str]) -> None:
        self._extension.say(HELP)


def _awaits_option(line: str) -> bool:
    """True unless the word before is an option, behind which a file is named."""
    words = line.split()
    before = words[-1] if line.endswith(" ") else words[-2] if len(words) > 1 else ""
    return before not in OPTIONS


def line_completer(torchcheck: Torchcheck) -> Callable[[Any, Any], list[str]]:
    """The hook that IPython calls for completions behind `%torchcheck`."""

    def complete(_completer: Any, event: Any) -> list[str]:
        return torchcheck.complete(event.text_until_cursor)

    return complete
