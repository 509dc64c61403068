// Addresses of pages, and words.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { here, setQuery, to } = await import('../../../src/console/js/router.js');
const { setLang, t } = await import('../../../src/console/js/i18n.js');

test('parts of an address are encoded', () => {
  assert.equal(to`/batches/${'月末'}/${'2024/07'}`, '#/batches/%E6%9C%88%E6%9C%AB/2024%2F07');
  assert.equal(to`/x/${undefined}`, '#/x/');
});

test('a query changes without losing the page', () => {
  location.hash = '#/batches?status=FAILED&page=2';
  setQuery({ status: 'RUNNING', page: null });
  assert.equal(location.hash, '#/batches?status=RUNNING');
  assert.equal(here().path, '/batches');
  assert.equal(here().query.get('status'), 'RUNNING');
});

test('words have a form for one and for many', () => {
  assert.equal(t('common.n_items', { n: 1 }), '1 item');
  assert.equal(t('common.n_items', { n: 1200 }), '1,200 items');
  assert.equal(t('no.such.word'), 'no.such.word');
  setLang('zh');
  assert.notEqual(t('common.save'), 'Save');
  setLang('en');
});
