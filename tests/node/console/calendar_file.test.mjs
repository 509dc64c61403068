// A file of days: its form, its years, and what it changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { changesOf, formOf, yearsOf } = await import('../../../src/console/js/edit/calendar_file.js');

test('the form is in the name of the file', () => {
  assert.equal(formOf('cn.json'), 'json');
  assert.equal(formOf('DAYS.CSV'), 'csv');
  assert.equal(formOf('bank.ics'), 'ics');
});

test('years are numbers, and what is none is not lost', () => {
  assert.deepEqual(yearsOf('2026, 2027，2028'), [2026, 2027, 2028]);
  assert.deepEqual(yearsOf('  '), []);
  assert.ok(Number.isNaN(yearsOf('soon')[0]));
});

test('every change is a line', () => {
  const lines = changesOf({
    head: [{ what: 'weekend', old: 'sat,sun', new: 'fri,sat' }],
    years_added: [2026],
    years_removed: [],
    days: {
      '2026-10-01': { added: { kind: 'off', label: 'National Day' } },
      '2026-10-10': { removed: { kind: 'work', label: null } },
      '2026-10-11': { changed: [{ kind: 'off', label: 'A' }, { kind: 'work' }] },
    },
  });
  assert.deepEqual(lines, [
    'weekend: sat,sun → fri,sat',
    'new: 2026',
    '2026-10-01: a day off · National Day',
    'goes: 2026-10-10 a working day',
    '2026-10-11: a day off · A → a working day',
  ]);
});
