// What is offered in the text of a definition: keys and values of the JSON Schema, codes, routines.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const { complete, keysAt, pathAt, valuesAt } = await import('../../../src/console/js/edit/draft/complete.js');

const schema = JSON.parse(readFileSync(new URL('../../../docs/procession.schema.json', import.meta.url), 'utf8'));
const known = { depends_on: ['A', 'B'], job: ['A', 'B'], source: ['ledger'], proc_name: ['sp_close', 'fin.sp_load'] };

/** Completes where `|` stands; the labels, and what would be replaced. */
const at = (text) => {
  const place = text.indexOf('|');
  const found = complete(schema, text.replace('|', ''), place, known);
  return found && { labels: found.options.map((one) => one.label), from: text.slice(found.from, place), found };
};

test('the path of a line is read by its indentation', () => {
  const lines = ['jobs:', '  A:', '    type: PROC', '    params:', '      - name: p', '        value: 1', '        '];
  assert.deepEqual(pathAt(lines, 6, 8), ['jobs', 'A', 'params', '-']);
  assert.deepEqual(pathAt(lines, 3, 4), ['jobs', 'A']);
  assert.deepEqual(pathAt(lines, 1, 2), ['jobs']);
  assert.deepEqual(pathAt(lines, 0, 0), []);
  assert.deepEqual(pathAt(['jobs:', '  # a: comment', '  "A b":', '    '], 3, 4), ['jobs', 'A b']);
});

test('keys are those of the place', () => {
  assert.ok(at('|').labels.includes('jobs'));
  assert.ok(!at('|').labels.includes('proc_name'));
  const job = at('jobs:\n  A:\n    pro|');
  assert.equal(job.from, 'pro');
  assert.ok(job.labels.includes('proc_name') && job.labels.includes('depends_on'));
  assert.ok(!job.labels.includes('schedules'));
  const chosen = job.found.options.find((one) => one.label === 'proc_name');
  assert.equal(chosen.insert, 'proc_name: ');
  const param = at('jobs:\n  A:\n    params:\n      - name: p\n        |').labels;
  assert.ok(param.includes('mode') && param.includes('value'), param.join());
  assert.ok(!param.includes('depends_on'));
  assert.ok(at('jobs:\n  A:\n    params:\n      - |').labels.includes('name'));
  assert.ok(at('groups:\n  g:\n    |').labels.includes('max_parallel'));
  assert.ok(keysAt(schema, ['jobs', 'A']).some((one) => one.label === 'timeout_sec' && one.detail));
});

test('values are those of the schema, and what is known by name', () => {
  const type = at('jobs:\n  A:\n    type: P|');
  assert.equal(type.from, 'P');
  assert.ok(type.labels.includes('PROC') && type.labels.includes('SENSOR'), type.labels.join());
  assert.deepEqual(at('jobs:\n  A:\n    idempotent: |').labels.sort(), ['false', 'true']);
  assert.deepEqual(at('jobs:\n  A:\n    proc_name: sp|').labels, known.proc_name);
  assert.deepEqual(at('jobs:\n  A:\n    source: |').labels, ['ledger']);
  assert.deepEqual(at('jobs:\n  A:\n    depends_on: [B, |').labels, ['A', 'B']);
  assert.deepEqual(at('jobs:\n  A:\n    depends_on:\n      - |').labels.slice(0, 2), ['A', 'B']);
  assert.deepEqual(at('jobs:\n  A:\n    depends_on:\n      - job: |').labels, ['A', 'B']);
  assert.deepEqual(valuesAt(schema, ['jobs', 'A', 'name']), []);
});

test('nothing is offered in a comment or a text in quotes', () => {
  assert.equal(at('jobs: # ty|'), null);
  assert.equal(at("jobs:\n  A:\n    sql: 'SELECT |'"), null);
});
