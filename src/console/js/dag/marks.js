// How states look on a canvas: the marks of status.js and the colours of the style sheets.

import { GLYPHS } from '../status.js';

// After Okabe and Ito: what must not be mixed up differs in lightness too, since from afar there are
// only blocks, and no mark that could help. The style sheets' colours are made for text instead.
const LIGHT = {
  NONE: '#66727f',
  PENDING: '#8b97a4',
  QUEUED: '#4fb3f0',
  HELD: '#8047d6',
  RETRY_WAIT: '#aa9e50',
  RUNNING: '#0072b2',
  KILLING: '#80247f',
  SUCCESS: '#009e73',
  WARNING: '#dcb800',
  FAILED: '#d5400c',
  TIMEOUT: '#e27006',
  KILLED: '#8a4b2d',
  UNKNOWN: '#cf4fa8',
  UPSTREAM_FAILED: '#e08a63',
  FORCED: '#006a70',
  SKIPPED: '#b3bcc6',
  SKIPPED_BRANCH: '#c6cdd5',
};
const DARK = {
  NONE: '#8592a0',
  PENDING: '#75828f',
  QUEUED: '#77c6ff',
  HELD: '#897dff',
  RETRY_WAIT: '#c9b458',
  RUNNING: '#3d9be0',
  KILLING: '#f3b9dd',
  SUCCESS: '#22b98b',
  WARNING: '#f0e442',
  FAILED: '#ff5a2b',
  TIMEOUT: '#ff9c33',
  KILLED: '#c48a6c',
  UNKNOWN: '#b44fa6',
  UPSTREAM_FAILED: '#8f5a3c',
  FORCED: '#61e5f3',
  SKIPPED: '#56616d',
  SKIPPED_BRANCH: '#48525d',
};

const paths = new Map();
function pathsOf(state) {
  if (!paths.has(state)) {
    const mark = GLYPHS[state];
    paths.set(
      state,
      mark ? { ...mark, shape: new Path2D(mark.shape), lines: mark.lines ? new Path2D(mark.lines) : null } : null,
    );
  }
  return paths.get(state);
}

/** Whether the page is dark at the moment. */
export function isDark() {
  const [r = 255, g = 255, b = 255] = (getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) || []).map(
    Number,
  );
  return r * 0.3 + g * 0.59 + b * 0.11 < 110;
}

/** Any colour of CSS as #rrggbb, which can be mixed; `other` where there is none. */
function hex(g, colour, other) {
  if (!colour) return other;
  g.fillStyle = '#010203';
  g.fillStyle = colour;
  return /^#[0-9a-f]{6}$/i.test(g.fillStyle) ? g.fillStyle : other;
}

/** Colours for a canvas, as the style sheets have them in the theme of the moment. */
export function colours() {
  const dark = isDark();
  const g = document.createElement('canvas').getContext('2d');
  const root = getComputedStyle(document.documentElement);
  const of = (names, other) =>
    names.map((name) => hex(g, root.getPropertyValue(name).trim(), '')).find(Boolean) || other;
  return {
    dark,
    state: dark ? DARK : LIGHT,
    paper: of(['--bg'], dark ? '#12171d' : '#f6f7f9'),
    box: of(['--surface'], dark ? '#1c232b' : '#ffffff'),
    ink: of(['--text'], dark ? '#e8edf2' : '#1a2129'),
    faint: of(['--muted'], dark ? '#a9b4bf' : '#55606c'),
    line: dark ? '#75838f' : '#9aa5b1',
    bundle: dark ? '#5b6874' : '#b3bcc6',
    critical: dark ? '#ff8fd8' : '#a3006b',
    accent: of(['--accent'], dark ? '#6cb8ff' : '#0b62c4'),
    select: dark ? '#ffffff' : '#111111',
    slow: of(['--orange'], dark ? '#ffa877' : '#a63c06'),
    halo: dark ? '#ff5a2b' : '#d5400c',
    found: dark ? '#ffe14d' : '#ffc400',
  };
}

const stripes = new Map();
/** Stripes of a few pixels at any zoom, in the colour of what could not run. */
export function hatch(g, theme, scale) {
  const key = `${theme.dark}`;
  if (!stripes.has(key)) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const pen = tile.getContext('2d');
    pen.fillStyle = theme.paper;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = theme.state.UPSTREAM_FAILED;
    pen.lineWidth = 3.4;
    pen.beginPath();
    for (const at of [-8, 0, 8]) {
      pen.moveTo(at - 2, 10);
      pen.lineTo(at + 10, -2);
    }
    pen.stroke();
    stripes.set(key, tile);
  }
  const pattern = g.createPattern(stripes.get(key), 'repeat');
  const by = 0.7 / scale;
  pattern.setTransform(new DOMMatrix([by, 0, 0, by, 0, 0]));
  return pattern;
}

/** Draws the mark of a state with its upper left corner at x, y; `inner` is the colour on a filled shape. */
export function drawMark(g, state, x, y, size, colour, inner) {
  const mark = pathsOf(state);
  if (!mark) return;
  g.save();
  g.translate(x, y);
  g.scale(size / 16, size / 16);
  g.lineWidth = 1.8;
  g.lineCap = 'round';
  g.lineJoin = 'round';
  g.strokeStyle = colour;
  g.fillStyle = colour;
  if (mark.solid) g.fill(mark.shape);
  else g.stroke(mark.shape);
  if (mark.lines) {
    g.strokeStyle = g.fillStyle = mark.solid ? inner : colour;
    if (mark.fill) g.fill(mark.lines);
    else g.stroke(mark.lines);
  }
  g.restore();
}
