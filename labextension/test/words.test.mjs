import assert from 'node:assert/strict';
import { test } from 'node:test';

import { grouped, latestOf } from '../lib/grouping.js';
import { amount, change, seconds, size } from '../lib/quantity.js';
import { progressOf } from '../lib/progress.js';
import { sample } from './samples.mjs';

const trans = { __: (text, ...values) => text.replace(/%(\d)/g, (_, i) => String(values[i - 1])) };

for (const [bytes, words] of [
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.00 KB'],
  [1024 * 9.996, '10.0 KB'],
  [12.3 * 2 ** 20, '12.3 MB'],
  [2 ** 50, '1024 TB'],
  [-(2 ** 20), '-1.00 MB']
]) {
  test(`size ${bytes}`, () => assert.equal(size(bytes), words));
}

test('changes have a sign', () => {
  assert.deepEqual([0, 2048, -2048].map(change), ['±0', '+2.00 KB', '-2.00 KB']);
});

test('durations and amounts', () => {
  assert.deepEqual([0, 0.0012, 2.5, 125, 3720].map(seconds), [
    '0 s',
    '1.20 ms',
    '2.50 s',
    '2 min 5 s',
    '1 h 2 min'
  ]);
  assert.deepEqual([8, 1200, 12_300_000, 7e9].map(amount), ['8', '1.20 K', '12.3 M', '7.00 G']);
});

const cell = (number, id, began, ...slugs) => ({
  ...sample('cell').cell,
  number,
  id,
  began,
  findings: slugs.map(slug => ({
    ...sample('cell').cell.findings[0],
    slug,
    severity: slug === 'bad' ? 'error' : 'hint'
  }))
});

test('only the latest execution of a cell counts', () => {
  const cells = [cell(1, 'a', 1, 'mild'), cell(2, 'b', 2, 'mild'), cell(3, 'a', 3)];
  assert.deepEqual(
    latestOf(cells)
      .map(one => one.number)
      .sort(),
    [2, 3]
  );
  assert.equal(grouped(cells)[0].found.length, 1);
});

test('the worst comes first, and a running cell replaces its last execution', () => {
  const cells = [cell(1, 'a', 1, 'mild'), cell(2, 'b', 2, 'bad')];
  assert.deepEqual(
    grouped(cells).map(group => group.slug),
    ['bad', 'mild']
  );
  const [finding] = cells[0].findings;
  const early = [{ finding, cell: { number: 3, id: 'b' } }];
  assert.deepEqual(
    grouped(cells, early).map(group => [group.slug, group.found.length]),
    [['mild', 2]]
  );
});

test('a running cell in words', () => {
  const record = {
    running: { number: 4, id: null, elapsed_s: 12, steps: 240 },
    rate: { stepsPerSecond: 20, growth: 12 << 20, fullInSeconds: 540 }
  };
  assert.deepEqual(progressOf(record, trans), [
    'cell [4] running for 12.0 s',
    '240 steps, 20 per second',
    'grows 12.0 MB per 100 steps: full in about 9 min'
  ]);
  assert.deepEqual(progressOf({ ...record, running: null }, trans), []);
});
