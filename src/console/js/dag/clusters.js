// From afar a picture is told in a few parts, each with its name, how many jobs it has and how they stand: the jobs of
// a group or a tag where these stand together, or else of some layers.

/** So many jobs are still seen one by one. */
export const MANY = 90;

/** The rectangle around some nodes: [x0, y0, x1, y1]. */
function around(model, nodes) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const i of nodes) {
    const b = i * 4;
    box[0] = Math.min(box[0], model.box[b]);
    box[1] = Math.min(box[1], model.box[b + 1]);
    box[2] = Math.max(box[2], model.box[b] + model.box[b + 2]);
    box[3] = Math.max(box[3], model.box[b + 1] + model.box[b + 3]);
  }
  return box;
}

const area = ([x0, y0, x1, y1]) => (x1 - x0) * (y1 - y0);

/** Parts by a property of nodes; null where these do not stand apart, or are too many or too few. */
function by(model, keyOf, most) {
  const parts = new Map();
  for (let i = 0; i < model.nodes.length; i++) {
    const key = keyOf(model.nodes[i]);
    if (!key) return null;
    if (!parts.has(key)) parts.set(key, []);
    parts.get(key).push(i);
  }
  if (parts.size < 2 || parts.size > most) return null;
  const all = [...parts].map(([key, nodes]) => ({ key, nodes, box: around(model, nodes) }));
  const sum = all.reduce((total, part) => total + area(part.box), 0);
  // Parts that lie across one another would be frames over frames.
  return sum > 1.15 * area([0, 0, model.width, model.height]) ? null : all;
}

/** What nearly all names of a part begin with, or ''. */
function familyOf(model, nodes) {
  const first = model.prefix[nodes[Math.floor(nodes.length / 2)]];
  return first && nodes.filter((i) => model.prefix[i] === first).length >= 0.9 * nodes.length ? first : '';
}

/** Neighbouring layers, so that each part is wide enough to be written on. */
function byLayers(model, most) {
  const layers = 1 + model.nodes.reduce((top, node) => Math.max(top, node.layer ?? 0), 0);
  const count = Math.max(1, Math.min(most, layers));
  const parts = Array.from({ length: count }, () => []);
  model.nodes.forEach((node, i) => parts[Math.floor(((node.layer ?? 0) * count) / layers)].push(i));
  const first = (p) => Math.ceil((p * layers) / count) + 1;
  return parts
    .map((nodes, p) => ({ layers: [first(p), first(p + 1) - 1], nodes }))
    .filter((part) => part.nodes.length)
    .map((part) => ({ ...part, family: familyOf(model, part.nodes), box: around(model, part.nodes) }));
}

/**
 * The parts of a picture, each [{key | layers, nodes, box}]; `most` is how many names fit beside one another.
 * Nothing where there are few jobs.
 */
export function clustersOf(model, most) {
  if (model.nodes.length <= MANY) return [];
  return by(model, (node) => node.group, most) ?? by(model, (node) => node.tags?.[0], most) ?? byLayers(model, most);
}

/** How many jobs of a part have which state, the worst first by `rank`. */
export function countsOf(model, nodes, rank) {
  const counts = new Map();
  for (const i of nodes) {
    const several = model.nodes[i].statuses;
    const all = several ? Object.entries(several) : [[model.states[i], 1]];
    for (const [state, n] of all) counts.set(state, (counts.get(state) ?? 0) + n);
  }
  return [...counts].sort(([a], [b]) => rank(a) - rank(b));
}
