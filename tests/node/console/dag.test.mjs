// The picture of a DAG in memory: what is in view, what lies under the pointer, what has changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { Model, stateOf } = await import('../../../src/console/js/dag/model.js');

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
