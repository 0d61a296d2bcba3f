"""The first `import torch`, seen without importing it."""

import subprocess
import sys
import textwrap

from torch_inspector.observe.arrival import TorchArrival


def run(program, **options):
    """What a Python of its own prints."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        **options,
    )
    assert result.returncode == 0, result.stderr[-2_000:]
    return result.stdout.split()


# A tiny torch of our own: what is tested is the import system, not torch.
FAKE = """
import sys, pathlib, tempfile, importlib.util
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "torch.py").write_text({text!r})
sys.path.insert(0, str(folder))
from torch_inspector.observe.arrival import TorchArrival
calls = []
arrival = TorchArrival(lambda: calls.append("torch" in sys.modules and sys.modules["torch"].ready))
arrival.install()
"""


def fake(text="ready = True\n"):
    return FAKE.format(text=text)


def test_it_is_called_once_after_the_import():
    assert run(fake() + "import json, torch\nimport torch\nprint(calls, arrival in sys.meta_path)") == [
        "[True]",
        "False",
    ]


def test_the_loaders_are_the_real_ones():
    program = fake() + "import torch\nprint(type(torch.__loader__).__name__, torch.__spec__.loader is torch.__loader__)"
    assert run(program) == ["SourceFileLoader", "True"]


def test_a_failing_import_is_waited_for_again():
    program = fake("1 / 0\n") + (
        "try:\n    import torch\nexcept ZeroDivisionError:\n    pass\n"
        "(folder / 'torch.py').write_text('ready = True')\nimportlib.invalidate_caches()\nprint(calls)\n"
        "import torch\nprint(calls, arrival in sys.meta_path)"
    )
    assert run(program) == ["[]", "[True]", "False"]


def test_a_missing_torch_is_missing():
    program = (
        "import sys\nfrom torch_inspector.observe.arrival import TorchArrival\nsys.path = []\n"
        "TorchArrival(lambda: None).install()\n"
        "try:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
        "print('torch' in sys.modules)"
    )
    assert run(program) == ["torch", "False"]


def test_asking_for_the_spec_is_no_import():
    program = fake() + "importlib.util.find_spec('torch')\nimport torch\nprint(calls)"
    assert run(program) == ["[True]"]


def test_the_spec_that_is_asked_for_has_a_whole_loader():
    program = fake() + "print(hasattr(importlib.util.find_spec('torch').loader, 'get_filename'))"
    assert run(program) == ["True"]


def test_it_does_not_wait_for_what_is_here_already():
    arrival = TorchArrival(lambda: None)
    assert "torch" in sys.modules
    arrival.install()
    assert arrival not in sys.meta_path


def test_other_imports_are_none_of_its_business():
    arrival = TorchArrival(lambda: None)
    assert arrival.find_spec("json") is None
    assert arrival.find_spec("torch.nn") is None


CELL = """import torch
from torch import nn
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=.1)
for i in range(3):
    net(torch.ones(1, 3)).sum().backward()
    opt.step()
"""


def test_torch_imported_inside_a_cell_is_watched_from_there():
    program = f"""
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell()
        shell.display_pub.publish = lambda *args, **kwargs: None
        shell.run_cell("%load_ext torch_inspector")
        assert "torch" not in sys.modules
        shell.run_cell({CELL!r}, store_history=True)
        import torch_inspector, torch
        run = torch_inspector.last_run()
        print(*[finding.slug for finding in run.findings], *[finding.line for finding in run.findings])
        print(type(torch.__loader__).__name__, torch.__spec__.loader is torch.__loader__)
        print(any("torch_inspector" in type(finder).__module__ for finder in sys.meta_path))
    """
    assert run(program)[-5:] == ["missing-zero-grad", "7", "SourceFileLoader", "True", "False"]
