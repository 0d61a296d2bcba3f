"""State dictionaries that a module refuses."""
# ruff: noqa: E501 - one program a line, so that the table can be read

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "state-dict-refused"
START = "import torch\nfrom torch import nn\nmodel, same = nn.Linear(4, 2), nn.Linear(4, 2)\n"
# What makes `state`, the failing line, what the message says, the fix; a statement is run.
FOUND = {
    "entry": ("state = {'epoch': 1, 'state_dict': same.state_dict()}", "model.load_state_dict(state)", "`state_dict`", 'model.load_state_dict(state["state_dict"])'),
    "entry of a loaded file": ("import io\nf = io.BytesIO()\ntorch.save({'model': same.state_dict(), 'opt': {}}, f)\nf.seek(0)\nck = torch.load(f)", "model.load_state_dict(ck)", "beside `opt`", 'model.load_state_dict(ck["model"])'),
    "wrapped": ("state = nn.DataParallel(same).state_dict()", "model.load_state_dict(state)", "`module.`", 'model.load_state_dict({k.removeprefix("module."): v for k, v in state.items()})'),
    "compiled": ("state = {'_orig_mod.' + k: v for k, v in same.state_dict().items()}", "model.load_state_dict(state)", "`_orig_mod.`", 'model.load_state_dict({k.removeprefix("_orig_mod."): v'),
    "inside another": ("class Big(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder = nn.Linear(4, 2)\nbig = Big()\nstate = same.state_dict()", "big.load_state_dict(state)", "`encoder.`", "big.encoder.load_state_dict(state)"),
    "inside a wrapper": ("par = nn.DataParallel(model)\nstate = same.state_dict()", "par.load_state_dict(state)", "`module.`", "par.module.load_state_dict(state)"),
    "inside a sequence": ("seq, state = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 9)), same.state_dict()", "seq.load_state_dict(state)", "`0.`", "seq[0].load_state_dict(state)"),
    "part with a rest": ("seq = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 9))\nstate = seq.state_dict()", "model.load_state_dict(state)", "`0.`", 'model.load_state_dict({k.removeprefix("0."): v for k, v in state.items() if k.startswith("0.")})'),
    "part of another": ("class Big(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder = nn.Linear(4, 2)\nstate = Big().state_dict()", "model.load_state_dict(state)", "`encoder.`", 'model.load_state_dict({k.removeprefix("encoder."): v for k, v in state.items()})'),
    "head": ("old, new = (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, n)) for n in (10, 3))\nstate = old.state_dict()", "new.load_state_dict(state)", "`1.weight` has the shape (10, 4) in what was saved and (3, 4) in `new`, and 1 more", 'new.load_state_dict({k: v for k, v in state.items() if k not in ["1.weight", "1.bias"]}, strict=False)'),
    "head, not strict": ("old = nn.Linear(4, 10)\nstate = old.state_dict()", "model.load_state_dict(state, strict=False)", "(10, 4)", "model.load_state_dict({k: v for k, v in state.items()"),
}  # fmt: skip
OTHERS = {
    "other keys": "model.load_state_dict({'fc.w': torch.rand(2, 4)})",
    "all sizes": "big, small = (nn.Sequential(*(nn.Linear(n, n) for _ in range(4))) for n in (8, 4))\nsmall.load_state_dict(big.state_dict())",
}
QUIET = {
    "fits": "model.load_state_dict(same.state_dict())",
    "caught": "try:\n    model.load_state_dict({})\nexcept RuntimeError:\n    pass",
    "optimizer": "torch.optim.SGD(model.parameters(), 0.1).load_state_dict({'state': {}, 'param_groups': []})",
}


@pytest.mark.parametrize("name", FOUND)
def test_found_with_a_fix_that_works(name):
    before, line, text, fix = FOUND[name]
    with a_notebook() as notebook:
        notebook.run(START + before)
        (finding,) = [one for one in notebook.run(line).findings if one.slug == SLUG]
        assert text in finding.message
        assert finding.fix.startswith(fix)
        notebook.run(finding.fix)
        assert notebook.errors[2] is None


@pytest.mark.parametrize("name", OTHERS)
def test_another_model_is_told_without_a_statement(name):
    (finding,) = findings_in(START, OTHERS[name], slug=SLUG)
    assert finding.fix.startswith("build the model")


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(START, QUIET[name], slug=SLUG) == []


@pytest.mark.parametrize(
    ("made", "says"), [("nn.Linear(4, {})", "weight and bias are"), ("nn.Linear(4, {}, bias=False)", "weight is")]
)
def test_one_or_two_that_are_to_start_anew(made, says):
    code = f"import torch\nfrom torch import nn\nsaved, net = {made.format(9)}, {made.format(2)}\n"
    (finding,) = findings_in(f"{code}net.load_state_dict(saved.state_dict())", slug="state-dict-refused")
    assert finding.fix.endswith(f"# if {says} to start anew")
