// Where boxes stand in a window: they never touch, they can be read, and wide layers are wrapped.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { arrange } = await import('../../../src/console/js/dag/arrange.js');
const { Model } = await import('../../../src/console/js/dag/model.js');
const { clustersOf, countsOf } = await import('../../../src/console/js/dag/clusters.js');

/** A picture as the server gives it: layers of so many jobs, each waiting for one or two of the layer above. */
function picture(layers, more = {}) {
  const nodes = [];
  const edges = [];
  layers.forEach((n, r) => {
    for (let i = 0; i < n; i++) {
      const id = `J${r}_${i}`;
      nodes.push({ id, code: id, x: r * 300, y: i * 80, w: 200, h: 60, status: 'SUCCESS', ...more });
      const above = layers[r - 1];
      if (!above) continue;
      for (const p of new Set([i % above, (i * 7 + 1) % above]))
        edges.push({
          source: `J${r - 1}_${p}`,
          target: id,
          points: [
            [(r - 1) * 300 + 200, p * 80 + 30],
            [r * 300, i * 80 + 30],
          ],
        });
    }
  });
  return { nodes, edges, layout: { direction: 'LR' } };
}

const widths = (made, wide) => made.nodes.map(() => wide);
const arranged = (made, shape, wide = 90) => arrange(made, widths(made, wide), widths(made, wide * 1.4), shape);

function overlaps({ nodes }) {
  const found = [];
  nodes.forEach((a, i) => {
    for (const b of nodes.slice(i + 1))
      if (a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h) found.push(`${a.id} ${b.id}`);
  });
  return found;
}

/** Zoom at which all is seen. */
function fit({ nodes }, { w, h }) {
  const far = (at, size) => Math.max(...nodes.map((n) => n[at] + n[size]));
  return Math.min(w / far('x', 'w'), h / far('y', 'h'));
}

test('boxes never touch, whichever way the arrows run', () => {
  for (const layers of [[1, 7, 3, 1, 1, 3, 1], [23, 22, 8, 8, 6, 1, 2], [1], [1, 300, 1], Array(40).fill(5)])
    for (const direction of ['auto', 'LR', 'TB']) {
      const made = arranged(picture(layers), { w: 1100, h: 460, direction });
      assert.deepEqual(overlaps(made), [], `${layers.slice(0, 7)} ${direction}`);
    }
});

test('arrows run forwards, from border to border', () => {
  const made = arranged(picture([23, 22, 8, 8, 6, 1, 2]), { w: 1100, h: 460, direction: 'LR' });
  const at = new Map(made.nodes.map((n) => [n.id, n]));
  for (const { source, target, points } of made.edges) {
    const [a, b] = [at.get(source), at.get(target)];
    assert.equal(points[0][0], a.x + a.w);
    assert.equal(points.at(-1)[0], b.x);
    points.slice(1).forEach((p, i) => assert.ok(p[0] >= points[i][0], `${source} ${target}`));
  }
});

test('24 and 70 jobs can be read when all are seen', () => {
  const window_ = { w: 1100, h: 460, direction: 'auto' };
  const close = [1, 1, 7, 3, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1];
  for (const layers of [close, [23, 22, 8, 8, 6, 1, 2]]) {
    const scale = fit(arranged(picture(layers), window_), window_);
    assert.ok(12 * scale >= 8.5, `letters of ${(12 * scale).toFixed(1)} pixels`);
  }
});

test('the direction follows the shape of the window', () => {
  const close = picture([1, 1, 7, 3, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1]);
  assert.equal(arranged(close, { w: 360, h: 900, direction: 'auto' }).layout.direction, 'TB');
  assert.equal(arranged(picture([11, 11, 11]), { w: 700, h: 300, direction: 'auto' }).layout.direction, 'LR');
  assert.equal(arranged(close, { w: 360, h: 900, direction: 'LR' }).layout.direction, 'LR');
});

test('a wave of 1,890 jobs is wrapped into the shape of the window', () => {
  const window_ = { w: 1100, h: 460, direction: 'auto' };
  const made = arranged(picture([1, 1890, 1]), window_);
  const wide = Math.max(...made.nodes.map((n) => n.x + n.w));
  const high = Math.max(...made.nodes.map((n) => n.y + n.h));
  const shape = wide / high / (window_.w / window_.h);
  assert.ok(shape > 0.5 && shape < 2, `${wide} by ${high}`);
});

test('the picture of the server is not changed', () => {
  const made = picture([2, 3]);
  const before = JSON.stringify(made);
  arranged(made, { w: 900, h: 400 });
  assert.equal(JSON.stringify(made), before);
});

test('from afar a picture has a few parts that hold every job once', () => {
  const made = arranged(picture(Array(40).fill(50)), { w: 1100, h: 460 });
  const model = new Model(made);
  const parts = clustersOf(model, 8);
  assert.ok(parts.length > 1 && parts.length <= 8);
  assert.equal(new Set(parts.flatMap((part) => part.nodes)).size, 2000);
  assert.equal(parts[0].layers[0], 1);
  assert.equal(parts.at(-1).layers[1], 40);
  model.states[parts[0].nodes[3]] = 'FAILED';
  const rank = (state) => (state === 'FAILED' ? 0 : 1);
  assert.deepEqual(countsOf(model, parts[0].nodes, rank)[0], ['FAILED', 1]);
});

test('tags are parts where they stand apart, and few jobs have none', () => {
  const tagged = picture([60, 60]);
  tagged.nodes.forEach((node) => (node.tags = [node.id.startsWith('J0') ? 'load' : 'post']));
  const model = new Model(arranged(tagged, { w: 1100, h: 460 }));
  assert.deepEqual(
    clustersOf(model, 6).map((part) => part.key),
    ['load', 'post'],
  );
  assert.deepEqual(clustersOf(new Model(arranged(picture([3, 3]), { w: 1100, h: 460 })), 6), []);
});
