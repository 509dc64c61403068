// How far a batch has come.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { progress } = await import('../../../src/console/js/status.js');

const words = (counts) => progress(counts).querySelector('.progress-n').textContent;

test('what failed has ended and is not done', () => {
  assert.equal(words({ SUCCESS: 66, FAILED: 1, UPSTREAM_FAILED: 3 }), '66/70');
  assert.equal(words({ SUCCESS: 20, WARNING: 1, SKIPPED: 2, FORCED: 1 }), '24/24');
  assert.equal(words({ SUCCESS: 1, RUNNING: 2, PENDING: 3 }), '1/6');
});
