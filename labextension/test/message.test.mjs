import assert from 'node:assert/strict';
import { test } from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';

import { readMessage } from '../lib/message.js';
import { Malformed } from '../lib/read.js';
import { messages, sample, schema } from './samples.mjs';

const ajv = new Ajv2020.default({ allowUnionTypes: true, strict: false });
const valid = ajv.compile(schema);

for (const [name, message] of messages) {
  test(`${name}: the schema and the reader agree`, () => {
    assert.ok(valid(message), JSON.stringify(valid.errors));
    const { v, ...body } = message;
    assert.equal(v, 1);
    assert.deepEqual(readMessage(message), body);
  });
}

test('requests are what the schema says', () => {
  const request = ajv.compile({ ...schema, oneOf: undefined, $ref: '#/$defs/request' });
  assert.ok(request({ v: 1, ask: 'hello' }));
  assert.ok(request({ v: 1, ask: 'account' }));
  assert.ok(request({ v: 1, ask: 'holders', path: 'x[0]' }));
  assert.ok(!request({ v: 1, ask: 'run', code: '1' }));
});

test('a message of a kind from the future is passed over', () => {
  assert.equal(readMessage({ v: 1, run: 'x', op: 'unheard', at: 1 }), null);
  assert.equal(readMessage({ v: 1, run: 'x', op: 'constructor', at: 1 }), null);
});

const HOSTILE = [
  null,
  7,
  'sample',
  [],
  {},
  { v: 2, run: 'x', op: 'sample', at: 1 },
  { v: 1, run: {}, op: 'sample', at: 1 },
  { v: 1, run: 'x', op: 'sample', at: NaN },
  { v: 1, run: 'x', op: 'sample', at: 1e300 },
  { v: 1, run: 'x', op: ['sample'], at: 1 },
  { ...sample('sample'), devices: {} },
  { ...sample('sample'), devices: [null] },
  { ...sample('sample'), cell: 'running' },
  { ...sample('sample'), gap: 'no' },
  { ...sample('cell'), cell: { ...sample('cell').cell, findings: 'many' } },
  { ...sample('cell'), cell: { ...sample('cell').cell, duration_s: Infinity } },
  { ...sample('history'), series: [{ device: 'host' }] },
  { ...sample('account'), rows: [{ path: { toString: 'x' } }] },
  JSON.parse('{"v": 1, "run": "x", "op": "sample", "at": 1, "__proto__": {"devices": []}}')
];

HOSTILE.forEach((data, index) => {
  test(`malformed message ${index} is refused`, () => {
    assert.throws(() => readMessage(data), Malformed);
  });
});

test('huge data is cut', () => {
  const message = sample('account');
  message.rows = Array.from({ length: 100_000 }, () => ({
    ...message.rows[0],
    path: 'x'.repeat(1e5)
  }));
  const read = readMessage({ ...message, rows: message.rows });
  assert.equal(read.rows.length, 300);
  assert.equal(read.rows[0].path.length, 200);
});

test('prototype keys go nowhere', () => {
  const message = JSON.parse(JSON.stringify(sample('sample')).replace('"cuda:0"', '"__proto__"'));
  const read = readMessage({ ...message, extra: 1 });
  assert.equal(Object.hasOwn(read, 'extra'), false);
  assert.equal(read.devices[1].device, '__proto__');
  assert.equal({}.allocated, undefined);
});
