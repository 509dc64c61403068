// What a picture of a DAG is in memory: arrays by number of node, a grid to find what is in view,
// and the edges as the server has routed them.

import { prefixes } from './names.js';

/** What a box is called: what stands for several has a name that people chose. */
export const titleOf = (node) =>
  node.kind === 'group' || node.kind === 'tag'
    ? node.name || node.label || node.id
    : node.label || node.code || node.id;

/** Side of a cell of the grid, in units of the picture. */
const CELL = 480;

/** The state of a node as the legend has it; `NONE` in a definition, where nothing runs. */
export function stateOf(node) {
  if (!node.status) return 'NONE';
  if (node.status === 'SKIPPED' && node.skip_kind === 'branch') return 'SKIPPED_BRANCH';
  return node.status;
}

class Grid {
  constructor() {
    this.cells = new Map();
    this.stamp = 0;
  }

  key(cx, cy) {
    return cx * 65536 + cy;
  }

  add(item, x0, y0, x1, y1) {
    for (let cx = Math.floor(x0 / CELL); cx <= Math.floor(x1 / CELL); cx++) {
      for (let cy = Math.floor(y0 / CELL); cy <= Math.floor(y1 / CELL); cy++) {
        const key = this.key(cx, cy);
        const cell = this.cells.get(key);
        if (cell) cell.push(item);
        else this.cells.set(key, [item]);
      }
    }
  }

  /** Numbers of what may lie in the rectangle, each once; `seen` is an Int32Array to mark them in. */
  find(x0, y0, x1, y1, seen) {
    const stamp = ++this.stamp;
    const found = [];
    for (let cx = Math.floor(x0 / CELL); cx <= Math.floor(x1 / CELL); cx++) {
      for (let cy = Math.floor(y0 / CELL); cy <= Math.floor(y1 / CELL); cy++) {
        const cell = this.cells.get(this.key(cx, cy));
        if (!cell) continue;
        for (const item of cell) {
          if (seen[item] === stamp) continue;
          seen[item] = stamp;
          found.push(item);
        }
      }
    }
    return found;
  }
}

export class Model {
  /** @param picture the server's `native` document with `layout=layered`. */
  constructor(picture) {
    this.title = picture.batch || '';
    this.direction = (picture.layout && picture.layout.direction) || 'LR';
    // Copies, for an answer of the API may be shown again from its cache.
    this.nodes = picture.nodes.map((node) => ({ ...node }));
    this.edges = picture.edges.map((edge) => ({ ...edge }));
    this.groups = picture.groups || [];
    const titles = this.nodes.map(titleOf);
    /** What the name of each node has in common with many others: written in grey, and left out first. */
    this.prefix = prefixes(titles);
    this.rest = titles.map((title, i) => title.slice(this.prefix[i].length));
    this.index = new Map();
    this.nodes.forEach((node, i) => this.index.set(node.id, i));
    this.states = this.nodes.map(stateOf);
    const n = this.nodes.length;
    this.box = new Float32Array(n * 4);
    this.seenNodes = new Int32Array(n);
    this.seenEdges = new Int32Array(this.edges.length);
    this.nodeGrid = new Grid();
    this.edgeGrid = new Grid();
    this.width = 1;
    this.height = 1;
    this.nodes.forEach((node, i) => this.place(node, i));
    const sides = (at) => this.nodes.reduce((sum, _, i) => sum + this.box[i * 4 + at], 0) / Math.max(1, n);
    /** Width and height of a box, on the average. */
    this.usual = [sides(2), sides(3)];
    this.parents = Array.from({ length: n }, () => []);
    this.children = Array.from({ length: n }, () => []);
    this.ends = new Int32Array(this.edges.length * 2);
    this.edges.forEach((edge, i) => this.route(edge, i));
    this.bundles = this.bundle();
  }

  place(node, i) {
    const { x = 0, y = 0, w = 160, h = 44 } = node;
    this.box.set([x, y, w, h], i * 4);
    this.nodeGrid.add(i, x, y, x + w, y + h);
    this.width = Math.max(this.width, x + w);
    this.height = Math.max(this.height, y + h);
  }

  route(edge, i) {
    const a = this.index.get(edge.source);
    const b = this.index.get(edge.target);
    this.ends[i * 2] = a;
    this.ends[i * 2 + 1] = b;
    this.children[a].push(i);
    this.parents[b].push(i);
    if (!edge.points || edge.points.length < 2) edge.points = [this.middle(a), this.middle(b)];
    let x0 = Infinity,
      y0 = Infinity,
      x1 = -Infinity,
      y1 = -Infinity;
    for (const [x, y] of edge.points) {
      x0 = Math.min(x0, x);
      y0 = Math.min(y0, y);
      x1 = Math.max(x1, x);
      y1 = Math.max(y1, y);
    }
    // By segment, so that an edge across the whole picture does not stand in every cell of its box.
    for (let p = 1; p < edge.points.length; p++) {
      const [ax, ay] = edge.points[p - 1];
      const [bx, by] = edge.points[p];
      const steps = Math.max(1, Math.ceil(Math.max(Math.abs(bx - ax), Math.abs(by - ay)) / CELL));
      for (let s = 0; s < steps; s++) {
        const sx = ax + ((bx - ax) * s) / steps,
          sy = ay + ((by - ay) * s) / steps;
        const ex = ax + ((bx - ax) * (s + 1)) / steps,
          ey = ay + ((by - ay) * (s + 1)) / steps;
        this.addEdge(i, Math.min(sx, ex), Math.min(sy, ey), Math.max(sx, ex), Math.max(sy, ey));
      }
    }
    this.width = Math.max(this.width, x1);
    this.height = Math.max(this.height, y1);
  }

  addEdge(i, x0, y0, x1, y1) {
    this.edgeGrid.add(i, x0 - 2, y0 - 2, x1 + 2, y1 + 2);
  }

  middle(i) {
    const b = this.box.subarray(i * 4, i * 4 + 4);
    return [b[0] + b[2] / 2, b[1] + b[3] / 2];
  }

  /**
   * Edges between the same two patches of the picture as one line with a weight: what is drawn
   * when a line per edge would only be a grey cloth.
   */
  bundle() {
    const patch = 600;
    const lines = new Map();
    for (let i = 0; i < this.edges.length; i++) {
      const [ax, ay] = this.middle(this.ends[i * 2]);
      const [bx, by] = this.middle(this.ends[i * 2 + 1]);
      const key = `${Math.floor(ax / patch)},${Math.floor(ay / patch)},${Math.floor(bx / patch)},${Math.floor(by / patch)}`;
      const line = lines.get(key);
      if (line) {
        line.n += 1;
        line.ax += ax;
        line.ay += ay;
        line.bx += bx;
        line.by += by;
      } else {
        lines.set(key, { n: 1, ax, ay, bx, by });
      }
    }
    return [...lines.values()].map((l) => ({ n: l.n, ax: l.ax / l.n, ay: l.ay / l.n, bx: l.bx / l.n, by: l.by / l.n }));
  }

  nodesIn(x0, y0, x1, y1) {
    return this.nodeGrid.find(x0, y0, x1, y1, this.seenNodes).filter((i) => {
      const b = i * 4;
      return (
        this.box[b] <= x1 &&
        this.box[b] + this.box[b + 2] >= x0 &&
        this.box[b + 1] <= y1 &&
        this.box[b + 1] + this.box[b + 3] >= y0
      );
    });
  }

  edgesIn(x0, y0, x1, y1) {
    return this.edgeGrid.find(x0, y0, x1, y1, this.seenEdges);
  }

  nodeAt(x, y) {
    const hit = this.nodesIn(x, y, x, y);
    return hit.length ? hit[0] : -1;
  }

  /** The edge that passes within `slack` of a point, or -1. */
  edgeAt(x, y, slack) {
    let best = -1,
      bestD = slack * slack;
    for (const i of this.edgesIn(x - slack, y - slack, x + slack, y + slack)) {
      const pts = this.edges[i].points;
      for (let p = 1; p < pts.length; p++) {
        const d = distance(x, y, pts[p - 1], pts[p]);
        if (d < bestD) {
          bestD = d;
          best = i;
        }
      }
    }
    return best;
  }

  /** Takes over what has changed of the nodes; gives the numbers of those that look different now. */
  take(facts) {
    const changed = [];
    for (const fact of facts) {
      const i = this.index.get(fact.id ?? fact.code);
      if (i === undefined) continue;
      const node = this.nodes[i];
      let differs = false;
      for (const key of [
        'status',
        'skip_kind',
        'attempt',
        'start',
        'end',
        'duration_sec',
        'est_sec',
        'est_assumed',
        'slack_sec',
        'critical',
        'eta_start',
        'eta_end',
        'statuses',
        'jobs',
      ]) {
        if (key in fact && node[key] !== fact[key]) {
          node[key] = fact[key];
          differs = true;
        }
      }
      if (!differs) continue;
      this.states[i] = stateOf(node);
      changed.push(i);
    }
    return changed;
  }

  /** How many nodes have which state. */
  counts() {
    const counts = {};
    this.states.forEach((s, i) => {
      const several = this.nodes[i].statuses;
      if (several) for (const [k, v] of Object.entries(several)) counts[k] = (counts[k] || 0) + v;
      else counts[s] = (counts[s] || 0) + 1;
    });
    return counts;
  }

  /** Numbers of nodes whose code, name or tag has the words. */
  search(words) {
    const wanted = words.trim().toLowerCase();
    if (!wanted) return [];
    const hits = [];
    this.nodes.forEach((node, i) => {
      const text = `${node.code || node.id} ${node.name || ''} ${(node.tags || []).join(' ')}`.toLowerCase();
      if (text.includes(wanted)) hits.push(i);
    });
    return hits;
  }
}

function distance(x, y, [ax, ay], [bx, by]) {
  const dx = bx - ax,
    dy = by - ay;
  const along = dx || dy ? Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy))) : 0;
  const ex = x - ax - dx * along,
    ey = y - ay - dy * along;
  return ex * ex + ey * ey;
}
