import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cellAt } from '../lib/pick.js';

const CELLS = [
  { number: 1, id: 'a', began: 1000, duration_s: 1 },
  { number: 2, id: 'b', began: 2000, duration_s: 0.001 },
  { number: 3, id: 'c', began: 9000, duration_s: 1 }
];
const RUNNING = { number: 4, id: 'd', elapsed_s: 5, steps: 0 };
const at = (moment, slack = 100, running = null) =>
  cellAt(CELLS, running, 20_000, moment, slack)?.number ?? null;

test('the cell that ran then, or the nearest to the pointer', () => {
  assert.deepEqual(
    [1500, 2050, 8950, 9500, 10_050].map(moment => at(moment)),
    [1, 2, 3, 3, 3]
  );
});

test('none between two cells that are far', () => {
  assert.equal(at(5000), null);
  assert.equal(cellAt([], null, 0, 5, 1e9), null);
});

test('the running cell stands at the end', () => {
  assert.equal(at(16_000, 100, RUNNING), 4);
  assert.equal(at(14_000, 100, RUNNING), null);
});
