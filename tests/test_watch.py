"""`with torch_inspector.watch() as run:` in functions, in scripts and around errors."""

import contextlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import torch_inspector
from tests.cells import a_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG, line_of

HERE = __file__
BLOCK = "with torch_inspector.watch() as run:\n" + "".join(f"    {line}\n" for line in LOOP.splitlines())


def lines_of_this_file(mark):
    """Lines of this file that end with a mark."""
    with open(HERE, encoding="utf-8") as file:  # noqa: PTH123
        return [number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# {mark}")]


def net():
    """A model, its optimizer and a batch."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.rand(8, 3)


def train_wrong(model, optimizer, x):
    """The mistake, in a function outside the block."""
    for _ in range(4):
        model(x).pow(2).mean().backward()
        optimizer.step()  # guilty outside


def found(run):
    """Slug and line of all findings."""
    return [(finding.slug, finding.line) for finding in run.findings]


def test_line_in_a_function():
    model, optimizer, x = net()
    with torch_inspector.watch() as run:
        for _ in range(4):
            model(x).pow(2).mean().backward()
            optimizer.step()  # guilty inside
    assert found(run) == [(SLUG, line) for line in lines_of_this_file("guilty inside")]
    (finding,) = run.findings
    assert (finding.cell, finding.subject, finding.severity) == (None, "optimizer", "error")
    assert "optimizer.step()" in finding.code
    assert torch_inspector.last_run().findings == run.findings


def test_line_in_another_function_of_the_file():
    model, optimizer, x = net()
    with torch_inspector.watch() as run:
        train_wrong(model, optimizer, x)
    assert found(run) == [(SLUG, line) for line in lines_of_this_file("guilty outside")]


def test_again_and_again():
    for _ in range(3):
        model, optimizer, x = net()
        with torch_inspector.watch() as run:
            train_wrong(model, optimizer, x)
        assert len(run.findings) == 1


def test_door_stays_a_function():
    with torch_inspector.watch():
        pass
    assert callable(torch_inspector.watch)


def test_as_part_of_a_stack():
    model, optimizer, x = net()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(torch_inspector.watch())
        train_wrong(model, optimizer, x)
    assert found(run) == [(SLUG, line) for line in lines_of_this_file("guilty outside")]


def test_made_before_it_is_entered():
    model, optimizer, x = net()
    watching = torch_inspector.watch()
    with watching as run:
        train_wrong(model, optimizer, x)
    assert len(run.findings) == 1


def test_clean_block():
    model, optimizer, x = net()
    with torch_inspector.watch() as run:
        for _ in range(4):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    assert run.findings == ()
    assert run.duration_s > 0
    assert run.cell.number is None
    assert {fact.path for fact in run.after.optimizers} == {"optimizer"}


def test_comment_on_the_line_silences():
    model, optimizer, x = net()
    with torch_inspector.watch() as run:
        for _ in range(4):
            model(x).pow(2).mean().backward()
            optimizer.step()  # torchcheck: ignore[missing-zero-grad]
    assert run.findings == ()


def test_attribute_before_the_end_is_a_clear_error():
    with torch_inspector.watch() as run:
        with pytest.raises(AttributeError, match=r"'findings' is known when the `with` block has ended"):
            _ = run.findings
        assert not hasattr(run, "findings")
    assert run.findings == ()


def test_wrong_attribute_after_the_end_is_python_s_own_error():
    with torch_inspector.watch() as run:
        pass
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = run.no_such_name


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt, SystemExit, StopIteration])
def test_exception_passes_and_the_block_is_judged(kind):
    model, optimizer, x = net()
    error = kind("mine")
    caught = None
    try:
        with torch_inspector.watch() as run:
            train_wrong(model, optimizer, x)
            raise error
    except kind as raised:
        caught = raised
    assert caught is error
    assert [finding.slug for finding in run.findings] == [SLUG]
    assert run.error.kind == kind.__name__


@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_put_back(fails):
    before = torch.autograd.backward, nn.Module.__call__, torch.optim.Optimizer.zero_grad
    with contextlib.suppress(ZeroDivisionError), torch_inspector.watch():
        assert torch.autograd.backward is not before[0]
        if fails:
            raise ZeroDivisionError
    assert (torch.autograd.backward, nn.Module.__call__, torch.optim.Optimizer.zero_grad) == before


def test_nested():
    model, optimizer, x = net()
    with torch_inspector.watch() as outer:
        with torch_inspector.watch() as inner:
            train_wrong(model, optimizer, x)
        torch.ones(1)
    expected = [(SLUG, line) for line in lines_of_this_file("guilty outside")]
    assert found(inner) == expected
    assert found(outer) == expected


def test_in_a_notebook_with_the_extension():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("import torch_inspector\n" + BLOCK)
        assert notebook.errors[-1] is None
        assert [(f.slug, f.line) for f in run.findings] == [(SLUG, line_of(BLOCK) + 1)]
        inner = notebook.shell.user_ns["run"]
        assert [(f.slug, f.line) for f in inner.findings] == [(SLUG, line_of(BLOCK) + 1)]


def test_variables_live_no_longer():
    with torch_inspector.watch():
        held = nn.Linear(2, 2)
    import gc
    import weakref

    ref = weakref.ref(held)
    del held
    gc.collect()
    assert ref() is None


# in scripts --------------------------------------------------------------------


def output_of(path, *arguments):
    """What a script prints."""
    done = subprocess.run(
        [sys.executable, *arguments, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-800:]
    return done.stdout.splitlines()


def test_line_in_a_script(tmp_path):
    path = tmp_path / "train.py"
    shown = "print([(finding.slug, finding.line, finding.code) for finding in run.findings])\n"
    path.write_text(f"import torch_inspector\n{SETUP}{BLOCK}{shown}{BLOCK}{shown}", encoding="utf-8")
    lines = [n for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "optimizer.step" in line]
    assert output_of(path) == [str([(SLUG, line, "optimizer.step()")]) for line in lines]


def test_module_level_with_nothing_else(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(
        "import torch_inspector\nwith torch_inspector.watch() as run:\n    pass\nprint(run.findings)\n", "utf-8"
    )
    assert output_of(path) == ["()"]
