// Where the boxes stand in a window of this shape. The server has put the jobs in layers and ordered each so that
// few arrows cross; here the boxes get the sizes and the directions with which most can be read when all are seen.

/** Ways of drawing a box, the roomiest first: its height and least width, gaps between boxes and layers. */
const STYLES = [
  { name: 'rich', high: 40, least: 176, gap: 10, between: 34 },
  { name: 'plain', high: 24, least: 64, gap: 7, between: 26 },
  { name: 'tight', high: 17, least: 56, gap: 3, between: 20 },
];
const CAPS = [270, 215, 180, 155, 135, 120, 105];
/** Room in a box beside its name: the mark at the left and air at the right. */
export const BESIDE = 34;
const FONT = 12;
const MARGIN = 14;
const WAY = 5;
const SWEEPS = 12;
/** Arrows from top to bottom are short: rows stand closer than columns. */
const DOWN = 0.75;
/** Room for arrows to bend between two columns, by how many boxes and arrows there are. */
const bend = (n) => Math.min(12, n * 0.6);

/**
 * The layers of a picture that the server has laid out from left to right: `{node}` and the steps of long arrows,
 * `{edge, step}`, in the order in which they stand.
 */
export function layersOf(picture) {
  const xs = [...new Set(picture.nodes.map((n) => n.x))].sort((a, b) => a - b);
  const rank = new Map(xs.map((x, i) => [x, i]));
  const layers = xs.map(() => []);
  const at = new Map();
  picture.nodes.forEach((node, i) => {
    at.set(node.id, i);
    layers[rank.get(node.x)].push({ node: i, y: node.y + node.h / 2 });
  });
  picture.edges.forEach((edge, i) => {
    const points = edge.points ?? [];
    for (let p = 1; p + 1 < points.length; p += 2) {
      const r = rank.get(points[p][0]);
      if (r !== undefined) layers[r].push({ edge: i, y: points[p][1] });
    }
  });
  layers.forEach((layer) => layer.sort((a, b) => a.y - b.y));
  return { layers, at };
}

/** How wide a box is whose name is so wide. */
const boxWide = (wide, cap, style) => Math.max(style.least, Math.min(cap, wide + BESIDE));

/** How much of its name a box of this width shows, on the average. */
function share(widths, cap, lines) {
  let sum = 0;
  for (const w of widths) sum += Math.min(1, ((cap - BESIDE) * lines) / Math.max(1, w));
  return sum / Math.max(1, widths.length);
}

/** How well a picture can be read at a zoom: by the size of its letters, and by how much of the names there is. */
function worth(scale, shown, style, isDown) {
  const font = FONT * Math.min(1, scale);
  const size = font >= 8 ? 0.6 + Math.min(0.4, (font - 8) / 10) : (font / 8) * 0.5;
  const details = style.name === 'rich' && font >= 8.5 ? 0.08 : 0;
  return size * (0.35 + 0.65 * shown) + details - (isDown ? 0.01 : 0);
}

/**
 * What is lost where layers are wrapped: arrows go behind boxes. In a layer of hundreds nobody follows an arrow
 * anyway, and there nothing counts but its shape.
 */
function hidden(shape, rows) {
  let all = 0,
    behind = 0;
  for (const layer of shape) {
    all += layer.nodes;
    if (layer.nodes > rows && layer.nodes <= 60) behind += layer.nodes;
  }
  return behind ? 0.08 + (0.14 * behind) / all : 0;
}

/** How wide and how high a plan is, along the arrows and across them. */
function extent(shape, plan) {
  const { style, rows, isDown } = plan;
  let along = 0,
    across = 0;
  for (const layer of shape) {
    const columns = Math.ceil(layer.nodes / rows);
    const wide = boxWide(layer.widest, plan.cap, style);
    const room = layer.steps && columns === 1 ? layer.steps * WAY : 0;
    const perRow = Math.ceil(layer.nodes / columns);
    if (isDown) {
      along += columns * style.high + (columns - 1) * style.gap + style.between * DOWN;
      const all = columns === 1 ? layer.sum(plan.cap, style) + layer.nodes * style.gap : perRow * (wide + style.gap);
      across = Math.max(across, all + room);
    } else {
      along += columns * wide + (columns - 1) * 8 + style.between + bend(layer.starts);
      across = Math.max(across, perRow * (style.high + style.gap) + room);
    }
  }
  return { along, across };
}

/** The plan that can be read best in the window; `widths` are those of the names in letters of 12 pixels. */
export function choosePlan(layered, widths, { w, h, direction = 'auto' }) {
  const shape = layered.layers.map((layer) => {
    const own = layer.filter((v) => v.node !== undefined).map((v) => widths[v.node]);
    const sums = new Map();
    return {
      nodes: own.length,
      steps: layer.length - own.length,
      starts: layer.length,
      widest: Math.max(0, ...own),
      sum(cap, style) {
        const key = `${cap} ${style.name}`;
        if (!sums.has(key))
          sums.set(
            key,
            own.reduce((all, wide) => all + boxWide(wide, cap, style), 0),
          );
        return sums.get(key);
      },
    };
  });
  const most = Math.max(1, ...shape.map((s) => s.nodes));
  const parts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].filter((k) => k === 1 || most / k >= 2);
  let best = null;
  for (const style of STYLES)
    for (const cap of CAPS) {
      if (cap < style.least) continue;
      const lines = style.name === 'rich' ? 1.7 : 1;
      const shown = share(widths, cap, lines);
      for (const isDown of [false, true]) {
        if (direction !== 'auto' && (direction === 'TB') !== isDown) continue;
        for (const k of parts) {
          const plan = { style, cap, isDown, rows: Math.ceil(most / k) };
          const { along, across } = extent(shape, plan);
          const [wide, high] = isDown ? [across, along] : [along, across];
          const scale = Math.min((w - 2 * MARGIN) / wide, (h - 2 * MARGIN) / high);
          const value = worth(scale, shown, style, isDown) - hidden(shape, plan.rows);
          if (!best || value > best.value + 1e-9) best = { ...plan, value, scale, along, across };
        }
      }
    }
  return best;
}

/** Puts vertices of a layer as near as can be to where they want to be, in their order, between 0 and `far`. */
function settle(layer, sizes, gaps, wishes, far, at) {
  const offsets = [];
  let sum = 0;
  layer.forEach((v, i) => {
    if (i) sum += sizes[layer[i - 1]] / 2 + sizes[v] / 2 + gaps(layer[i - 1], v);
    offsets.push(sum);
  });
  // Neighbours that want the same place form blocks; one pass finds the least sum of squares.
  const blocks = [];
  layer.forEach((v, i) => {
    const [wish, weight] = wishes(v);
    let block = [weight, weight * (wish - offsets[i]), 1];
    while (blocks.length && blocks.at(-1)[1] / blocks.at(-1)[0] > block[1] / block[0]) {
      const last = blocks.pop();
      block = [block[0] + last[0], block[1] + last[1], block[2] + last[2]];
    }
    blocks.push(block);
  });
  const lowest = sizes[layer[0]] / 2;
  const highest = Math.max(lowest, far - sum - sizes[layer.at(-1)] / 2);
  let i = 0;
  for (const [weight, total, count] of blocks) {
    const place = Math.min(highest, Math.max(lowest, total / weight));
    for (let k = 0; k < count; k++, i++) at[layer[i]] = place + offsets[i];
  }
}

/** Vertices of all layers with their neighbours before and after. */
function net(picture, layered, plan) {
  const { layers, at } = layered;
  const count = picture.nodes.length;
  const chain = picture.edges.map((edge) => [at.get(edge.source)]);
  const order = [];
  const wrapped = [];
  const edgeOf = [];
  let next = count;
  layers.forEach((layer, r) => {
    const own = layer.filter((v) => v.node !== undefined);
    wrapped[r] = own.length > plan.rows;
    // An arrow that passes a block of boxes goes behind it.
    order[r] = (wrapped[r] ? own : layer).map((v) => {
      if (v.node !== undefined) return v.node;
      edgeOf[next] = r;
      chain[v.edge].push(next);
      return next++;
    });
  });
  const near = Array.from({ length: next }, () => [[], []]);
  picture.edges.forEach((edge, i) => {
    chain[i].push(at.get(edge.target));
    for (let k = 1; k < chain[i].length; k++) {
      near[chain[i][k - 1]][1].push(chain[i][k]);
      near[chain[i][k]][0].push(chain[i][k - 1]);
    }
  });
  return { order, wrapped, chain, near, count, size: next, rankOfStep: edgeOf };
}

/** The places across the layers; layers that are wrapped stand in the middle. */
function acrossOf(graph, plan, sizes, far) {
  const { order, wrapped, near, count } = graph;
  const isNode = (v) => v < count;
  const gaps = (a, b) => (isNode(a) && isNode(b) ? plan.style.gap : WAY);
  const at = new Float64Array(graph.size);
  order.forEach((layer, r) => {
    const columns = wrapped[r] ? Math.ceil(layer.length / plan.rows) : 1;
    if (columns > 1) {
      const step = Math.max(...layer.map((v) => sizes[v])) + plan.style.gap;
      const rows = Math.ceil(layer.length / columns);
      layer.forEach((v, i) => {
        at[v] = far / 2 + (Math.floor(i / columns) - (rows - 1) / 2) * step;
      });
      return;
    }
    const total = layer.reduce((sum, v) => sum + sizes[v] + plan.style.gap, 0);
    let y = far / 2 - total / 2;
    for (const v of layer) {
      at[v] = y + sizes[v] / 2;
      y += sizes[v] + plan.style.gap;
    }
  });
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    const sides = sweep + 4 >= SWEEPS ? [0, 1] : [isForward ? 0 : 1];
    const wishes = (v) => {
      let weight = 0,
        sum = 0;
      for (const side of sides)
        for (const other of near[v][side]) {
          // The steps of a long arrow first in line with one another: a straight arrow is read at a glance.
          const pull = isNode(v) && isNode(other) ? 1 : isNode(v) || isNode(other) ? 2 : 8;
          weight += pull;
          sum += pull * at[other];
        }
      return weight ? [sum / weight, weight] : [at[v], 0.05];
    };
    for (let step = 0; step < order.length; step++) {
      const r = isForward ? step : order.length - 1 - step;
      if (!wrapped[r]) settle(order[r], sizes, gaps, wishes, far, at);
    }
  }
  return at;
}

/** From where to where each layer reaches along the arrows, and the columns of those that are wrapped. */
function columnsOf(graph, plan, wide) {
  let x = MARGIN;
  return graph.order.map((layer, r) => {
    const own = layer.filter((v) => v < graph.count);
    const deep = plan.isDown ? plan.style.high : Math.max(...own.map((v) => wide[v]));
    const columns = graph.wrapped[r] ? Math.ceil(own.length / plan.rows) : 1;
    const gap = plan.isDown ? plan.style.gap : 8;
    const from = x;
    const to = from + columns * deep + (columns - 1) * gap;
    x = to + (plan.isDown ? plan.style.between * DOWN : plan.style.between + bend(layer.length));
    return { from, to, deep, columns, gap };
  });
}

/** Where the ends of arrows stand off the middle of a box, in the order of where they go. */
function ports(graph, edges, at, sizes, side) {
  const ends = new Map();
  edges.forEach((_, i) => {
    const chain = graph.chain[i];
    const here = side ? chain[0] : chain.at(-1);
    if (!ends.has(here)) ends.set(here, []);
    ends.get(here).push([at[side ? chain[1] : chain.at(-2)], i]);
  });
  const offsets = new Float64Array(edges.length);
  for (const [here, list] of ends) {
    list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const step = Math.min(6, (sizes[here] * 0.6) / list.length);
    list.forEach(([, i], n) => (offsets[i] = (n - (list.length - 1) / 2) * step));
  }
  return offsets;
}

/** In a picture that is as high as the window, what is left beside it makes its columns wider: names grow into it. */
function widen(columns, graph, plan, full, { w }) {
  if (plan.isDown) return;
  let spare = (w - 2 * MARGIN) / plan.scale - (columns.at(-1).to - MARGIN);
  if (spare <= 0) return;
  const wants = graph.order.map((layer, r) => {
    const most = Math.max(...layer.filter((v) => v < graph.count).map((v) => full[v]));
    return Math.max(0, Math.min(340, most + BESIDE) - columns[r].deep) * columns[r].columns;
  });
  const all = wants.reduce((sum, want) => sum + want, 0);
  const given = Math.min(spare, all);
  spare = Math.min(spare - given, 70 * columns.length);
  let moved = 0;
  columns.forEach((c, r) => {
    const more = all ? (wants[r] * given) / all : 0;
    c.from += moved;
    c.deep += more / c.columns;
    moved += more;
    c.to += moved;
    moved += spare / columns.length;
  });
}

/**
 * The picture with its boxes and arrows where they are read best in a window of `w` by `h`; `widths` are those of the
 * names without what they have in common, `full` those of whole names. The server's picture is not changed.
 */
export function arrange(picture, widths, full, window_) {
  if (!picture.nodes.length) return { ...picture, plan: null };
  const layered = layersOf(picture);
  const plan = choosePlan(layered, widths, window_);
  const graph = net(picture, layered, plan);
  const wide = widths.map((w) => boxWide(w, plan.cap, plan.style));
  const columns = columnsOf(graph, plan, wide);
  widen(columns, graph, plan, full, window_);
  // In a column all boxes are as wide as the widest; in a row each is as wide as its name.
  graph.order.forEach((layer, r) => {
    for (const v of layer) if (v < graph.count && (!plan.isDown || graph.wrapped[r])) wide[v] = columns[r].deep;
    if (plan.isDown && graph.wrapped[r]) {
      const most = Math.max(...layer.map((v) => boxWide(widths[v], plan.cap, plan.style)));
      for (const v of layer) wide[v] = most;
    }
  });
  const sizes = Array.from({ length: graph.size }, (_, v) =>
    v < graph.count ? (plan.isDown ? wide[v] : plan.style.high) : 0,
  );
  const far = roomAcross(graph, plan, sizes, columns, window_);
  const at = acrossOf(graph, plan, sizes, far);
  return placed(picture, { graph, plan, wide, columns, sizes, at });
}

/** As far as the fullest layer needs; where the window has more room across, some of that. */
function roomAcross(graph, plan, sizes, columns, { w, h }) {
  const needs = graph.order.map((layer, r) => {
    const all = layer.reduce((sum, v) => sum + sizes[v] + (v < graph.count ? plan.style.gap : WAY), 0);
    return graph.wrapped[r] ? all / columns[r].columns + sizes[layer[0]] + plan.style.gap : all;
  });
  const need = Math.max(...needs);
  const along = columns.at(-1).to + MARGIN;
  const free = plan.isDown ? (along * w) / h : (along * h) / w;
  return Math.max(need, Math.min(free - 2 * MARGIN, need * 1.5));
}

function placed(picture, { graph, plan, wide, columns, sizes, at }) {
  const turn = (along, across) => (plan.isDown ? [across, along] : [along, across]);
  const along = [];
  const layer = [];
  graph.order.forEach((all, r) => {
    const c = columns[r];
    all.forEach((v, i) => {
      layer[v] = r;
      along[v] = c.from + (c.columns > 1 ? (i % c.columns) * (c.deep + c.gap) : 0);
    });
  });
  const ends = (v) => (v < graph.count ? (plan.isDown ? plan.style.high : wide[v]) : 0);
  const nodes = picture.nodes.map((node, v) => {
    const [x, y] = turn(along[v], at[v] - sizes[v] / 2 + MARGIN);
    return { ...node, x, y, w: wide[v], h: plan.style.high, layer: layer[v] };
  });
  const leaving = ports(graph, picture.edges, at, sizes, true);
  const coming = ports(graph, picture.edges, at, sizes, false);
  const edges = picture.edges.map((edge, i) => {
    const chain = graph.chain[i];
    const [first, last] = [chain[0], chain.at(-1)];
    const points = [turn(along[first] + ends(first), at[first] + leaving[i] + MARGIN)];
    for (const step of chain.slice(1, -1)) {
      const c = columns[graph.rankOfStep[step]];
      points.push(turn(c.from, at[step] + MARGIN), turn(c.to, at[step] + MARGIN));
    }
    points.push(turn(along[last], at[last] + coming[i] + MARGIN));
    return { ...edge, points };
  });
  return {
    ...picture,
    nodes,
    edges,
    layout: { ...picture.layout, direction: plan.isDown ? 'TB' : 'LR' },
    plan: { style: plan.style.name, scale: plan.scale, isDown: plan.isDown, columns: columns.map((c) => c.columns) },
  };
}
