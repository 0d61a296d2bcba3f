import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readKept, withKept } from '../lib/kept_mutes.js';

test('what is kept is read again', () => {
  const kept = withKept(withKept(undefined, 'loss-broadcast', true), 'device-mismatch', true);
  assert.deepEqual(kept, { muted: ['device-mismatch', 'loss-broadcast'] });
  assert.deepEqual(readKept(kept), ['device-mismatch', 'loss-broadcast']);
  assert.deepEqual(withKept(kept, 'loss-broadcast', true), kept);
});

test('what is not kept any more leaves nothing behind, and other fields as they are', () => {
  assert.equal(withKept({ muted: ['loss-broadcast'] }, 'loss-broadcast', false), null);
  assert.equal(withKept(null, 'loss-broadcast', false), null);
  const other = { muted: ['loss-broadcast'], newer: [1] };
  assert.deepEqual(withKept(other, 'loss-broadcast', false), { newer: [1] });
  assert.deepEqual(other, { muted: ['loss-broadcast'], newer: [1] });
});

const STRANGE = [
  undefined,
  null,
  7,
  'muted',
  [],
  ['loss-broadcast'],
  {},
  { muted: 'loss-broadcast' },
  { muted: { 0: 'loss-broadcast' } },
  { muted: [7, null, ['loss-broadcast'], { toString: 'x' }] },
  { muted: ['<img src=x onerror=alert(1)>', '__proto__', 'x'.repeat(1000), ''] },
  JSON.parse('{"__proto__": {"muted": ["loss-broadcast"]}}')
];

STRANGE.forEach((part, index) => {
  test(`strange metadata ${index} keeps nothing silent and is written over`, () => {
    assert.deepEqual(readKept(part), []);
    assert.deepEqual(readKept(withKept(part, 'loss-broadcast', true)), ['loss-broadcast']);
  });
});

test('of a long list some are read, each once', () => {
  const muted = Array.from({ length: 10_000 }, (_, i) => `pitfall-${i % 200}`);
  assert.equal(readKept({ muted }).length, 100);
  assert.deepEqual(readKept({ muted: ['a', 'a'] }), ['a']);
});
