import assert from 'node:assert/strict';
import { test } from 'node:test';

import { thinned } from '../lib/thinning.js';

const at = Array.from({ length: 5000 }, (_, i) => i * 500);
const LAST = at.at(-1);

test('few points are left alone', () => {
  const [times, values] = thinned([1, 2, 3], [[4, null, 5]], 1, 3, 100);
  assert.deepEqual(
    [times, values],
    [
      [1, 2, 3],
      [4, null, 5]
    ]
  );
});

test('highest, lowest, gaps and ends stay', () => {
  const values = at.map((_, i) => (i === 1234 ? 99 : i === 4321 ? -99 : i === 777 ? null : i % 7));
  const [times, thin, other] = thinned(at, [values, values.map(one => one)], 0, LAST, 160);
  assert.ok(times.length <= 160 * 4 + 10, times.length);
  assert.deepEqual([Math.max(...thin), Math.min(...thin)], [99, -99]);
  assert.ok(thin.includes(null));
  assert.deepEqual([times[0], times.at(-1)], [0, LAST]);
  assert.deepEqual(thin, other);
  assert.ok(times.every((one, i) => i === 0 || one > times[i - 1]));
});

test('what is seen from near is drawn in full', () => {
  const values = at.map((_, i) => i % 7);
  const [times] = thinned(at, [values], 100_000, 110_000, 160);
  assert.equal(times.filter(one => one >= 100_000 && one <= 110_000).length, 21);
  assert.ok(times.length < 60);
});

test('one moment is no range', () => {
  const same = Array(1000).fill(5);
  assert.equal(thinned(same, [same], 5, 5, 10)[0].length, 1000);
});
