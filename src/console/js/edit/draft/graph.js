// The jobs of a draft as a graph: who waits for whom, circles, and layers for the picture. Nothing of it is stored.

/** `{nodes, edges, unknown}`: jobs with those that they wait for; `unknown` are names without a job. */
export function graphOf(jobs) {
  const codes = new Set(jobs.map((job) => job.code));
  const unknown = [];
  const edges = new Map();
  for (const job of jobs)
    for (const parent of job.parents) {
      if (parent.outside || parent.code === job.code) continue;
      if (!codes.has(parent.code)) unknown.push({ job: job.code, parent: parent.code });
      else edges.set(`${parent.code}\n${job.code}`, { source: parent.code, target: job.code, when: parent.when });
    }
  const nodes = jobs.map(({ code, fields }) => ({
    id: code,
    code,
    name: fields.name === undefined || fields.name === null ? '' : String(fields.name),
    kind: 'job',
    tags: Array.isArray(fields.tags) ? fields.tags.map(String) : [],
  }));
  return { nodes, edges: [...edges.values()], unknown };
}

/** Whether `code` waits for `other`, directly or not. */
export function waitsFor(jobs, code, other) {
  const byCode = new Map(jobs.map((job) => [job.code, job]));
  const seen = new Set();
  const open = [code];
  while (open.length) {
    const next = open.pop();
    if (next === other) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    for (const parent of byCode.get(next)?.parents ?? []) if (!parent.outside) open.push(parent.code);
  }
  return false;
}

/** The layer of each node: behind all that it waits for. In a circle, which a check refuses, the first comes first. */
export function ranksOf({ nodes, edges }) {
  const parents = new Map(nodes.map((node) => [node.id, []]));
  edges.forEach((edge) => parents.get(edge.target).push(edge.source));
  const ranks = new Map();
  const open = new Set();
  const visit = (id) => {
    if (ranks.has(id)) return ranks.get(id);
    if (open.has(id)) return -1;
    open.add(id);
    const rank = Math.max(-1, ...parents.get(id).map(visit)) + 1;
    open.delete(id);
    ranks.set(id, rank);
    return rank;
  };
  nodes.forEach((node) => visit(node.id));
  return ranks;
}

const HIGH = 40;
const STEP = 60;
const SWEEPS = 8;

/** The graph as the server would lay it out from left to right: layers in an order in which few arrows cross. */
export function layered(graph) {
  const ranks = ranksOf(graph);
  // An arrow of a circle that runs backwards is left out of the picture; the check names it.
  const edges = graph.edges.filter((edge) => ranks.get(edge.source) < ranks.get(edge.target));
  const layers = [];
  const put = (rank, vertex) => (layers[rank] ??= []).push(vertex);
  const near = new Map();
  const link = (a, b) => {
    for (const [x, y, side] of [
      [a, b, 1],
      [b, a, 0],
    ]) {
      if (!near.has(x)) near.set(x, [[], []]);
      near.get(x)[side].push(y);
    }
  };
  graph.nodes.forEach((node) => put(ranks.get(node.id), node.id));
  const chains = edges.map((edge, i) => {
    const chain = [edge.source];
    for (let rank = ranks.get(edge.source) + 1; rank < ranks.get(edge.target); rank++) {
      const step = `\n${i}:${rank}`;
      put(rank, step);
      chain.push(step);
    }
    chain.push(edge.target);
    chain.slice(1).forEach((vertex, k) => link(chain[k], vertex));
    return chain;
  });
  const place = new Map();
  const number = (layer) => layer.forEach((vertex, i) => place.set(vertex, i - layer.length / 2));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2;
    for (const layer of side ? [...layers].reverse() : layers) {
      const want = new Map(
        layer.map((vertex) => {
          const others = near.get(vertex)?.[side] ?? [];
          const sum = others.reduce((all, other) => all + place.get(other), 0);
          return [vertex, others.length ? sum / others.length : place.get(vertex)];
        }),
      );
      layer.sort((a, b) => want.get(a) - want.get(b));
      number(layer);
    }
  }
  const x = (rank) => rank * 300;
  const y = (vertex) => (place.get(vertex) + 5000) * STEP;
  const nodes = graph.nodes.map((node) => {
    const rank = ranks.get(node.id);
    return { ...node, level: rank, x: x(rank), y: y(node.id), w: 176, h: HIGH };
  });
  const routed = edges.map((edge, i) => {
    const from = ranks.get(edge.source);
    const points = [[x(from) + 176, y(edge.source) + HIGH / 2]];
    chains[i].slice(1, -1).forEach((step, k) => {
      const at = x(from + k + 1);
      points.push([at, y(step) + HIGH / 2], [at + 176, y(step) + HIGH / 2]);
    });
    points.push([x(ranks.get(edge.target)), y(edge.target) + HIGH / 2]);
    return { ...edge, points };
  });
  return { nodes, edges: routed, layout: { direction: 'LR' } };
}
