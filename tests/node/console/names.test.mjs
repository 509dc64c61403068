// Names on boxes: what families share, and what is left where there is little room.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { fitParts, middle, prefixes, twoLines } = await import('../../../src/console/js/dag/names.js');

/** Letters of one width. */
const measure = (text) => [...text].length;

test('what a family shares is found, and ends where the family parts', () => {
  const codes = [
    ...['accounts', 'accounting_books', 'currencies', 'vendors', 'locations'].map((x) => `stg_netsuite2__${x}`),
    ...['customers', 'accounts', 'locations'].map((x) => `int_netsuite2__${x}`),
    'balance_sheet',
  ];
  const found = prefixes(codes);
  assert.equal(found[0], 'stg_netsuite2__');
  assert.equal(found[1], 'stg_netsuite2__', 'one of five has accounting_, which stays in its name');
  assert.equal(found[5], 'int_netsuite2__');
  assert.equal(found[8], '');
});

test('short beginnings and beginnings of few stay', () => {
  assert.deepEqual(prefixes(['SL_AP', 'SL_AR', 'SL_BANK', 'POST_GL']), ['', '', '', '']);
  assert.deepEqual(prefixes(['REPORT_PACK', 'REPORT_MAIL']), ['', '']);
});

test('a name that does not fit is cut in the middle, for codes differ at both ends', () => {
  assert.equal(middle('ACCRUALS', 8, measure), 'ACCRUALS');
  assert.equal(middle('consolidated_exchange_rates', 13, measure), 'consol…_rates'.padEnd(13).trim());
  assert.equal(measure(middle('consolidated_exchange_rates', 12, measure)), 12);
  assert.equal(middle('abc', 0, measure), '…');
  assert.equal(middle('资产负债表检查', 5, measure), '资产…检查');
});

test('two lines break at a joint', () => {
  assert.deepEqual(twoLines('PREPAID_AMORTISATION', 12, measure), ['PREPAID_', 'AMORTISATION']);
  assert.deepEqual(twoLines('POST_GL', 12, measure), ['POST_GL']);
  assert.deepEqual(twoLines('CONSOLIDATION', 7, measure), ['CON…ION']);
});

test('first the beginning gives way by words, then the middle', () => {
  const words = (width) =>
    fitParts('stg_netsuite2__', 'locations', width, measure)
      .map((part) => (part.faint ? `(${part.text})` : part.text))
      .join('');
  assert.equal(words(30), '(stg_netsuite2__)locations');
  assert.equal(words(20), '(stg_…)locations');
  assert.equal(words(11), '(…)locations');
  assert.equal(words(7), 'loc…ons');
});
