"""Sums, products and joins of tensors whose shapes do not go together."""
# ruff: noqa: E501 - one program a line, so that the table can be read

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "shapes-do-not-fit"
START = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
# Cell before, the failing line, what the message says, the fix; a fix is run.
FOUND = {
    "product": ("a, b = torch.rand(3, 4), torch.rand(3, 4)", "c = a @ b", "`a` is (3, 4) and `b` (3, 4)", "c = a @ b.T"),
    "first turned": ("a, b = torch.rand(3, 4), torch.rand(3, 5)", "c = a.mm(b)", "4 and 3", "c = a.T.mm(b)"),
    "with itself": ("a = torch.rand(3, 4)\nb = a", "c = torch.matmul(a, b)", "4 and 3", "c = torch.matmul(a, b.T)"),
    "of batches": ("q, k = torch.rand(2, 5, 8), torch.rand(2, 7, 8)", "s = q @ k", "8 and 7", "s = q @ k.transpose(-2, -1)"),
    "no way": ("a, b = torch.rand(3, 4), torch.rand(5, 6)", "c = a @ b", "`a` is (3, 4)", ""),
    "vector": ("m, v = torch.rand(3, 4), torch.rand(3)", "c = m @ v", "4 and 3", "c = m.T @ v"),
    "mean of rows": ("x = torch.rand(8, 3)\nm = x.mean(1)", "y = x - m", "along axis -1 they are 3 and 8", "y = x - m[:, None]"),
    "channels": ("x, m = torch.rand(2, 3, 5, 6), torch.rand(3)", "y = (x - m) / 2", "`m` (3,)", "y = (x - m[:, None, None]) / 2"),
    "names in names": ("xa, a = torch.rand(8, 3), torch.rand(8)", "y = xa * a", "3 and 8", "y = xa * a[:, None]"),
    "shorter first": ("x, w = torch.rand(8, 3), torch.rand(8)", "y = w * x", "8 and 3", "y = w[:, None] * x"),
    "turned": ("x, y = torch.rand(8, 3), torch.rand(3, 8)", "z = x + y", "3 and 8", "z = x + y.T"),
    "other sizes": ("x, y = torch.rand(3, 4), torch.rand(3, 5)", "z = x + y", "4 and 5", ""),
    "in an attribute": ("class T: pass\nt = T()\nt.x, t.m = torch.rand(8, 3), torch.rand(8)", "y = t.x - t.m", "`t.m` (8,)", "y = t.x - t.m[:, None]"),
    "mask": ("x, m = torch.rand(8, 3), torch.ones(8, dtype=torch.bool)", "y = x.masked_fill(m, 0.0)", "3 and 8", "y = x.masked_fill(m[:, None], 0.0)"),
    "join": ("a, b = torch.rand(3, 4), torch.rand(3, 5)", "c = torch.cat([a, b])", "along axis 0", "c = torch.cat([a, b], dim=1)"),
    "join by axis": ("a, b = torch.rand(3, 4), torch.rand(2, 4)", "c = torch.cat((a, b), dim=1)", "along axis 1", "c = torch.cat((a, b), dim=0)"),
    "join that cannot be": ("a, b = torch.rand(3, 4), torch.rand(2, 5)", "c = torch.cat([a, b])", "`b` (2, 5)", ""),
    "stack": ("a, b = torch.rand(3), torch.rand(4)", "c = torch.stack([a, b])", "`b` (4,)", ""),
}  # fmt: skip
QUIET = {
    "stretches": "x = torch.rand(3, 1) + torch.rand(4)",
    "caught": "a, b = torch.rand(3), torch.rand(4)\ntry:\n    a + b\nexcept RuntimeError:\n    pass",
    "of a part": "a, b = torch.rand(3, 4), torch.rand(4)\na[:, 0] + b",
    "of a result": "a, b = torch.rand(3, 4), torch.rand(4)\na.T + b",
    "layer": "nn.Linear(4, 2)(torch.rand(3, 5))",
    "loss": "p, y = torch.rand(8, 1), torch.rand(8, 3)\nF.binary_cross_entropy(p, y)",
    "own error": "raise RuntimeError('The size of tensor a (4) must match the size of tensor b (5)')",
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found_with_a_fix_that_works(name):
    before, line, text, fix = FOUND[name]
    with a_notebook() as notebook:
        notebook.run(START + before)
        (finding,) = [one for one in notebook.run(line).findings if one.slug == SLUG]
        assert text in finding.message
        assert finding.fix == fix
        notebook.run(finding.fix or "pass")
        assert notebook.errors[2] is None


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(START, QUIET[name], slug=SLUG) == []


X = "x = torch.rand(2, 3, 4)\nh = x.transpose(1, 2)"
VIEWS = {
    "variable": (X, "y = h.view(2, -1)", "`h`", "y = h.reshape(2, -1)"),
    "in a chain": (X, "y = x.permute(2, 0, 1).view(4 * 2 * 3).sum()", "`x.permute(2, 0, 1)`", "y = x.permute(2, 0, 1).reshape(4 * 2 * 3).sum()"),
    "columns": ("m = torch.rand(6, 6)", "y = m[:, :3].view(-1)", "`m[:, :3]`", "y = m[:, :3].reshape(-1)"),
    "two of them": (X, "y = x.view(2, 12) + h.view(2, 12)", "`h`", "y = x.view(2, 12) + h.reshape(2, 12)"),
    "by size": (X, "y = h.view(size=(2, 12))", "`h`", "y = h.reshape((2, 12))"),
    "as another": (X + "\nz = torch.rand(24)", "y = h.view_as(z)", "`h`", "y = h.reshape_as(z)"),
    "written": (X, "h.view(-1)[0] = 1.0", "`h`", ""),
    "filled in a chain": (X, "u = h.view(-1).mul_(2)", "`h`", ""),
    "written later": (X, "u = h.view(-1)\nu[0] = 5", "`h`", ""),
    "filled later": (X, "u = h.view(-1)\nu.zero_()", "`h`", ""),
    "a part filled later": (X, "u = h.view(2, -1)\nfor row in u:\n    row.zero_()", "`h`", ""),
    "filled": (X, "h.view(-1).zero_()", "`h`", ""),
    "argument": (X + "\ndef flat(t):\n    return t.view(-1)", "flat(h)", "`t` (`h` in the call)", "return t.reshape(-1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_that_the_memory_does_not_allow(name):
    before, line, text, fix = VIEWS[name]
    with a_notebook() as notebook:
        notebook.run(START + before)
        (finding,) = notebook.run(line).findings
        assert finding.slug == SLUG
        assert text in finding.message
        assert finding.fix == fix
        notebook.run(finding.fix if fix and "return" not in fix else "pass")
        assert notebook.errors[-1] is None


NAMED = """\
def split(x, heads=2):
    b, n, d = x.shape
    {before}
    q = {view}
    return q
x = torch.rand(2, 5, 24)
"""


@pytest.mark.parametrize(
    ("before", "view", "fix"),
    [
        ("t, _, _ = x.chunk(3, -1)", "t.view(b, heads, n, 4)", "q = t.view(b, n, heads, 4).transpose(1, 2)"),
        ("T, (t, _, _) = n, x.chunk(3, -1)", "t.view(b, heads, n, 4)", "q = t.view(b, n, heads, 4).transpose(1, 2)"),
        ("t = x[:, :, :8]; d = 8", "t.view(n, b, d)", "q = t.permute(1, 0, 2)"),
        ("t = x[:, :, :8]; d = 8", "t.view(b, n * d)", "q = t.reshape(b, n * d)"),
        ("t = x.transpose(1, 2)", "t.view(b, heads, n, -1)", "q = t.reshape(b, heads, n, -1)"),
    ],
)
def test_a_view_that_names_the_axes_in_another_order(before, view, fix):
    with a_notebook() as notebook:
        notebook.run(START + NAMED.format(before=before, view=view))
        (finding,) = notebook.run("split(x)").findings
        assert finding.fix == fix
        notebook.run(NAMED.format(before=before, view=fix.removeprefix("q = ")) + "y = split(x)")
        assert notebook.errors[-1] is None


@pytest.mark.parametrize("line", ["y = h.reshape(2, -1)", "y = h.contiguous().view(2, -1)", "x.view(5, 5)"])
def test_views_that_fit_or_have_another_length(line):
    with a_notebook() as notebook:
        notebook.run(START + X)
        assert not [one for one in notebook.run(line).findings if one.slug == "shapes-do-not-fit"]


STYLED = """
class Styled(nn.{base}):
    def __init__(self):
        super().__init__({sizes})
        self.to_style = nn.Parameter(torch.randn(6, 8))
    def forward(self, x, s):
        {line}
        return super().forward(x), g
layer, x = Styled(), {x}
"""
LAYERS = [
    ("InstanceNorm2d", "4", "torch.randn(2, 4, 5, 5)"),
    ("Linear", "4, 3", "torch.randn(2, 4)"),
    ("GRU", "4, 3", "torch.randn(2, 4)"),
]


@pytest.mark.parametrize(("base", "sizes", "x"), LAYERS)
def test_a_calculation_in_a_class_that_inherits_from_a_layer(base, sizes, x):
    code = START + STYLED.format(base=base, sizes=sizes, x=x, line="g = s @ self.to_style")
    with a_notebook() as notebook:
        (finding,) = notebook.run(f"{code}layer(x, torch.randn(2, 7))").findings
        assert (finding.slug, finding.severity, finding.subject) == (SLUG, "hint", "self.to_style")


@pytest.mark.parametrize("line", ["g = s", "x = x[..., :2]; g = s"])
def test_what_the_layer_of_such_a_class_was_given_is_told_once(line):
    code = START + STYLED.format(base="Linear", sizes="4, 3", x="torch.randn(2, 4)", line=line)
    with a_notebook() as notebook:
        found = notebook.run(f"{code}layer(x, torch.randn(2, 7))").findings
        assert [one.slug for one in found] == ["layer-input-mismatch"] * ("2" in line)
