/** Messages with one part replaced by something strange: refused, or read into what can be shown. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { grouped } from '../lib/grouping.js';
import { holdingsOf } from '../lib/holding.js';
import { readMessage } from '../lib/message.js';
import { cellAt } from '../lib/pick.js';
import { progressOf } from '../lib/progress.js';
import { Malformed } from '../lib/read.js';
import { KernelRecord } from '../lib/record.js';
import { messages, sample } from './samples.mjs';

const trans = { __: (text, ...values) => [text, ...values].join(' ') };
const deep = Array.from({ length: 3000 }).reduce(inner => [inner], []);
const STRANGE = [
  null,
  undefined,
  true,
  -1,
  0.5,
  NaN,
  2 ** 53,
  1e300,
  -1e300,
  '',
  '<img src=x onerror=alert(1)>',
  '__proto__',
  'x'.repeat(1e6),
  [],
  Array(1e5).fill(null),
  Array(1e5).fill({}),
  {},
  JSON.parse('{"__proto__": {"device": "host"}, "constructor": 1}'),
  deep,
  { toString: 1, valueOf: 1, toJSON: 1, length: 1e9 }
];

/** Where something stands in a message. */
function* placesOf(value, path = []) {
  if (path.length > 0) {
    yield path;
  }
  if (typeof value === 'object' && value !== null) {
    for (const key of Object.keys(value)) {
      yield* placesOf(value[key], [...path, key]);
    }
  }
}

/** The message with something else at a place. */
function withStrange(message, path, strange) {
  const copy = structuredClone(message);
  const holder = path.slice(0, -1).reduce((inner, key) => inner[key], copy);
  holder[path.at(-1)] = strange;
  return copy;
}

/** All that the panel makes of a record without a page. */
function draw(record) {
  const cell = { number: null, id: null };
  grouped(
    record.cells,
    record.early.map(finding => ({ finding, cell }))
  );
  holdingsOf(record.account?.rows ?? []);
  cellAt(record.cells, record.running, 0, 0, 1);
  return progressOf(record, trans).join('\n');
}

for (const [name, message] of messages) {
  test(`${name}: any part may be strange`, () => {
    let [read, refused] = [0, 0];
    for (const path of placesOf(message)) {
      for (const strange of STRANGE) {
        const record = new KernelRecord();
        try {
          record.apply(readMessage(sample('history')));
          const made = readMessage(withStrange(message, path, strange));
          if (made) {
            record.apply(made);
          }
          read += 1;
        } catch (error) {
          assert.ok(error instanceof Malformed, `${path}: ${error}`);
          assert.ok(error.message.length < 120, error.message);
          refused += 1;
        }
        assert.ok(draw(record).length < 1000);
      }
    }
    assert.ok(read > 0 && refused > 0);
    assert.equal({}.device, undefined);
  });
}

test('a message that names another load does not silence the one that is there', () => {
  const record = new KernelRecord();
  record.apply(readMessage(sample('history')));
  record.apply(readMessage({ ...sample('sample'), run: 'forged' }));
  record.apply(readMessage(sample('sample')));
  assert.equal(record.run, sample('sample').run);
});

test('names without end take no room without end', () => {
  const record = new KernelRecord();
  for (let i = 0; i < 1000; i++) {
    const [device] = sample('sample').devices;
    const devices = [{ ...device, device: `device ${i}` }];
    record.apply(readMessage({ ...sample('sample'), at: 1e12 + i * 1000, devices }));
    record.apply(readMessage({ ...sample('bye'), run: `run ${i}` }));
    record.apply(readMessage(sample('sample')));
  }
  for (let i = 0; i < 1000; i++) {
    const [device] = sample('sample').devices;
    const devices = [{ ...device, device: `device ${i}` }];
    record.apply(readMessage({ ...sample('sample'), at: 2e12 + i * 1000, devices }));
  }
  assert.ok(record.series.size <= 64);
});

test('times that no calendar has are refused', () => {
  for (const at of [2 ** 53 - 1, 8.64e15 + 1, 5e12]) {
    assert.throws(() => readMessage({ ...sample('sample'), at }), Malformed);
  }
});
