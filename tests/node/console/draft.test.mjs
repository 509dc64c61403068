// Changes of a definition's text touch the lines that they are about, and mean what they say.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as kit from 'yaml';

const { DefinitionText, EditRefused, applied } = await import('../../../src/console/js/edit/draft/document.js');
const { graphOf, layered, ranksOf, waitsFor } = await import('../../../src/console/js/edit/draft/graph.js');

const read = (text) => new DefinitionText(text, kit);
const change = (text, name, ...args) => applied(text, read(text)[name](...args));
const monthEnd = readFileSync(new URL('../../../dag-examples/month-end-close.yaml', import.meta.url), 'utf8');
const parsed = (text) => kit.parseDocument(text, { merge: true }).toJS();

const SMALL = `# Head
jobs:
  A:  # first
    name: One # why
    type: NOOP

  # about B
  B: { type: NOOP, depends_on: [A] } # flow
  C:
    type: NOOP
    depends_on: # list
      - A # because
      - job: B
        when: done
# tail
groups: { g: {} }
`;

/** Lines that are in one text and not in the other. */
const differing = (before, after) => {
  const left = after.split('\n');
  for (const line of before.split('\n')) {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
  }
  return left.filter((line) => line.trim());
};

test('jobs and what they wait for are read in every form', () => {
  const jobs = read(SMALL).jobs();
  assert.deepEqual(
    jobs.map((job) => [job.code, job.parents.map((p) => p.code)]),
    [
      ['A', []],
      ['B', ['A']],
      ['C', ['A', 'B']],
    ],
  );
  assert.equal(read(monthEnd).jobs().length, parsed(monthEnd) && Object.keys(parsed(monthEnd).jobs).length);
});

test('a new job is added behind the last, and nothing else changes', () => {
  const after = change(SMALL, 'addJob', 'D', { type: 'PROC', proc_name: 'sp_d' });
  assert.deepEqual(differing(SMALL, after), ['  D:', '    type: PROC', '    proc_name: sp_d']);
  assert.deepEqual(parsed(after).jobs.D, { type: 'PROC', proc_name: 'sp_d' });
  assert.ok(after.includes('# tail') && after.indexOf('  D:') < after.indexOf('# tail'));
  for (const start of [
    '',
    '# nothing yet\n',
    'jobs:\n',
    'jobs: {}\ngroups: { g: {} }\n',
    'jobs: { A: { type: NOOP } }\n',
    'groups: { g: {} }',
  ]) {
    const made = change(start, 'addJob', 'D', { type: 'NOOP', depends_on: ['x'] });
    assert.deepEqual(parsed(made).jobs.D, { type: 'NOOP', depends_on: ['x'] }, start);
  }
});

test('a source is added once', () => {
  const text = 'sources:\n  a: { url: "sqlite:a.db" } # a\njobs: {}\n';
  const after = change(text, 'addSource', 'b', { url: 'sqlite:b.db' });
  assert.deepEqual(parsed(after).sources.b, { url: 'sqlite:b.db' });
  assert.ok(after.includes('# a'));
  assert.deepEqual(read(after).addSource('b', {}), []);
  assert.deepEqual(parsed(change('jobs: {}\n', 'addSource', 'b', { url: 'x' })).sources, { b: { url: 'x' } });
});

test('a dependency is added in every form', () => {
  for (const [code, parent, wanted] of [
    ['A', 'B', ['B']],
    ['B', 'C', ['A', 'C']],
    ['C', 'D', ['A', { job: 'B', when: 'done' }, 'D']],
  ]) {
    const after = change(SMALL, 'addDependency', code, parent);
    assert.deepEqual(parsed(after).jobs[code].depends_on, wanted);
    assert.equal(differing(SMALL, after).length, 1, after);
    for (const comment of ['# first', '# why', '# flow', '# list', '# because', '# tail', '# about B'])
      assert.ok(after.includes(comment), comment);
  }
  const scalar = 'jobs:\n  A: {type: NOOP}\n  B:\n    depends_on: A # one\n';
  const after = change(scalar, 'addDependency', 'B', 'C');
  assert.deepEqual(parsed(after).jobs.B.depends_on, ['A', 'C']);
  assert.ok(after.includes('# one'));
  assert.deepEqual(parsed(change('jobs:\n  A:\n  B: {}\n', 'addDependency', 'A', 'B')).jobs.A, { depends_on: ['B'] });
});

test('a dependency is removed in every form', () => {
  for (const [code, parent, wanted] of [
    ['B', 'A', undefined],
    ['C', 'A', [{ job: 'B', when: 'done' }]],
    ['C', 'B', ['A']],
  ]) {
    const after = change(SMALL, 'removeDependency', code, parent);
    assert.deepEqual(parsed(after).jobs[code].depends_on, wanted);
    assert.ok(after.includes('# tail') && after.includes('# flow'));
  }
  assert.throws(() => read(SMALL).removeDependency('C', 'Z'), EditRefused);
});

test('a deleted job is gone everywhere, and comments of others stay', () => {
  const after = change(SMALL, 'deleteJob', 'B');
  assert.deepEqual(parsed(after).jobs, { A: { name: 'One', type: 'NOOP' }, C: { type: 'NOOP', depends_on: ['A'] } });
  assert.ok(after.includes('- A # because') && after.includes('# tail') && after.includes('# first'));
  // FX_LOAD has no anchor; SL_AP has one that others use.
  assert.throws(
    () => read(monthEnd).deleteJob('SL_AP'),
    (error) => error.key === 'ed.anchor',
  );
});

test('a field is set, changed and taken out', () => {
  const named = change(SMALL, 'setField', 'A', 'name', 'Two: new');
  assert.equal(parsed(named).jobs.A.name, 'Two: new');
  assert.ok(named.includes('# why'));
  assert.equal(parsed(change(SMALL, 'setField', 'B', 'name', 'x, y')).jobs.B.name, 'x, y');
  assert.equal(parsed(change(SMALL, 'setField', 'A', 'name', undefined)).jobs.A.name, undefined);
  const params = [{ name: 'p', value: '${batch_no}' }];
  assert.deepEqual(parsed(change(SMALL, 'setField', 'C', 'params', params)).jobs.C.params, params);
});

test('every single change of the month-end means just itself', () => {
  const before = parsed(monthEnd);
  for (const code of Object.keys(before.jobs)) {
    const parents = before.jobs[code].depends_on ?? [];
    for (const parent of parents) {
      const after = parsed(change(monthEnd, 'removeDependency', code, parent));
      const left = parents.filter((one) => one !== parent);
      const wanted = structuredClone(before);
      if (left.length) wanted.jobs[code].depends_on = left;
      else delete wanted.jobs[code].depends_on;
      assert.deepEqual(after, wanted, `${parent} -> ${code}`);
    }
    const added = parsed(change(monthEnd, 'addDependency', code, 'ZZZ'));
    const wanted = structuredClone(before);
    wanted.jobs[code].depends_on = [...parents, 'ZZZ'];
    assert.deepEqual(added, wanted, code);
  }
});

test('a faulty text is not edited', () => {
  assert.throws(
    () => read('jobs: {').addJob('A', {}),
    (error) => error.key === 'ed.faulty',
  );
  assert.throws(
    () => read('jobs:\n  - code: A\n').addJob('B', {}),
    (error) => error.key === 'ed.list_form',
  );
});

test('layers stand behind what they wait for; a circle is found', () => {
  const jobs = read(monthEnd).jobs();
  const graph = graphOf(jobs);
  const ranks = ranksOf(graph);
  for (const edge of graph.edges) assert.ok(ranks.get(edge.source) < ranks.get(edge.target));
  const picture = layered(graph);
  assert.equal(picture.edges.length, graph.edges.length);
  assert.equal(new Set(picture.nodes.map((node) => `${node.x},${node.y}`)).size, picture.nodes.length);
  assert.ok(waitsFor(jobs, 'FX_LOAD', 'DEMO_SETUP'));
  assert.ok(!waitsFor(jobs, 'DEMO_SETUP', 'FX_LOAD'));
});
