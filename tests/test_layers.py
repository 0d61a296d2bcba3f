"""Holds the import table of docs/architecture.md: who may import whom."""

import ast
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

import torch_inspector

ROOT = Path(torch_inspector.__file__).parent
LEVELS = {
    *("account", "facts", "findings", "page", "pitfall", "pitfalls", "observe"),
    *("outcome", "session", "recent", "views", "notebook", "watching", "asking"),
}
OURS = LEVELS | {"__init__", "own_builtins"}
DRAWING = {
    "account",
    "facts",
    "findings",
    "outcome",
    "pitfall",
    "page",
    "views",
    "rich",
    "jinja2",
    "markupsafe",
    "markdown_it",
}

# File or folder: what it may import, of ours and of others. A file's own line beats its folder's; `failures` and the
# standard library are free to all; `types:x` is x for annotations only.
MAY_IMPORT = {
    "facts": {"facts", "types:account", "types:findings"},
    "findings.py": set(),
    "account.py": set(),
    "page.py": set(),
    "failures.py": set(),
    "own_builtins.py": set(),
    "outcome.py": {"facts", "findings"},
    "pitfall.py": {"facts", "findings", "page"},
    "pitfalls": {"account", "facts", "findings", "pitfall"},
    "observe": {"account", "facts", "observe", "torch", "psutil", "executing"},
    "session.py": {"account", "facts", "findings", "pitfall"},
    "recent.py": {"types:facts"},
    "views": DRAWING,
    "views/widget.py": DRAWING | {"anywidget", "ipywidgets", "traitlets"},
    "notebook": OURS | {"IPython", "traitlets", "comm"},
    "watching.py": OURS,
    "asking.py": OURS | {"types:torch"},
    "__init__.py": OURS,
}
FREE = sys.stdlib_module_names | {"failures"}


def breaches(path: str, source: str) -> list[str]:
    """`file:line imports x` for each import that the table forbids; `path` is relative to the package."""
    layer = next((key for key in (path, PurePosixPath(path).parts[0]) if key in MAY_IMPORT), None)
    if layer is None:
        return [f"{path}:1 stands in no line of MAY_IMPORT"]
    allowed = MAY_IMPORT[layer] | FREE
    tree = ast.parse(source)
    guarded = [
        node.body for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    for_types = {id(node) for body in guarded for statement in body for node in ast.walk(statement)}
    return [
        f"{path}:{line} imports {name}"
        for node in ast.walk(tree)
        for line, name in imported(node)
        if name not in allowed and not (id(node) in for_types and f"types:{name}" in allowed)
    ]


def imported(node: ast.AST) -> list[tuple[int, str]]:
    """Line and first name of what a node imports, ours without the package's name; `.` for relative imports."""
    match node:
        case ast.Import(names=names):
            found = [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            found = ["." * level + f"{module}.{alias.name}" for alias in names]
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if "import" in ast.unparse(func):
            found = [name]
        case _:
            return []
    parts = [f"{name}.__init__".removeprefix("torch_inspector.").split(".")[0] or "." for name in found]
    return [(node.lineno, part) for part in parts]


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_file_imports_only_what_its_layer_may(file):
    assert breaches(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "source", "breach"),
    [
        ("facts/run.py", "from torch_inspector.findings import Finding", "facts/run.py:1 imports findings"),
        (
            "facts/run.py",
            "if TYPE_CHECKING:\n    from torch_inspector.pitfall import Pitfall",
            "facts/run.py:2 imports pitfall",
        ),
        ("page.py", "import torch_inspector", "page.py:1 imports __init__"),
        ("pitfalls/data/x.py", "def check(run):\n    import torch.nn as nn", "pitfalls/data/x.py:2 imports torch"),
        ("pitfalls/data/x.py", "from ...observe import graph", "pitfalls/data/x.py:1 imports ."),
        ("observe/place.py", "from torch_inspector import session", "observe/place.py:1 imports session"),
        ("views/text.py", "import ipywidgets", "views/text.py:1 imports ipywidgets"),
        ("views/html.py", "x = importlib.import_module('torch.nn')", "views/html.py:1 imports torch"),
        ("notebook/events.py", "import psutil", "notebook/events.py:1 imports psutil"),
        ("helpers.py", "", "helpers.py:1 stands in no line of MAY_IMPORT"),
    ],
)
def test_planted_breach_is_found(path, source, breach):
    assert breaches(path, source) == [breach]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("facts/run.py", "import json\nif TYPE_CHECKING:\n    from torch_inspector.findings import Finding"),
        ("observe/graph.py", "import torch.nn\nfrom torch_inspector.observe.place import here"),
        ("session.py", "from torch_inspector.failures import Failures"),
        ("views/widget.py", "import anywidget, ipywidgets, traitlets"),
    ],
)
def test_what_the_table_allows_is_not_reported(path, source):
    assert breaches(path, source) == []


def test_importing_the_package_is_light():
    heavy = ("torch", "ipywidgets", "anywidget", "IPython")
    program = f"import sys, torch_inspector; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.strip() == "[]"
