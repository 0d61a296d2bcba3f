"""Mixed precision under its old name, `torch.cuda.amp`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_OLD = "torch.cuda.amp"
_NEW = {"autocast": 'torch.autocast("cuda")', "GradScaler": 'torch.amp.GradScaler("cuda")'}
_IMPORTS = {"autocast": "from torch import autocast", "GradScaler": "from torch.amp import GradScaler"}


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the first line of a cell that names `autocast` or `GradScaler` of the old namespace."""
    if "cuda.amp" not in run.cell.code and "torch.cuda import amp" not in run.cell.code:
        return
    used = _uses(run.cell.code)
    if not used:
        return
    line, names, is_import = used[0]
    yield Finding(
        message=f"`{_OLD}` is the old place of {' and '.join(names)}; torch warns when they are used.",
        subject=_OLD,
        fix=_fix(names, is_import=is_import),
        line=line + run.cell.line_offset,
        evidence=tuple(Evidence("named in line", other + run.cell.line_offset) for other, _, _ in used[1:]),
    )


def _fix(names: tuple[str, ...], *, is_import: bool) -> str:
    if is_import:
        imports = "\n".join(_IMPORTS[name] for name in names)
        calls = " and ".join(f'{name}("cuda")' for name in names)
        return f"{imports}  # then {calls}"
    return "\n".join(_NEW[name] for name in names)


@lru_cache(maxsize=8)
def _uses(code: str) -> tuple[tuple[int, tuple[str, ...], bool], ...]:
    """Line, names, and whether it imports, for each use of the old namespace."""
    tree = syntax.parse(code)
    if tree is None:
        return ()
    nicknames = {_OLD, *(name for node in syntax.walk(tree) for name in _nicknames(node))}
    found = [one for node in syntax.walk(tree) for one in _of(node, nicknames)]
    return tuple(sorted(found))


def _nicknames(node: ast.AST) -> Iterator[str]:
    """`amp` after `from torch.cuda import amp`, `A` after `import torch.cuda.amp as A`."""
    if isinstance(node, ast.ImportFrom) and node.module == "torch.cuda":
        yield from (name.asname or name.name for name in node.names if name.name == "amp")
    elif isinstance(node, ast.Import):
        yield from (name.asname for name in node.names if name.name == _OLD and name.asname)


def _of(node: ast.AST, nicknames: set[str]) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OLD):
        names = tuple(name.name for name in node.names if name.name in _NEW)
        if names:
            yield node.lineno, names, True
    elif isinstance(node, ast.Attribute) and node.attr in _NEW and ast.unparse(node.value) in nicknames:
        yield node.lineno, (node.attr,), False
