import assert from 'node:assert/strict';
import { test } from 'node:test';

import { slugOf } from '../lib/doc_links.js';

test('the name is what the address ends with', () => {
  assert.equal(slugOf('#torch-inspector-missing-zero-grad'), 'missing-zero-grad');
  assert.equal(slugOf('/lab/tree/a.ipynb#torch-inspector-oom'), 'oom');
});

test('other addresses have none', () => {
  for (const address of [
    '',
    '#',
    '#torch-inspector-',
    '#torch-inspector-../../x',
    '#torch-inspector-<img>',
    'javascript:alert(1)',
    `#torch-inspector-${'x'.repeat(81)}`,
    '#torch-inspector-a?b',
    '#torch-inspector-a\n'
  ]) {
    assert.equal(slugOf(address), null, address);
  }
});
