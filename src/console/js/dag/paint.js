// Draws a part of a picture. How much of it depends on how near one is: from afar blocks and
// bundled lines, nearer boxes with marks, near names and times.

import { drawMark, hatch } from './marks.js';
import { fitParts, twoLines } from './names.js';

/** Boxes of fewer pixels in height are blocks of colour; a line of text needs the next, name and facts the last. */
const BLOCK = 7.5;
const LINE = 9;
const TWO = 30;
/** The smallest letters that are written, and the usual ones, in pixels. */
const SMALLEST = 7;
const SMALL = 9.5;

/** Whether one is so far away that boxes are only colours. */
export const isFar = (model, scale) => model.usual[1] * scale < BLOCK;

const FONT = '"Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", system-ui, sans-serif';
const cut = new Map();
let pen;

/** How wide a text is in a font of so many pixels. */
export function measure(text, size = 12, weight = 600) {
  pen ??= document.createElement('canvas').getContext('2d');
  pen.font = `${weight} ${size}px ${FONT}`;
  return pen.measureText(text).width;
}

/** What `make` gives, remembered by `key`: measuring is what costs. */
function kept(key, make) {
  const known = cut.get(key);
  if (known !== undefined) return known;
  if (cut.size > 30000) cut.clear();
  const made = make();
  cut.set(key, made);
  return made;
}

/**
 * Paints what lies in the rectangle of the picture `at` = {x, y, w, h} onto `g`, which is scaled
 * and moved already. `look` = {scale, colours, dim(i), critical, label(i), fontScale}.
 */
export function paint(g, model, at, look) {
  const far = isFar(model, look.scale);
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
  const near = model.usual[1] * look.scale >= LINE;
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
    const state = model.states[i];
    const fill = state === 'UPSTREAM_FAILED' ? 'hatch' : look.colours.state[state] || look.colours.line;
    const key = `${fill}|${look.dim && look.dim(i) ? 0 : 1}`;
    if (!byColour.has(key)) byColour.set(key, []);
    byColour.get(key).push(i);
  }
  // Never less than two pixels high, or a wave of jobs would fade into the paper.
  const least = 2 / look.scale;
  for (const [key, list] of byColour) {
    const [colour, full] = key.split('|');
    // What could not run is striped: it differs from what failed without any colour too.
    g.fillStyle = colour === 'hatch' ? hatch(g, look.colours, look.scale) : colour;
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
  const c = look.colours;
  for (const i of nodes) {
    const b = i * 4;
    const [x, y, w, h] = model.box.subarray(b, b + 4);
    const node = model.nodes[i];
    const state = model.states[i];
    const colour = c.state[state] || c.line;
    const isDim = look.dim && look.dim(i);
    const radius = Math.min(6, h / 4);
    g.globalAlpha = isDim ? 0.22 : 1;
    g.fillStyle = c.box;
    round(g, x, y, w, h, radius);
    g.fill();
    if (state !== 'NONE') {
      g.save();
      g.globalAlpha *= LOUD.has(state) ? 0.3 : 0.14;
      g.fillStyle = state === 'UPSTREAM_FAILED' ? hatch(g, c, look.scale) : colour;
      if (state === 'UPSTREAM_FAILED') g.globalAlpha = isDim ? 0.15 : 0.5;
      g.fill();
      g.restore();
      g.globalAlpha = isDim ? 0.22 : 1;
    }
    g.lineWidth = Math.max(LOUD.has(state) ? 2 : 1.2, 0.8 / look.scale);
    g.strokeStyle = colour;
    g.setLineDash(node.kind === 'external' || state === 'SKIPPED_BRANCH' ? [5, 3] : []);
    g.stroke();
    g.setLineDash([]);
    if (node.kind === 'group' || node.kind === 'tag') {
      round(g, x - 3, y - 3, w + 6, h + 6, 9);
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
    paintText(g, model, i, look, colour);
  }
  g.globalAlpha = 1;
}

/** The mark, the name, and where there is room for a second line how long it took. */
function paintText(g, model, i, look, colour) {
  const b = i * 4;
  const [x, y, w, h] = model.box.subarray(b, b + 4);
  const state = model.states[i];
  const high = h * look.scale;
  const isTwo = high >= TWO;
  let side = 6;
  if (state !== 'NONE') {
    const size = Math.min(15, h * 0.62);
    side = size + h * 0.16 + 5;
    if (isTwo) {
      g.fillStyle = colour;
      round(g, x, y, size + 6, h, Math.min(6, h / 4));
      g.fill();
      drawMark(g, state, x + 3, y + (h - size) / 2, size, onColour(colour), colour);
      side = size + 11;
    } else if (high < LINE) {
      drawMark(g, state, x + (w - size) / 2, y + (h - size) / 2, size, colour, look.colours.box);
      return;
    } else drawMark(g, state, x + h * 0.16, y + (h - size) / 2, size, colour, look.colours.box);
  }
  if (high < LINE) return;
  g.textBaseline = 'middle';
  const room = w - side - 4;
  if (isTwo && 12 * look.scale >= SMALLEST) {
    const fits = sizeFor(model.rest[i], room, 12, Math.min(12, 11 / look.scale));
    nameLine(g, model, i, { x: x + side, y: y + h * 0.31, room, size: fits }, look.colours);
    factsLine(g, model, i, { x: x + side, y: y + h * 0.73, room }, look);
    return;
  }
  // As large as the box allows, and not larger than it is read at a glance.
  const size = Math.max(Math.min(h * 0.74, Math.max(12, SMALL / look.scale)), SMALLEST / look.scale);
  const step = Math.round(Math.min(size, h * 0.9) * 2) / 2;
  const name = model.rest[i];
  const lines =
    high >= 2 * SMALL + 3
      ? kept(`2|${Math.round(room)}|${step}|${name}`, () => twoLines(name, room, (text) => measure(text, step)))
      : [];
  if (lines.length === 2 && step * 2.1 <= h) {
    g.font = `600 ${step}px ${FONT}`;
    g.fillStyle = look.colours.ink;
    lines.forEach((line, n) => g.fillText(line, x + side, y + h / 2 + (n - 0.5) * step * 1.08));
  } else {
    const fits = sizeFor(name, room, step, Math.min(step, SMALL / look.scale));
    nameLine(g, model, i, { x: x + side, y: y + h * 0.53, room, size: fits }, look.colours);
  }
}

/** Letters in which a name fits into its room; never smaller than `least`, below which it is cut instead. */
const sizeFor = (name, room, size, least) =>
  kept(`s|${Math.round(room)}|${size}|${least.toFixed(1)}|${name}`, () => {
    const wide = measure(name, size);
    if (wide <= room || size <= least) return size;
    return Math.max(least, Math.floor(((size * room) / wide) * 4) / 4);
  });

/** The name in one line, what it has in common with others in grey. */
function nameLine(g, model, i, { x, y, room, size }, colours) {
  const [prefix, rest] = [model.prefix[i], model.rest[i]];
  const pieces = kept(`1|${Math.round(room)}|${size}|${prefix}|${rest}`, () =>
    fitParts(prefix, rest, room, (text) => measure(text, size)),
  );
  g.font = `600 ${size}px ${FONT}`;
  let at = x;
  for (const piece of pieces) {
    g.fillStyle = piece.faint ? colours.faint : colours.ink;
    g.fillText(piece.text, at, y);
    at += kept(`w|${size}|${piece.text}`, () => measure(piece.text, size));
  }
}

/** Below the name: what people call it, and how long it took or when it is expected. */
function factsLine(g, model, i, { x, y, room }, look) {
  const node = model.nodes[i];
  const fits = (text) => kept(`l|${text}`, () => measure(text, 11, 700)) <= room;
  const whole = look.label ? look.label(i) : '';
  const label = whole && !fits(whole) ? look.label(i, true) : whole;
  const isSlow = look.slow ? look.slow(i) : false;
  const weight = isSlow ? 700 : 400;
  const wide = label ? kept(`l|${weight}|${label}`, () => measure(label, 11, weight)) : 0;
  g.font = `${weight} 11px ${FONT}`;
  if (label) {
    g.textAlign = 'right';
    g.fillStyle = isSlow ? look.colours.slow : look.colours.ink;
    g.fillText(label, x + room, y);
    g.textAlign = 'left';
  }
  const left = room - (wide ? wide + 8 : 0);
  if (!node.name || node.name === node.code || left < 30) return;
  const name = kept(`n|${Math.round(left)}|${node.name}`, () =>
    fitParts('', node.name, left, (text) => measure(text, 11, 400)),
  );
  g.font = `400 11px ${FONT}`;
  g.fillStyle = look.colours.faint;
  g.fillText(name[0].text, x, y);
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
