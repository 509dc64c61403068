// Draws a part of a picture. How much of it depends on how near one is: from afar blocks and
// bundled lines, nearer boxes with marks, near names and times.

import { drawMark } from './marks.js';

/** Below this many pixels per unit there are only blocks; below the next no names. */
export const FAR = 0.16;
export const NAMED = 0.42;
/** From so many pixels of height on, and five times that in width, a usual box has room for its code in one line. */
const CODED = 11;

const FONT = '"Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", system-ui, sans-serif';
const cut = new Map();

/** A text that fits a width, cut with an ellipsis; remembered, for measuring is what costs. */
function fitted(g, text, width, font) {
  const key = `${font}|${Math.round(width)}|${text}`;
  const known = cut.get(key);
  if (known !== undefined) return known;
  if (cut.size > 20000) cut.clear();
  g.font = font;
  let fits = text;
  if (g.measureText(text).width > width) {
    let low = 0,
      high = text.length;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (g.measureText(`${text.slice(0, mid)}…`).width <= width) low = mid;
      else high = mid - 1;
    }
    fits = `${text.slice(0, low)}…`;
  }
  cut.set(key, fits);
  return fits;
}

/**
 * Paints what lies in the rectangle of the picture `at` = {x, y, w, h} onto `g`, which is scaled
 * and moved already. `look` = {scale, colours, dim(i), critical, label(i), fontScale}.
 */
export function paint(g, model, at, look) {
  const far = look.scale < FAR;
  const slack = 12 / look.scale;
  const x0 = at.x - slack,
    y0 = at.y - slack,
    x1 = at.x + at.w + slack,
    y1 = at.y + at.h + slack;
  if (far && model.edges.length > 1200) paintBundles(g, model, [x0, y0, x1, y1], look);
  else paintEdges(g, model, model.edgesIn(x0, y0, x1, y1), look);
  const nodes = model.nodesIn(x0, y0, x1, y1);
  if (far) paintBlocks(g, model, nodes, look);
  else paintBoxes(g, model, nodes, look);
}

function paintBundles(g, model, [x0, y0, x1, y1], look) {
  g.strokeStyle = look.colours.bundle;
  const byWidth = new Map();
  for (const line of model.bundles) {
    if (
      Math.max(line.ax, line.bx) < x0 ||
      Math.min(line.ax, line.bx) > x1 ||
      Math.max(line.ay, line.by) < y0 ||
      Math.min(line.ay, line.by) > y1
    )
      continue;
    const wide = Math.min(5, 1 + Math.log2(line.n));
    const key = Math.round(wide * 2) / 2;
    if (!byWidth.has(key)) byWidth.set(key, new Path2D());
    const path = byWidth.get(key);
    path.moveTo(line.ax, line.ay);
    const down = model.direction === 'TB';
    const bend = (down ? line.by - line.ay : line.bx - line.ax) / 2;
    if (down) path.bezierCurveTo(line.ax, line.ay + bend, line.bx, line.by - bend, line.bx, line.by);
    else path.bezierCurveTo(line.ax + bend, line.ay, line.bx - bend, line.by, line.bx, line.by);
  }
  for (const [wide, path] of byWidth) {
    g.globalAlpha = 0.55;
    g.lineWidth = wide / 2 / look.scale;
    g.stroke(path);
  }
  g.globalAlpha = 1;
}

/** How an edge is drawn: by its condition; critical ones above the rest. */
function styleOf(edge, critical) {
  if (critical && edge.critical) return 'critical';
  if (edge.kind === 'external') return 'external';
  return edge.condition === 'success' || !edge.condition ? 'plain' : 'other';
}

function paintEdges(g, model, edges, look) {
  const near = look.scale >= NAMED;
  const paths = { plain: [], other: [], external: [], critical: [] };
  for (const i of edges) {
    const faint = look.dim && look.dim(model.ends[i * 2]) && look.dim(model.ends[i * 2 + 1]);
    const style = styleOf(model.edges[i], look.critical);
    paths[style].push([i, faint]);
  }
  const c = look.colours;
  const shape = {
    plain: [c.line, 1.1, []],
    other: [c.accent, 1.3, [7, 4]],
    external: [c.faint, 1.2, [2, 4]],
    critical: [c.critical, 3, []],
  };
  for (const [style, list] of Object.entries(paths)) {
    if (!list.length) continue;
    const [colour, wide, dash] = shape[style];
    for (const faint of [true, false]) {
      const some = list.filter(([, f]) => Boolean(f) === faint);
      if (!some.length) continue;
      g.globalAlpha = faint ? 0.18 : near || style !== 'plain' ? 1 : 0.6;
      g.strokeStyle = colour;
      g.fillStyle = colour;
      g.lineWidth = Math.max(wide, (style === 'critical' ? 1.8 : 0.6) / look.scale);
      g.setLineDash(dash);
      // Rather many short paths than one long one: a path is flattened and joined as a whole.
      for (let from = 0; from < some.length; from += 150) {
        const path = new Path2D();
        const heads = near ? new Path2D() : null;
        for (const [i] of some.slice(from, from + 150))
          trace(path, heads, model.edges[i].points, style === 'critical' ? 9 : 7);
        g.stroke(path);
        if (heads) g.fill(heads);
      }
    }
  }
  g.setLineDash([]);
  g.globalAlpha = 1;
}

function trace(path, heads, points, size) {
  path.moveTo(points[0][0], points[0][1]);
  for (let p = 1; p < points.length; p++) path.lineTo(points[p][0], points[p][1]);
  if (!heads) return;
  const [bx, by] = points[points.length - 1];
  const [ax, ay] = points[points.length - 2];
  const long = Math.hypot(bx - ax, by - ay) || 1;
  const ux = (bx - ax) / long,
    uy = (by - ay) / long;
  heads.moveTo(bx, by);
  heads.lineTo(bx - ux * size - uy * size * 0.5, by - uy * size + ux * size * 0.5);
  heads.lineTo(bx - ux * size + uy * size * 0.5, by - uy * size - ux * size * 0.5);
  heads.closePath();
}

function paintBlocks(g, model, nodes, look) {
  const byColour = new Map();
  for (const i of nodes) {
    const key = `${look.colours.state[model.states[i]] || look.colours.line}|${look.dim && look.dim(i) ? 0 : 1}`;
    if (!byColour.has(key)) byColour.set(key, []);
    byColour.get(key).push(i);
  }
  // Never less than two pixels high, or a wave of jobs would fade into the paper.
  const least = 2 / look.scale;
  for (const [key, list] of byColour) {
    const [colour, full] = key.split('|');
    g.fillStyle = colour;
    g.globalAlpha = full === '1' ? 1 : 0.2;
    for (const i of list) {
      const b = i * 4;
      g.fillRect(model.box[b], model.box[b + 1], Math.max(model.box[b + 2], least), Math.max(model.box[b + 3], least));
    }
    if (look.critical) paintCritical(g, model, list, look);
  }
  g.globalAlpha = 1;
}

function paintCritical(g, model, list, look) {
  const wide = Math.max(2.5, 1.3 / look.scale);
  g.strokeStyle = look.colours.critical;
  g.lineWidth = wide;
  for (const i of list) {
    if (!model.nodes[i].critical) continue;
    const b = i * 4;
    g.strokeRect(
      model.box[b] - wide / 2,
      model.box[b + 1] - wide / 2,
      model.box[b + 2] + wide,
      model.box[b + 3] + wide,
    );
  }
}

/** States whose box is filled: they are what one looks for first. */
const LOUD = new Set(['RUNNING', 'KILLING', 'FAILED', 'TIMEOUT', 'KILLED', 'UNKNOWN']);

function paintBoxes(g, model, nodes, look) {
  const named = look.scale >= NAMED;
  const coded = model.usual[1] * look.scale >= CODED && model.usual[0] * look.scale >= CODED * 5;
  const c = look.colours;
  for (const i of nodes) {
    const b = i * 4;
    const x = model.box[b],
      y = model.box[b + 1],
      w = model.box[b + 2],
      h = model.box[b + 3];
    const node = model.nodes[i];
    const state = model.states[i];
    const colour = c.state[state] || c.line;
    g.globalAlpha = look.dim && look.dim(i) ? 0.22 : 1;
    g.fillStyle = c.box;
    round(g, x, y, w, h, 6);
    g.fill();
    if (state !== 'NONE') {
      g.save();
      g.globalAlpha *= LOUD.has(state) ? 0.3 : 0.14;
      g.fillStyle = colour;
      g.fill();
      g.restore();
      g.globalAlpha = look.dim && look.dim(i) ? 0.22 : 1;
    }
    g.lineWidth = Math.max(LOUD.has(state) ? 2 : 1.2, 0.8 / look.scale);
    g.strokeStyle = colour;
    g.setLineDash(node.kind === 'external' || state === 'SKIPPED_BRANCH' ? [5, 3] : []);
    g.stroke();
    g.setLineDash([]);
    if (node.kind === 'group' || node.kind === 'tag') {
      round(g, x - 4, y - 4, w + 8, h + 8, 9);
      g.globalAlpha *= 0.6;
      g.stroke();
      g.globalAlpha /= 0.6;
    }
    if (look.critical && node.critical) {
      g.strokeStyle = c.critical;
      g.lineWidth = Math.max(3, 1.6 / look.scale);
      round(g, x - 3, y - 3, w + 6, h + 6, 8);
      g.stroke();
    }
    if (named) paintText(g, node, i, state, x, y, w, h, look, colour);
    else if (coded) paintCode(g, node, state, x, y, w, h, look, colour);
    else {
      const size = Math.min(h * 0.75, w * 0.75);
      if (state !== 'NONE') drawMark(g, state, x + (w - size) / 2, y + (h - size) / 2, size, colour, c.box);
    }
  }
  g.globalAlpha = 1;
}

/** What a box is called: what stands for several has a name that people chose. */
const titleOf = (node) =>
  node.kind === 'group' || node.kind === 'tag'
    ? node.name || node.label || node.id
    : node.label || node.code || node.id;

/** The mark and the code, as large as the box allows: for zooms at which two lines could not be read. */
function paintCode(g, node, state, x, y, w, h, look, colour) {
  const mark = state === 'NONE' ? 0 : h * 0.6;
  if (mark) drawMark(g, state, x + h * 0.16, y + h * 0.2, mark, colour, look.colours.box);
  const left = mark ? mark + h * 0.3 : h * 0.2;
  const room = w - left - h * 0.1;
  const title = titleOf(node);
  // Small and the same everywhere: codes are long, and two sizes would look like two kinds of job.
  const size = Math.min(h * 0.66, 9.5 / look.scale);
  // In steps, so that widths that were measured once can be used again.
  const font = `600 ${Math.round(size * 2) / 2}px ${FONT}`;
  const text = fitted(g, title, room, font);
  g.font = font;
  g.textBaseline = 'middle';
  g.fillStyle = look.colours.ink;
  g.fillText(text, x + left, y + h * 0.53);
}

function paintText(g, node, i, state, x, y, w, h, look, colour) {
  const c = look.colours;
  const side = state === 'NONE' ? 8 : 27;
  if (state !== 'NONE') {
    g.fillStyle = colour;
    round(g, x, y, 22, h, 6);
    g.fill();
    drawMark(g, state, x + 4, y + h / 2 - 7.5, 15, onColour(colour), colour);
  }
  g.fillStyle = c.ink;
  g.textBaseline = 'middle';
  const bold = `600 12px ${FONT}`;
  const code = fitted(g, titleOf(node), w - side - 6, bold);
  g.font = bold;
  g.fillText(code, x + side, y + h * 0.31);
  const plain = `11px ${FONT}`;
  const label = look.label ? look.label(i) : '';
  g.font = plain;
  const room = label ? g.measureText(label).width + 8 : 0;
  const name =
    node.name && node.name !== node.code && node.name !== titleOf(node)
      ? fitted(g, node.name, w - side - 6 - room, plain)
      : '';
  g.font = plain;
  g.fillStyle = c.faint;
  if (name) g.fillText(name, x + side, y + h * 0.71);
  if (label) {
    g.textAlign = 'right';
    g.fillStyle = c.ink;
    g.fillText(label, x + w - 6, y + h * 0.71);
    g.textAlign = 'left';
  }
}

export function round(g, x, y, w, h, r) {
  g.beginPath();
  g.roundRect(x, y, w, h, r);
}

function parts(colour) {
  const hex = colour.replace('#', '');
  const long = hex.length === 3 ? [...hex].map((d) => d + d).join('') : hex;
  return [0, 2, 4].map((at) => parseInt(long.slice(at, at + 2), 16) || 0);
}

/** Black or white, whichever is read better on a colour. */
export function onColour(colour) {
  const [r, g, b] = parts(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#10151a' : '#ffffff';
}
