// The picture of a DAG in memory: what is in view, what lies under the pointer, what has changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { Model, stateOf } = await import('../../../src/console/js/dag/model.js');
const { causeOf, isSlow, labelOf } = await import('../../../src/console/js/dag/words.js');

/** A chain of boxes, 300 apart. */
function chain(n) {
  const nodes = Array.from({ length: n }, (_, i) => ({
    id: `J${i}`,
    name: `过账 ${i}`,
    x: i * 300,
    y: 0,
    w: 160,
    h: 44,
    status: 'PENDING',
  }));
  const edges = nodes.slice(1).map((node, i) => ({ source: `J${i}`, target: node.id }));
  return new Model({ nodes, edges });
}

test('what is in view is found, and nothing else', () => {
  const model = chain(40);
  assert.deepEqual(model.nodesIn(290, -10, 470, 60), [1]);
  assert.deepEqual(model.nodesIn(170, -10, 290, 60), [], 'between two boxes');
  assert.equal(model.nodeAt(305, 20), 1);
  assert.equal(model.nodeAt(305, 100), -1);
  assert.equal(model.nodesIn(0, 0, model.width, model.height).length, 40);
});

test('an edge is found near its line', () => {
  const model = chain(3);
  assert.equal(model.edgeAt(230, 24, 6), 0);
  assert.equal(model.edgeAt(230, 40, 6), -1);
});

test('news change only what differs, and the counts follow', () => {
  const model = chain(3);
  assert.deepEqual(
    model.take([
      { id: 'J1', status: 'RUNNING' },
      { id: 'J2', status: 'PENDING' },
      { id: 'GONE', status: 'FAILED' },
    ]),
    [1],
  );
  assert.deepEqual(model.counts(), { PENDING: 2, RUNNING: 1 });
});

test('a branch that was not taken is a state of its own', () => {
  assert.equal(stateOf({ status: 'SKIPPED', skip_kind: 'branch' }), 'SKIPPED_BRANCH');
  assert.equal(stateOf({ status: 'SKIPPED', skip_kind: 'operator' }), 'SKIPPED');
  assert.equal(stateOf({}), 'NONE');
});

test('jobs are found by their names too', () => {
  const model = chain(12);
  assert.deepEqual(model.search(' 过账 11 '), [11]);
  assert.deepEqual(model.search('j1'), [1, 10, 11]);
  assert.deepEqual(model.search(' '), []);
});

test('what takes more than twice as long as usual says so, and a guess is nothing usual', () => {
  const job = { status: 'SUCCESS', duration_sec: 51, est_sec: 2.6 };
  assert.equal(labelOf(job, 'SUCCESS'), '▲ 51 s, usually 2.6 s');
  assert.equal(labelOf(job, 'SUCCESS', true), '▲ 51 s');
  assert.equal(isSlow({ ...job, est_assumed: true }, 'SUCCESS'), false);
  assert.equal(labelOf({ ...job, duration_sec: 5 }, 'SUCCESS'), '5.0 s');
  assert.equal(isSlow({ ...job, duration_sec: 0.9, est_sec: 0.1 }, 'SUCCESS'), false, 'less than a second more');
  const running = { status: 'RUNNING', start: new Date(Date.now() - 20000).toISOString(), est_sec: 60 };
  assert.equal(labelOf(running, 'RUNNING'), '20 s of 1 min 00 s');
  assert.equal(isSlow({ ...running, est_sec: 5 }, 'RUNNING'), true);
});

test('what cannot run names what failed above it, however far', () => {
  const model = chain(4);
  model.take([
    { id: 'J0', status: 'FAILED' },
    { id: 'J1', status: 'UPSTREAM_FAILED' },
    { id: 'J2', status: 'UPSTREAM_FAILED' },
  ]);
  assert.equal(causeOf(model, 2), 'Cannot run: J0 failed');
  assert.equal(causeOf(model, 3), '', 'it waits for what will not come, and its state will say so');
  model.take([{ id: 'J2', status: 'RUNNING' }]);
  assert.equal(causeOf(model, 3), 'Waits for J2');
  assert.equal(causeOf(model, 0), '');
});
