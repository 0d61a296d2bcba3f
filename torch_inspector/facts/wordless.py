"""The code of a text without its comments and texts, and the remark that stands at a line."""

from __future__ import annotations

import io
import tokenize
from functools import lru_cache

# Of an f-string, Python 3.12 and later tell the text between the braces apart.
_WORDS = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


@lru_cache(maxsize=32)
def without_words(source: str) -> str:
    """The same lines, with nothing where comments and texts were; as it is where it is no Python."""
    lines = source.split("\n")
    for token in _tokens(source):
        for row in range(token.start[0], token.end[0] + 1) if token.type in _WORDS else ():
            line = lines[row - 1]
            first = token.start[1] if row == token.start[0] else 0
            last = token.end[1] if row == token.end[0] else len(line)
            lines[row - 1] = line[:first] + " " * (last - first) + line[last:]
    return "\n".join(lines)


def remark_at(source: str, line: int | None) -> str:
    """The comment at the end of a line, or the one that has the line above for itself."""
    said = {token.start[0]: token for token in _tokens(source) if token.type == tokenize.COMMENT}
    above = said.get(line - 1) if line is not None else None
    alone = above is not None and above.line.lstrip().startswith("#")
    found = [above.string] if above is not None and alone else []
    return " ".join([*found, *(one.string for row, one in said.items() if row == line)])


@lru_cache(maxsize=32)
def _tokens(source: str) -> tuple[tokenize.TokenInfo, ...]:
    try:
        return tuple(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return ()
