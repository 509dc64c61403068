// How bad a line of a log is, and what of it is shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { clean, levelOf } = await import('../../../src/console/js/log_lines.js');

test('errors and warnings are told by their words', () => {
  for (const text of [
    '2024-07-31 02:00:01 ERROR [main] no connection',
    'java.sql.SQLException: closed',
    'ValueError: bad',
    'Traceback (most recent call last):',
    'ORA-00942: table or view does not exist',
    'psql: error: connection refused',
    '过账失败',
    '\u001b[31mFATAL\u001b[0m disk full',
  ])
    assert.equal(levelOf({ text, stream: 'stdout' }), 'error', text);
  for (const text of ['WARN slow', 'warning: deprecated', '警告：磁盘将满'])
    assert.equal(levelOf({ text, stream: 'stdout' }), 'warning', text);
});

test('what tells of no error is none', () => {
  for (const text of ['0 errors, 12 rows', 'errors: 0', 'done without error', 'terrorist', 'no errors', '0 个错误'])
    assert.equal(levelOf({ text, stream: 'stdout' }), null, text);
  assert.equal(levelOf({ text: '0 errors, then ERROR 5', stream: 'stdout' }), 'error');
});

test('the stream counts where the words say nothing', () => {
  assert.equal(levelOf({ text: 'loading', stream: 'stderr' }), 'stderr');
  assert.equal(levelOf({ text: 'loading', stream: 'system' }), null);
});

test('colours and signs that turn text round are taken out', () => {
  assert.equal(clean('\u001b[1;31mred\u001b[0m\u202e'), 'red·');
  assert.equal(clean(null), '');
});
