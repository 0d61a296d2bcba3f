import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { readMessage } from '../lib/message.js';
import { KernelRecord } from '../lib/record.js';
import { settingsOf } from '../lib/settings.js';
import { DEFAULTS } from '../lib/wishes.js';
import { sample } from './samples.mjs';

const { properties } = JSON.parse(
  readFileSync(new URL('../schema/plugin.json', import.meta.url), 'utf8')
);
const AT = 1_700_000_000_000;

/** A record that keeps to some settings, after looks half a second apart. */
function heard(count, wishes) {
  const record = new KernelRecord();
  record.heed({ ...DEFAULTS, ...wishes });
  for (let i = 0; i < count; i++) {
    record.apply(readMessage({ ...sample('sample'), at: AT + i * 500 }));
  }
  return record;
}

test('the defaults are those of the schema', () => {
  const settings = settingsOf(name => properties[name].default);
  assert.deepEqual(settings, { statusBar: true, badge: true, wishes: { ...DEFAULTS } });
});

test('settings of another type count as their defaults', () => {
  for (const strange of [undefined, null, 'no', {}, [], NaN, Infinity]) {
    assert.deepEqual(
      settingsOf(() => strange),
      settingsOf(() => undefined)
    );
  }
});

test('without sampling nothing is drawn, and cells go on', () => {
  const record = heard(5, { sampling: false });
  assert.equal(record.series.size, 0);
  assert.equal(record.running.number, 1);
});

test('a longer interval holds before the kernel has heard of it', () => {
  const { at } = heard(9, { interval_s: 2 }).series.get('host');
  assert.deepEqual(at, [AT, AT + 2000, AT + 4000]);
});

test('a shorter history holds at once, and for what comes', () => {
  const record = heard(1000, {});
  record.heed({ ...DEFAULTS, history: 100 });
  assert.ok(record.series.get('host').at.length <= 100);
  record.apply(readMessage({ ...sample('sample'), at: AT + 1e6 }));
  assert.equal(record.series.get('host').at.at(-1), AT + 1e6);
});

test('without live findings there are none while the cell runs', () => {
  const record = heard(1, {});
  assert.equal(record.early.length, 1);
  record.heed({ ...DEFAULTS, findings: false });
  assert.equal(record.early.length, 0);
  record.apply(readMessage({ ...sample('sample'), at: AT + 500 }));
  assert.equal(record.early.length, 0);
});
