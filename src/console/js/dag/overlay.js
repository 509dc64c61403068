// What lies over the picture in letters of one size at every zoom: the parts of a picture that is far away, and halos
// around what failed with its name.

import { t } from '../i18n.js';
import { isFailure, rank } from '../status.js';
import { num } from '../ui/time.js';
import { clustersOf, countsOf } from './clusters.js';
import { drawMark } from './marks.js';
import { middle } from './names.js';
import { isFar, measure, round } from './paint.js';

const FONT = '"Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", system-ui, sans-serif';
const CARD = { wide: 124, high: 40 };
/** More names of failures than this would hide the picture; halos have all. */
const CALLED = 12;

/** Room that the cards need above a picture that is far away. */
export const CARDS = CARD.high + 14;

/** The parts of the picture, as many as have room for their names; kept until picture or zoom is another. */
function partsOf(view) {
  const key = `${view.scale}`;
  if (view.parts?.model !== view.model || view.parts.key !== key) {
    const along = view.model.direction === 'TB' ? view.model.height : view.model.width;
    const room = view.model.direction === 'TB' ? CARD.high + 8 : CARD.wide + 8;
    const most = Math.max(2, Math.floor((along * view.scale) / room));
    view.parts = { model: view.model, key, all: clustersOf(view.model, most) };
  }
  return view.parts.all;
}

/** Whether a card lies on a rectangle of the picture. */
function covers(view, [x0, y0, x1, y1], left, top, wide) {
  const at = (x, from) => (x - from) * view.scale;
  return (
    left < at(x1, view.x) && left + wide > at(x0, view.x) && top < at(y1, view.y) && top + CARD.high > at(y0, view.y)
  );
}

/** Names and counts of parts, where the boxes are too small to have names. */
export function drawClusters(view) {
  const { g, model: m, scale, colours } = view;
  if (!isFar(m, scale)) return;
  const cards = [];
  // The largest first: a card that would lie on another, or on boxes of another part, is left out; its part keeps
  // its frame.
  const parts = partsOf(view);
  for (const part of [...parts].sort((a, b) => b.nodes.length - a.nodes.length)) {
    const [x0, y0, x1, y1] = part.box;
    const [x, y] = [(x0 - view.x) * scale - 4, (y0 - view.y) * scale - 4];
    const [w, h] = [(x1 - x0) * scale + 8, (y1 - y0) * scale + 8];
    g.strokeStyle = colours.faint;
    g.globalAlpha = 0.5;
    g.lineWidth = 1;
    round(g, x, y, w, h, 6);
    g.stroke();
    g.globalAlpha = 1;
    const isDown = m.direction === 'TB';
    const top = isDown ? y + Math.max(0, (h - CARD.high) / 2) : Math.max(4, y - CARD.high - 3);
    const left = isDown ? Math.max(4, x - CARD.wide - 4) : x;
    const wide = isDown ? CARD.wide : Math.min(240, Math.max(CARD.wide, w));
    const inside = parts.some((other) => other !== part && covers(view, other.box, left, top, wide));
    if (inside || cards.some(([cx, cy, cw]) => left < cx + cw && cx < left + wide && Math.abs(top - cy) < CARD.high))
      continue;
    cards.push([left, top, wide]);
    card(view, part, left, top, wide);
  }
}

function nameOf(part) {
  if (part.key) return part.key;
  if (part.family) return `${part.family}…`;
  const [from, to] = part.layers;
  return from === to ? t('dag.layer', { n: from }) : t('dag.layers', { from, to });
}

function card(view, part, x, y, width) {
  const { g, colours } = view;
  g.fillStyle = colours.box;
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  round(g, x, y, width, CARD.high, 5);
  g.fill();
  g.stroke();
  g.textBaseline = 'middle';
  const sum = num(part.nodes.length);
  g.font = `400 11px ${FONT}`;
  const tail = measure(sum, 11, 400);
  g.fillStyle = colours.faint;
  g.fillText(sum, x + width - tail - 6, y + 12);
  g.font = `600 12px ${FONT}`;
  g.fillStyle = colours.ink;
  g.fillText(
    middle(nameOf(part), width - tail - 18, (text) => measure(text, 12)),
    x + 6,
    y + 12,
  );
  let at = x + 6;
  g.font = `600 11px ${FONT}`;
  for (const [state, n] of countsOf(view.model, part.nodes, rank)) {
    const words = num(n);
    const room = 16 + measure(words, 11) + 8;
    if (at + room > x + width) break;
    drawMark(g, state, at, y + 22, 12, colours.state[state] || colours.line, colours.box);
    g.fillStyle = colours.ink;
    g.fillText(words, at + 15, y + 29);
    at += room;
  }
}

/** Halos around what failed, as wide at every zoom, and from afar its name. */
export function drawFailures(view) {
  const { g, model: m, scale, colours, look } = view;
  const far = isFar(m, scale);
  const taken = [];
  let called = 0;
  for (let i = 0; i < m.states.length; i++) {
    if (!isFailure(m.states[i]) || (look.dim && look.dim(i)) || !view.inView(i)) continue;
    const b = i * 4;
    const [x, y] = [(m.box[b] - view.x) * scale, (m.box[b + 1] - view.y) * scale];
    const [w, h] = [m.box[b + 2] * scale, m.box[b + 3] * scale];
    const grow = far ? 5 : 3;
    g.strokeStyle = colours.halo;
    for (const [alpha, wide, more] of [
      [0.22, 9, grow + 4],
      [0.95, 2.5, grow],
    ]) {
      g.globalAlpha = alpha;
      g.lineWidth = wide;
      round(g, x - more, y - more, w + 2 * more, h + 2 * more, 5 + more);
      g.stroke();
    }
    g.globalAlpha = 1;
    if (far && called < CALLED && call(view, i, x + w / 2, y + h, taken)) called += 1;
  }
}

/** The name of a failure below its box; false where it would lie on another. */
function call(view, i, x, y, taken) {
  const { g, model: m, colours } = view;
  const words = middle(m.prefix[i] + m.rest[i], 200, (text) => measure(text, 12));
  const wide = measure(words, 12) + 14;
  const left = Math.max(4, Math.min(view.w - wide - 4, x - wide / 2));
  const top = y + 10 + 22 > view.h ? y - 46 : y + 10;
  if (taken.some(([tx, ty, tw]) => left < tx + tw && tx < left + wide && Math.abs(ty - top) < 23)) return false;
  taken.push([left, top, wide]);
  g.fillStyle = colours.halo;
  round(g, left, top, wide, 21, 4);
  g.fill();
  g.fillStyle = colours.dark ? '#10151a' : '#ffffff';
  g.font = `600 12px ${FONT}`;
  g.textBaseline = 'middle';
  g.fillText(words, left + 7, top + 11);
  return true;
}
