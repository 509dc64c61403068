// The cron builder: its form and its text follow each other.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { cronBuilder, join, split } = await import('../../../src/console/js/edit/cron.js');

test('seven fields are split and joined as they were', () => {
  for (const text of ['0 0 2 1 * ?', '0 30 18 ? * 6L 2026', '*/5 * * * * ?', '0 0 2 LW * ?']) {
    assert.equal(join(split(text)), text);
  }
});

test('classic cron becomes Quartz, whose Sunday is 1', () => {
  assert.equal(join(split('30 2 * * 1-5')), '0 30 2 ? * 2-6');
  assert.equal(join(split('0 4 1 * *')), '0 0 4 1 * ?');
  assert.equal(split('0 4 * * 0').dow, '1');
  assert.equal(split('0 4 * * 7').dow, '1');
  assert.equal(split('0 4 1 * 1').both, true, 'classic cron means either day, which Quartz cannot say');
});

const kinds = [
  ['0 */15 * * * ?', 'minutes'],
  ['0 5 * * * ?', 'hourly'],
  ['0 30 2 * * ?', 'daily'],
  ['0 30 2 ? * 2,4', 'weekly'],
  ['0 30 2 ? * 2-6', 'weekly'],
  ['0 30 2 LW * ?', 'monthly'],
  ['0 30 2 ? * 6L', 'nth'],
  ['0 30 2 ? * 2#3', 'nth'],
  ['5 30 2 * * ?', 'fields'],
  ['0 99 2 * * ?', 'fields'],
  ['0 0 2 1 1 ?', 'fields'],
];
for (const [text, kind] of kinds) {
  test(`${text} is shown as ${kind}`, () => {
    const builder = cronBuilder({ value: text, onchange() {} });
    assert.equal(builder.el.querySelector('select').value, kind);
    assert.equal(builder.value(), text, 'showing it changes nothing');
  });
}

test('choosing another form writes its text', () => {
  const seen = [];
  const builder = cronBuilder({ value: '0 30 2 * * ?', onchange: (text) => seen.push(text) });
  const how = builder.el.querySelector('select');
  how.value = 'monthly';
  how.dispatchEvent(new Event('change'));
  assert.deepEqual(seen, ['0 30 2 1 * ?']);
  assert.equal(builder.line.value, '0 30 2 1 * ?');
});
