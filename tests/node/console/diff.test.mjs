// Differences between two texts, line by line.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { lineDiff } = await import('../../../src/console/js/edit/diff.js');

/** Puts a text together again from the lines of a difference. */
const side = (lines, without) =>
  lines
    .filter(([sign]) => sign !== without)
    .map(([, line]) => line)
    .join('\n');

test('a changed line is one out and one in, with the numbers of both sides', () => {
  assert.deepEqual(lineDiff('a\nb\nc', 'a\nx\nc'), [
    [' ', 'a', 1, 1],
    ['-', 'b', 2, null],
    ['+', 'x', null, 2],
    [' ', 'c', 3, 3],
  ]);
});

test('the shortest difference is found', () => {
  const lines = lineDiff('one\ntwo\nthree\nfour', 'zero\ntwo\nfour\nfive');
  assert.equal(lines.filter(([sign]) => sign === ' ').length, 2);
});

test('both texts can be read from the difference, whatever they are', () => {
  // A generator with a fixed seed: a failure is the same the next time.
  let seed = 7;
  const next = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: next(9) }, () => 'abc'[next(3)]).join('\n');
    const [before, after] = [text(), text()];
    const lines = lineDiff(before, after);
    assert.equal(side(lines, '+'), before);
    assert.equal(side(lines, '-'), after);
  }
});
