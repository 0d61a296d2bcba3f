import assert from 'node:assert/strict';
import { test } from 'node:test';

import { heldName, isAboutMemory, readRun } from '../lib/saved_run.js';
import { saidOf } from '../lib/muted_words.js';

const FINDING = {
  slug: 'graph-retained-in-list',
  severity: 'warning',
  cell: 2,
  line: 4,
  subject: 'losses',
  held: 'losses',
  message: 'x',
  code: 'losses.append(loss)',
  evidence: [{ label: 'activations', value: 4096, unit: 'bytes' }]
};
const RUN = {
  version: 1,
  session: 'a'.repeat(32),
  cell: 2,
  duration_s: 1.5,
  findings: [FINDING],
  finding_count: 1,
  card: '{"kind":"card"}',
  model_id: null
};
const trans = { __: (text, ...values) => text.replace(/%(\d)/g, (_, at) => values[at - 1]) };

test('a run is read with what its card needs, and nothing else of it', () => {
  const { slug, cell, line, held, code } = FINDING;
  assert.deepEqual(readRun(RUN), {
    session: RUN.session,
    cell: 2,
    findings: [{ slug, cell, line, held, code, evidence: [{ unit: 'bytes' }] }],
    card: { kind: 'card' },
    modelId: null
  });
});

test('a widget is known by an id of the form that kernels give, and by no other', () => {
  const id = '0123456789abcdef'.repeat(2);
  assert.equal(readRun({ ...RUN, model_id: id }).modelId, id);
  for (const strange of ['', '__proto__', 'constructor', '../x', 'a'.repeat(200), undefined]) {
    assert.equal(readRun({ ...RUN, model_id: strange }).modelId, null);
  }
});

const STRANGE = [
  undefined,
  null,
  7,
  'run',
  [],
  {},
  { ...RUN, version: 2 },
  { ...RUN, version: '1' },
  { ...RUN, session: 7 },
  { ...RUN, findings: { 0: FINDING } },
  { ...RUN, findings: [null] },
  { ...RUN, findings: [{ ...FINDING, line: '4' }] },
  { ...RUN, findings: [{ ...FINDING, evidence: 'much' }] },
  { ...RUN, card: { kind: 'card' } },
  { ...RUN, card: '{' },
  { ...RUN, model_id: { toString: 'x' } },
  JSON.parse('{"__proto__": {"version": 1, "session": "", "findings": [], "card": "{}"}}')
];

STRANGE.forEach((data, index) => {
  test(`strange run ${index} is none`, () => {
    assert.equal(readRun(data), null);
  });
});

test('a card that is too long is none, and long lists are cut', () => {
  assert.equal(readRun({ ...RUN, card: `"${'x'.repeat(2_000_000)}"` }), null);
  const many = readRun({ ...RUN, findings: Array.from({ length: 10_000 }, () => FINDING) });
  assert.equal(many.findings.length, 50);
});

test('holders are asked for by the path that the kernel gave, not by what the finding is called after', () => {
  assert.equal(heldName(FINDING), 'losses');
  assert.equal(heldName({ ...FINDING, held: '' }), '');
  assert.equal(heldName({ ...FINDING, held: null }), '');
  const older = { ...FINDING };
  delete older.held;
  assert.equal(heldName(readRun({ ...RUN, findings: [older] }).findings[0]), '');
  assert.equal(heldName({ ...FINDING, evidence: [{ unit: 'count' }] }), '');
  assert.equal(isAboutMemory({ ...FINDING, evidence: [] }), false);
});

test('what is silent is said with how far it goes', () => {
  const said = { slug: 'x', scope: 'line', cell: 1, line: 2, on: true, path: '', error: '' };
  assert.match(saidOf(said, trans), /this line, until it is edited/);
  assert.match(saidOf({ ...said, scope: 'cell' }, trans), /in this cell/);
  assert.match(saidOf({ ...said, scope: 'notebook' }, trans), /in this notebook, which keeps that/);
  assert.match(
    saidOf({ ...said, scope: 'always', path: 'a.json' }, trans),
    /every notebook: a\.json/
  );
  assert.equal(saidOf({ ...said, on: false }, trans), 'It is reported again.');
  assert.equal(saidOf({ ...said, error: 'no such line' }, trans), 'Not done: no such line.');
});
