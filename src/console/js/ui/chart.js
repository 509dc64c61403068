// Charts of durations: uPlot, fetched when a chart is shown. A chart is walked through with arrow keys; the same
// numbers stand in a table beside it.

import { t } from '../i18n.js';
import { statusWord, isBad } from '../status.js';
import { h, put } from './dom.js';
import { duration } from './time.js';

const HIGH = 260;
const S = 1000;
const M = 60 * S;
const H = 60 * M;
/** Steps of an axis of lengths of time, in milliseconds. */
const STEPS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  S,
  2 * S,
  5 * S,
  10 * S,
  15 * S,
  30 * S,
  M,
  2 * M,
  5 * M,
  10 * M,
  15 * M,
  30 * M,
  H,
  2 * H,
  3 * H,
  6 * H,
  12 * H,
  24 * H,
  48 * H,
  168 * H,
  720 * H,
];

let loading = null;

/** The library and its styles stand beside the script of the console, with the same version in their address. */
function loadPlot() {
  loading ??= new Promise((resolve, reject) => {
    const own = document.querySelector('script[type="module"][src*="/console/"]');
    const at = (name) => new URL(`vendor/uplot/${name}`, own.src).href;
    document.head.append(
      h('link', { rel: 'stylesheet', href: at('uPlot.min.css') }),
      h('script', {
        src: at('uPlot.iife.min.js'),
        onload: () => resolve(window.uPlot),
        onerror: () => {
          loading = null;
          reject(new Error(t('chart.not_loaded')));
        },
      }),
    );
  });
  return loading;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** What is said of one point. */
function sayPoint(point) {
  const words = [
    point.batch_no,
    statusWord(point.status),
    point.took_ms === null ? t('chart.no_length') : duration(point.took_ms),
  ];
  if (point.p50_ms !== null)
    words.push(t('chart.usually', { p50: duration(point.p50_ms), p95: duration(point.p95_ms) }));
  if ((point.attempts ?? 1) > 1) words.push(t('chart.attempts', { n: point.attempts }));
  return words.join(' · ');
}

/** The versions as vertical lines, each with its number at the top. */
function drawVersions(plot, trend) {
  const { ctx, bbox } = plot;
  const places = new Map(trend.points.map((point, i) => [point.batch_no, i]));
  ctx.save();
  ctx.font = `${Math.round(11 * devicePixelRatio)}px system-ui`;
  ctx.fillStyle = colour('--muted');
  ctx.strokeStyle = colour('--muted');
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  let free = -Infinity;
  for (const { version, first_batch_no: no } of trend.versions) {
    if (!places.has(no)) continue;
    const x = plot.valToPos(places.get(no) - 0.5, 'x', true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const words = `v${version}`;
    if (x > free) {
      ctx.fillText(words, x + 3, bbox.top + 12 * devicePixelRatio);
      free = x + ctx.measureText(words).width + 8;
    }
  }
  ctx.restore();
}

/** Each run a dot; what failed is a cross, so that it is not told by colour alone. */
function drawRuns(plot, trend) {
  const { ctx } = plot;
  const r = 3.5 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([]);
  trend.points.forEach((point, i) => {
    if (point.took_ms === null) return;
    const [x, y] = [plot.valToPos(i, 'x', true), plot.valToPos(point.took_ms, 'y', true)];
    ctx.beginPath();
    if (isBad(point.status)) {
      ctx.strokeStyle = colour('--red');
      for (const side of [-1, 1]) {
        ctx.moveTo(x - r, y - r * side);
        ctx.lineTo(x + r, y + r * side);
      }
      ctx.stroke();
    } else {
      ctx.fillStyle = colour('--accent');
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      ctx.fill();
    }
  });
  ctx.restore();
}

const options = (trend, width, shown) => {
  const grid = { stroke: colour('--line'), width: 1 };
  const axis = { stroke: colour('--muted'), grid, ticks: grid, font: '12px system-ui' };
  return {
    width,
    height: HIGH,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => [-0.7, trend.points.length - 0.3] },
      y: { range: (_, __, most) => [0, (most || 1) * 1.08] },
    },
    axes: [
      {
        ...axis,
        space: 90,
        incrs: [1, 2, 3, 5, 10, 20, 50, 100],
        values: (_, splits) => splits.map((i) => trend.points[i]?.batch_no ?? ''),
      },
      { ...axis, size: 92, incrs: STEPS, values: (_, splits) => splits.map((ms) => (ms === 0 ? '0' : duration(ms))) },
    ],
    series: [
      {},
      { stroke: colour('--muted'), width: 1, dash: [2, 3], points: { show: false } },
      { stroke: colour('--muted'), width: 1.5, dash: [6, 4], points: { show: false } },
      { stroke: colour('--accent'), width: 1.5, points: { show: false }, spanGaps: true },
    ],
    bands: [{ series: [1, 2], fill: colour('--accent-bg') }],
    hooks: {
      draw: [(plot) => drawVersions(plot, trend), (plot) => drawRuns(plot, trend)],
      setCursor: [(plot) => shown(plot.cursor.idx)],
    },
  };
};

/**
 * A chart of a trend: the answer of `GET /groups/{group}/trend`. `onOpen(point)` is what Enter and a click do.
 * @returns {el, destroy()}
 */
export function trendChart(trend, { label, onOpen }) {
  const host = h('div.chart-host', { 'aria-hidden': 'true' });
  const readout = h('p.chart-now', { role: 'status', 'data-test': 'chart-now' }, t('chart.keys'));
  const el = h(
    'div.chart',
    {
      tabindex: '0',
      role: 'group',
      'aria-roledescription': t('chart.role'),
      'aria-label': label,
      'data-test': 'chart',
    },
    host,
    readout,
  );
  const last = trend.points.length - 1;
  let at = -1;
  let plot = null;
  let isOver = false;
  const data = [
    trend.points.map((_, i) => i),
    ...['p95_ms', 'p50_ms', 'took_ms'].map((key) => trend.points.map((point) => point[key])),
  ];
  const shown = (i) => {
    if (i === null || i === undefined) return;
    at = i;
    readout.textContent = sayPoint(trend.points[i]);
  };
  const draw = async () => {
    const make = await loadPlot();
    if (isOver || !host.clientWidth) return;
    plot?.destroy();
    put(host);
    plot = new make(options(trend, host.clientWidth, shown), data, host);
    plot.over.addEventListener('click', () => at >= 0 && onOpen?.(trend.points[at]));
    el.dataset.drawn = 'true';
  };
  const redraw = () => draw().catch((error) => put(host, h('p.muted', error.message)));
  const go = (i) => {
    shown(Math.max(0, Math.min(last, i)));
    plot?.setCursor({ left: plot.valToPos(at, 'x'), top: 20 }, false);
  };
  el.addEventListener('keydown', (e) => {
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (e.key in moves) go(at < 0 && e.key === 'ArrowLeft' ? last : moves[e.key]);
    else if (e.key === 'Enter' && at >= 0) onOpen?.(trend.points[at]);
    else return;
    e.preventDefault();
  });
  const watch = new ResizeObserver(() => {
    if (plot && host.clientWidth) plot.setSize({ width: host.clientWidth, height: HIGH });
    else if (host.clientWidth) redraw();
  });
  watch.observe(host);
  // Colours are painted: another theme paints anew.
  const theme = new MutationObserver(redraw);
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', redraw);
  return {
    el,
    destroy() {
      isOver = true;
      watch.disconnect();
      theme.disconnect();
      media.removeEventListener('change', redraw);
      plot?.destroy();
    },
  };
}
