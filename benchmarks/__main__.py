"""`python -m benchmarks [NAME …] [--json FILE]`: runs the benchmarks and prints one table."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks import cell, finding, load, loop, memory, rules
from benchmarks.timing import Row, Spread

_BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "loop": loop.run,
    "cell": cell.run,
    "load": load.run,
    "finding": finding.run,
    "memory": memory.run,
    "rules": rules.run,
}
_LINE = "{:<8} {:<46} {:>9} {:>16} {:>12} {:>9} {:>8}  {}"
_NOTE = """\
measured: median in processor time; a ratio is with ÷ without the extension, of blocks run in turn in one process.
undisturbed: the same of the first quartiles of both sides, which a burst of other work on the machine spoils least.
ok or over: the 95 % interval of the median lies wholly on that side of what is allowed; unclear: it does not."""


def main() -> None:
    """Measures, prints each row when it is there, and writes the numbers on request."""
    arguments = _arguments()
    begun, rows = perf_counter(), []
    print(_LINE.format("", "", "measured", "quartiles", "undisturbed", "wall", "allowed", "verdict"))
    for name in arguments.names or _BENCHMARKS:
        for row in _BENCHMARKS[name]():
            print(_line(row), flush=True)
            rows.append(row)
    print(f"{_NOTE}\n{perf_counter() - begun:.0f} s on {platform.machine()}, Python {platform.python_version()}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([row.as_data() for row in rows], indent=2) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures what watching costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_BENCHMARKS)}; all without any")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in _BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    return arguments


def _line(row: Row) -> str:
    def show(number: float) -> str:
        return f"{number:.3f}" if row.unit == "ratio" else f"{number:.2f} ms"

    def show_quartiles(spread: Spread) -> str:
        digits = 3 if row.unit == "ratio" else 2
        return f"{spread.quartiles[0]:.{digits}f} to {spread.quartiles[1]:.{digits}f}"

    allowed = "" if row.allowed is None else show(row.allowed).replace(".00 ms", " ms")
    measured, wall = show(row.cpu.median), show(row.wall.median)
    quick = "" if row.undisturbed is None else show(row.undisturbed)
    cells = (row.benchmark, row.what, measured, show_quartiles(row.cpu), quick, wall, allowed, row.verdict)
    return _LINE.format(*cells).rstrip()


if __name__ == "__main__":
    main()
