import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readMessage } from '../lib/message.js';
import { KernelRecord } from '../lib/record.js';
import { sample } from './samples.mjs';

const AT = 1_700_000_000_000;

/** A record that has taken these messages. */
function heard(...messages) {
  const record = new KernelRecord();
  messages.forEach(message => record.apply(readMessage(message)));
  return record;
}

/** A look at a running cell. */
function running(at, steps, allocated, number = 1) {
  const message = sample('sample');
  const cell = { ...message.cell, number, steps, elapsed_s: (at - AT) / 1000 };
  const devices = [{ ...message.devices[1], allocated, limit: 1 << 30 }];
  return { ...message, at, cell, devices, findings: [] };
}

test('history brings series, cells and state', () => {
  const record = heard(sample('history'));
  assert.ok(record.live);
  assert.deepEqual([...record.series.keys()], ['host', 'cuda:0']);
  assert.equal(record.cells.length, 1);
  assert.equal(record.state.modules[0].path, 'model');
  assert.equal(record.mainDevice(), 'cuda:0');
  // Two looks, a missing stretch, a look.
  assert.deepEqual(
    record.series.get('host').allocated.map(x => x === null),
    [false, false, true, false]
  );
});

test('history twice changes nothing', () => {
  const record = heard(sample('history'), sample('history'));
  assert.equal(record.cells.length, 1);
  assert.equal(record.series.get('host').at.length, 4);
});

test('what came after the history stays when it arrives late', () => {
  const later = sample('cell');
  later.cell = { ...later.cell, number: 2, began: later.cell.began + 60_000 };
  const record = heard(later, { ...sample('sample'), at: AT + 70_000 }, sample('history'));
  assert.deepEqual(
    record.cells.map(cell => cell.number),
    [1, 2]
  );
  assert.equal(record.series.get('host').at.at(-1), AT + 70_000);
});

test('a short history does not replace a complete one', () => {
  const short = { ...sample('history'), complete: false, cells: [] };
  assert.equal(heard(sample('history'), short).cells.length, 1);
  assert.equal(heard(short, sample('history')).cells.length, 1);
});

test('a new load of the extension begins anew', () => {
  const record = heard(sample('history'), { ...sample('sample'), run: 'f'.repeat(32) });
  assert.equal(record.cells.length, 0);
  assert.equal(record.series.get('host').at.length, 1);
});

test('late messages of a kernel that is gone are dropped', () => {
  const record = heard(sample('history'));
  record.end();
  assert.deepEqual(record.apply(readMessage(sample('sample'))), []);
  assert.equal(record.live, false);
});

test('bye ends it', () => {
  assert.equal(heard(sample('history'), sample('bye')).live, false);
});

test('findings of a running cell are there until it has ended', () => {
  const record = heard(sample('sample'));
  assert.equal(record.early.length, 1);
  record.apply(readMessage(sample('cell')));
  assert.equal(record.early.length, 0);
  assert.equal(record.running, null);
});

test('speed and growth of a running loop', () => {
  const looks = Array.from({ length: 8 }, (_, i) =>
    running(AT + i * 500, i * 10, (100 + i * 10) << 20)
  );
  const rate = heard(...looks).rate;
  assert.equal(rate.stepsPerSecond, 20);
  assert.equal(rate.growth, 100 << 20);
  const left = (1024 - 170) / (20 * 1);
  assert.ok(Math.abs(rate.fullInSeconds - left) < 1e-6);
});

test('memory that goes up and down does not grow', () => {
  const looks = Array.from({ length: 12 }, (_, i) =>
    running(AT + i * 500, i * 10, (100 + (i % 2) * 40) << 20)
  );
  const rate = heard(...looks).rate;
  assert.equal(rate.growth, null);
  assert.equal(rate.stepsPerSecond, 20);
});

test('another cell begins its own rate', () => {
  const first = Array.from({ length: 8 }, (_, i) => running(AT + i * 500, i * 10, i << 24));
  assert.equal(heard(...first, running(AT + 9000, 3, 1, 2)).rate.stepsPerSecond, null);
});

test('500 cells and 5,000 looks are the most', () => {
  const record = new KernelRecord();
  for (let i = 0; i < 700; i++) {
    const message = sample('cell');
    record.apply(readMessage({ ...message, cell: { ...message.cell, number: i, began: i * 10 } }));
  }
  for (let i = 0; i < 12_000; i++) {
    record.apply(readMessage(running(AT + i * 500, i, i === 5 ? 2 ** 40 : i)));
  }
  assert.equal(record.cells.length, 500);
  const { at, allocated, reserved } = record.series.get('cuda:0');
  assert.ok(at.length <= 5000);
  assert.deepEqual([allocated.length, reserved.length], [at.length, at.length]);
  assert.equal(Math.max(...allocated), 2 ** 40);
  assert.ok(at.every((one, i) => i === 0 || one > at[i - 1]));
});
