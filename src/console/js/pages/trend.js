// The course of a group or a job over its last batches: a chart, what it says in numbers, and a table of the same.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { trendChart } from '../ui/chart.js';
import { badge, card, duration, empty, facts, h, num, select, shown, table, time } from '../ui.js';

/** @param with_ {group, job?} @returns {destroy()} */
export async function mountTrend(el, { group, job }) {
  let batches = '60';
  let chart = null;
  const host = h('div');
  el.append(
    h(
      'div.dg-tools',
      select({
        label: t('trend.batches'),
        value: batches,
        test: 'trend-batches',
        options: ['20', '60', '120', '400'].map((n) => [n, t('trend.batches_n', { n: Number(n) })]),
        onchange: (n) => {
          batches = n;
          load();
        },
      }),
    ),
    host,
  );
  const open = (point) =>
    go(`${to`/batches/${group}/${point.batch_no}`}${job ? `/list?job=${encodeURIComponent(job)}` : ''}`);
  const load = () =>
    shown(
      host,
      () => api.get(api.path`/groups/${group}/trend`, { job, batches }),
      (trend) => {
        chart?.destroy();
        chart = null;
        if (!trend.points.length) return empty({ title: t('trend.none'), lead: t('trend.none_lead') });
        const label = t('trend.label', { name: job ? `${group}.${job}` : group, n: trend.points.length });
        chart = trendChart(trend, { label, onOpen: open });
        return h('div.stack', card(t('trend.title'), chart.el, legend(trend)), numbers(trend), rows(trend, open));
      },
    );
  await load();
  return { destroy: () => chart?.destroy() };
}

const legend = (trend) =>
  h(
    'p.chart-legend',
    { 'aria-hidden': 'true' },
    h('span.chart-dot', '●'),
    t('trend.ran'),
    h('span.chart-cross', '✕'),
    t('trend.failed'),
    h('span.chart-band'),
    t('trend.band'),
    trend.versions.length ? [h('span.chart-version', '┊'), t('trend.version')] : null,
  );

const numbers = (trend) =>
  facts([
    [t('trend.runs'), num(trend.runs)],
    [
      t('in.success'),
      trend.runs ? `${Math.round((trend.succeeded / trend.runs) * 1000) / 10} % (${num(trend.succeeded)})` : null,
    ],
    [t('in.p50'), trend.p50_ms === null ? null : duration(trend.p50_ms)],
    [t('in.p95'), trend.p95_ms === null ? null : duration(trend.p95_ms)],
  ]);

function rows(trend, open) {
  const versions = new Map();
  for (const { version, first_batch_no: no } of trend.versions) if (no) versions.set(no, version);
  return card(
    t('trend.as_table'),
    table({
      caption: t('trend.as_table'),
      rows: [...trend.points].reverse(),
      rowKey: (point) => point.batch_no,
      test: 'trend-table',
      onOpen: open,
      columns: [
        {
          key: 'no',
          label: t('sf.no'),
          value: (point) => point.batch_no,
          cell: (point) => [
            h('a.strong', { href: to`/batches/${trend.group}/${point.batch_no}` }, point.batch_no),
            versions.has(point.batch_no) && h('span.tag', `v${versions.get(point.batch_no)}`),
          ],
        },
        { key: 'status', label: t('sch.state'), value: (point) => point.status, cell: (point) => badge(point.status) },
        {
          key: 'start',
          label: t('in.start'),
          value: (p) => (p.start ? Date.parse(p.start) : null),
          cell: (p) => time(p.start),
        },
        {
          key: 'took',
          label: t('bf.took'),
          num: true,
          value: (point) => point.took_ms,
          cell: (point) => duration(point.took_ms),
        },
        {
          key: 'usual',
          label: t('trend.usual'),
          num: true,
          value: (point) => point.p50_ms,
          cell: (point) => (point.p50_ms === null ? '–' : `${duration(point.p50_ms)} – ${duration(point.p95_ms)}`),
        },
      ],
    }).el,
  );
}
