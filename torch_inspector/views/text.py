"""A card as text for a terminal, a log or a front end that draws nothing better."""

from __future__ import annotations

import re
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from torch_inspector.views.card import SHAPES, Bars, Card, Code, Details, Line, Part, Prose, Table, Tone

_COLOURS: dict[Tone, str] = {"error": "red", "warning": "yellow", "hint": "cyan", "calm": ""}
# Narrower than this, tables would have more lines than letters.
_MIN_WIDTH = 20
# Paths up to this long stay whole while other columns fold.
_NAME_WIDTH = 34
# Columns of the longest bar.
_BAR_WIDTH = 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_BLANKS = re.compile(r"\n{3,}")


def to_text(card: Card, width: int = 80, *, colour: bool = False) -> str:
    """The card in lines of at most `width` columns (20 at least), each ended by a newline.

    Args:
        card: What to draw.
        width: Columns of the screen.
        colour: Write ANSI codes too; without them the text is plain.
    """
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, _MIN_WIDTH),
        color_system="standard" if colour else None,
        force_terminal=colour,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    console.print(_card(card))
    lines = (line.rstrip(" ") for line in out.getvalue().split("\n"))
    return _BLANKS.sub("\n\n", "\n".join(lines).strip("\n")) + "\n"


def _part(part: Part) -> RenderableType:
    if isinstance(part, Card):
        return Group("", _card(part))
    if isinstance(part, Line):
        return _toned(part.text, part.tone, strong=part.strong)
    if isinstance(part, Code):
        return _numbered(part) if part.first else _below(part.caption, Text(part.text, overflow="fold"))
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Bars):
        return _bars(part)
    return _prose(part) if isinstance(part, Prose) else _details(part)


def _card(card: Card) -> RenderableType:
    return _stack(_toned(card.title, card.tone, strong=True), *map(_part, card.parts))


def _toned(text: str, tone: Tone, *, strong: bool = False) -> Text:
    style = f"{'bold' if strong else ''} {_COLOURS[tone]}".strip()
    return Text(f"{SHAPES[tone]} {text}".lstrip(), style=style, overflow="fold")


def _stack(head: RenderableType, *parts: RenderableType) -> Group:
    return Group(head, *(Padding(part, (0, 0, 0, 2)) for part in parts))


def _below(caption: str, body: RenderableType) -> RenderableType:
    indented = Padding(body, (0, 0, 0, 4))
    return Group(Text(f"{caption}:", overflow="fold"), indented) if caption else indented


def _numbered(code: Code) -> RenderableType:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for number, text, guilty in code.numbered():
        grid.add_row(Text(f"{'→' if guilty else ' '} {number}"), Text(text, style="bold" if guilty else ""))
    return Group(Text(f"{code.caption}:", overflow="fold"), grid) if code.caption else grid


def _table(table: Table) -> RenderableType:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(table.columns), header_style="dim")
    width = max((len(row) for row in (*table.rows, table.columns)), default=0)
    short = all(cell_len(row[0]) <= _NAME_WIDTH for row in table.rows if row)
    for index in range(width):
        header = table.columns[index] if index < len(table.columns) else ""
        justify: JustifyMethod = "right" if index in table.figures else "left"
        whole = short and index == 0
        grid.add_column(Text(header), justify=justify, overflow="ellipsis" if whole else "fold", no_wrap=whole)
    for row in table.rows:
        grid.add_row(*map(Text, row))
    if not table.caption:
        return grid
    course = [Padding(Text(_course(table)), (0, 0, 0, 2))] if table.curve else []
    return Group("", Text(table.caption, style="bold"), *course, Padding(grid, (0, 0, 0, 2)))


def _course(table: Table) -> str:
    """The curve of a table as one line of blocks, as high as its points."""
    return "".join(_BLOCKS[height * (len(_BLOCKS) - 1) // 1_000] for _, height in table.curve)


def _bars(bars: Bars) -> RenderableType:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="crop")
    for (label, amount), length in zip(bars.rows, bars.lengths, strict=True):
        grid.add_row(Text(label), Text(amount), Text("█" * -(-length * _BAR_WIDTH // 1_000)))
    return _below(bars.caption, grid) if bars.caption else grid


def _details(details: Details) -> RenderableType:
    if details.tone != "calm":
        # Where nothing can be opened, the name says what to ask `%torchcheck explain` for.
        name = f" [{details.slug}]" if details.slug and not details.open else ""
        summary = _toned(details.summary + name, details.tone)
        summary.stylize("bold", 0, len(details.lead) + 2)
        return Group("", _stack(summary, *map(_part, details.parts)), "") if details.open else summary
    if details.more:
        return Text(f"{details.summary}: {details.more}", overflow="fold")
    return _stack(Text(details.summary, style="bold"), *map(_part, details.parts))


def _prose(prose: Prose) -> RenderableType:
    # Late: it takes Pygments along, which only pages need.
    from rich.markdown import Markdown

    return Markdown(prose.text, hyperlinks=False)
