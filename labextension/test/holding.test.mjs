import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdingsOf } from '../lib/holding.js';

const row = (path, bytes, kind = 'tensor', device = 'cpu') => ({
  path,
  kind,
  device,
  bytes,
  pieces: 1,
  also: [],
  free: null,
  cell: null
});

test('the device with the most comes first, and so do kinds and holders', () => {
  const holdings = holdingsOf([
    row('small', 1),
    row('w', 5, 'parameter'),
    row('big', 3),
    row('g', 100, 'tensor', 'cuda:0')
  ]);
  assert.deepEqual(
    holdings.map(one => [one.device, one.bytes]),
    [
      ['cuda:0', 100],
      ['cpu', 9]
    ]
  );
  assert.deepEqual(holdings[1].kinds, [
    ['parameter', 5],
    ['tensor', 4]
  ]);
  assert.deepEqual(
    holdings[1].groups.map(group => group.path),
    ['w', 'big', 'small']
  );
});

test('three elements of one list are one holder, two are not', () => {
  const rows = [0, 1, 2].map(i => row(`losses[${i}]`, 4));
  const [{ groups }] = holdingsOf([...rows, row('a[0]', 1), row('a[1]', 1)]);
  assert.deepEqual(
    groups.map(group => [group.path, group.rows.length, group.bytes]),
    [
      ['losses[…]', 3, 12],
      ['a[0]', 1, 1],
      ['a[1]', 1, 1]
    ]
  );
});

test('strange names are only names', () => {
  const [{ groups }] = holdingsOf(['__proto__', 'constructor', '"],["'].map(path => row(path, 1)));
  assert.deepEqual(
    groups.map(group => group.path),
    ['__proto__', 'constructor', '"],["']
  );
});
