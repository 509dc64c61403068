// What past runs and deadlines say: the board of deadlines, the slowest and flakiest jobs, groups by success.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { badge, duration, empty, h, num, pageHead, poll, put, segmented, select, shown, table, time } from '../ui.js';
import { standingBadge } from './insight_words.js';

const VIEWS = [
  ['deadlines', 'clock'],
  ['jobs', 'job'],
  ['groups', 'groups'],
];
const ORDERS = ['slowest', 'flakiest', 'failures'];

export async function mount(el, ctx) {
  ctx.title?.(t('in.title'));
  const filters = { view: 'deadlines', hours: '24', days: '30', order: 'slowest', group: '' };
  for (const key of Object.keys(filters)) filters[key] = ctx.query?.get(key) || filters[key];
  if (!VIEWS.some(([key]) => key === filters.view)) filters.view = 'deadlines';
  if (!ORDERS.includes(filters.order)) filters.order = 'slowest';
  const tools = h('div.dg-tools');
  const host = h('div');
  const groups = h('span');
  let turn = 0;
  const change = (next) => {
    Object.assign(filters, next);
    ctx.setQuery?.(filters);
    drawTools();
    load();
  };
  const views = segmented({
    label: t('in.view'),
    value: filters.view,
    test: 'in-view',
    options: VIEWS.map(([key, mark]) => [key, t(`in.${key}`), mark]),
    onchange: (view) => change({ view }),
  });
  const period = () =>
    filters.view === 'deadlines'
      ? select({
          label: t('in.hours'),
          value: filters.hours,
          test: 'in-hours',
          options: ['6', '24', '72', '168'].map((n) => [n, t('in.hours_n', { n: Number(n) })]),
          onchange: (hours) => change({ hours }),
        })
      : select({
          label: t('in.days'),
          value: filters.days,
          test: 'in-days',
          options: ['7', '30', '92', '400'].map((n) => [n, t('in.days_n', { n: Number(n) })]),
          onchange: (days) => change({ days }),
        });
  const order = () =>
    filters.view === 'jobs' &&
    select({
      label: t('in.order'),
      value: filters.order,
      test: 'in-order',
      options: ORDERS.map((key) => [key, t(`in.${key}`)]),
      onchange: (next) => change({ order: next }),
    });
  // What has the focus keeps it: only what depends on the view is drawn anew.
  const drawTools = () => {
    const focused = tools.contains(document.activeElement) ? document.activeElement.dataset.test : null;
    put(tools, views, period(), order(), groups);
    if (focused) tools.querySelector(`[data-test="${CSS.escape(focused)}"]`)?.focus();
  };
  el.append(
    pageHead({
      title: t('in.title'),
      sub: t('in.sub'),
      actions: [h('a.btn', { href: '#/wall', 'data-test': 'in-wall' }, t('wall.open'))],
    }),
    tools,
    host,
  );
  drawTools();
  api
    .all('/groups')
    .then((all) =>
      put(
        groups,
        select({
          label: t('sf.group'),
          value: filters.group,
          test: 'in-group',
          options: [['', t('cal.all_groups')], ...all.map((one) => [one.code ?? one.group, one.code ?? one.group])],
          onchange: (group) => change({ group }),
        }),
      ),
    )
    .catch(() => {});

  const read = () => {
    const group = filters.group || undefined;
    if (filters.view === 'deadlines') return api.get('/insights/deadlines', { hours: filters.hours, group });
    if (filters.view === 'jobs')
      return api.get('/insights/jobs', { days: filters.days, order: filters.order, limit: 50, group });
    return api.get('/insights/groups', { days: filters.days, group });
  };
  async function load() {
    const mine = ++turn;
    const draw = { deadlines: deadlines, jobs, groups: groupRates }[filters.view];
    await shown(host, read, (got) => (mine === turn ? draw(got, filters) : undefined));
  }
  await load();
  const end = poll(async () => {
    const mine = turn;
    if (filters.view !== 'deadlines' || host.contains(document.activeElement)) return;
    const got = await read();
    if (mine === turn) put(host, deadlines(got));
  }, 30000);
  return {
    destroy() {
      turn = -1;
      end();
    },
  };
}

const batchHref = (row) =>
  row.batch_no ? to`/batches/${row.group}/${row.batch_no}` : row.schedule ? to`/schedules/${row.schedule}` : '#/';

/** The board: what needs attention first. */
function deadlines(got) {
  return h(
    'div.stack',
    h(
      'div.in-counts',
      { 'data-test': 'in-counts' },
      Object.entries(got.counts).map(([standing, n]) => h('span', standingBadge(standing), h('strong', num(n)))),
    ),
    table({
      caption: t('in.deadlines'),
      rows: got.items,
      rowKey: (row) => `${row.group} ${row.batch_no ?? ''} ${row.schedule ?? ''} ${row.start}`,
      test: 'in-deadlines-table',
      onOpen: (row) => go(batchHref(row)),
      empty: empty({ title: t('in.no_batches'), lead: t('in.no_batches_lead') }),
      columns: [
        {
          key: 'standing',
          label: t('in.standing'),
          sort: false,
          cell: (row) => standingBadge(row.standing),
        },
        {
          key: 'group',
          label: t('sf.group'),
          value: (row) => row.group,
          cell: (row) => [
            h('a.strong', { href: to`/groups/${row.group}` }, row.group),
            row.name !== row.group && h('div.muted', row.name),
          ],
        },
        {
          key: 'batch',
          label: t('in.batch'),
          value: (row) => row.batch_no ?? row.schedule,
          cell: (row) => [
            h('a', { href: batchHref(row) }, row.batch_no ?? t('in.planned_by', { schedule: row.schedule })),
            row.status && h('div', badge(row.status)),
          ],
        },
        { key: 'start', label: t('in.start'), value: (row) => Date.parse(row.start), cell: (row) => time(row.start) },
        {
          key: 'due',
          label: t('in.due'),
          value: (row) => (row.due ? Date.parse(row.due) : null),
          cell: (row) => time(row.due),
        },
        {
          key: 'end',
          label: t('in.end'),
          value: (row) => ((row.end ?? row.expected_end) ? Date.parse(row.end ?? row.expected_end) : null),
          cell: (row) =>
            row.end || !row.expected_end
              ? time(row.end)
              : h('span.muted', { title: t('in.expected') }, '≈ ', time(row.expected_end)),
        },
        {
          key: 'late',
          label: t('in.late_by'),
          num: true,
          value: (row) => row.late_by_ms,
          cell: (row) => (row.late_by_ms === null ? '' : h('span.late', duration(row.late_by_ms))),
        },
      ],
    }).el,
    got.left_out ? h('p.hint', t('in.left_out', { n: got.left_out })) : null,
  );
}

const number = (key, label, cell) => ({
  key,
  label,
  num: true,
  value: (row) => row[key],
  cell: (row) => (row[key] === null || row[key] === undefined ? '–' : cell ? cell(row[key], row) : num(row[key])),
});

/** A share as a number with a bar, which is drawn for the eye alone. */
const share = (percent, kind) => [
  h('span.in-share', { 'aria-hidden': 'true' }, h(`span.in-share-${kind}`, { css: { width: `${percent}%` } })),
  `${percent} %`,
];

function jobs(got) {
  return h(
    'div.stack',
    table({
      caption: t('in.jobs'),
      rows: got.items,
      rowKey: (row) => `${row.group}.${row.job}`,
      test: 'in-jobs-table',
      onOpen: (row) => go(to`/jobs/${`${row.group}.${row.job}`}`),
      empty: empty({ title: t('in.no_runs'), lead: t('in.no_runs_lead') }),
      columns: [
        {
          key: 'job',
          label: t('grid.job'),
          value: (row) => row.job,
          cell: (row) => h('a.strong', { href: to`/jobs/${`${row.group}.${row.job}`}` }, row.job),
        },
        { key: 'group', label: t('sf.group'), cell: (row) => h('a', { href: to`/groups/${row.group}` }, row.group) },
        number('p50_ms', t('in.p50'), duration),
        number('p95_ms', t('in.p95'), duration),
        number('longest_ms', t('in.longest'), duration),
        number('runs', t('in.runs')),
        number('failed', t('in.failed')),
        number('repeated', t('in.repeated')),
        number('flaky_percent', t('in.flaky'), (n) => share(n, 'bad')),
      ],
    }).el,
    h('p.hint', t('in.jobs_hint', { runs: num(got.runs), jobs: num(got.jobs) })),
    got.is_cut ? h('p.hint', t('in.cut')) : null,
  );
}

function groupRates(got) {
  return h(
    'div.stack',
    table({
      caption: t('in.groups'),
      rows: got.items,
      rowKey: (row) => row.group,
      test: 'in-groups-table',
      onOpen: (row) => go(`${to`/groups/${row.group}`}/trend`),
      empty: empty({ title: t('in.no_runs'), lead: t('in.no_runs_lead') }),
      sort: { key: 'success_percent', down: false },
      columns: [
        {
          key: 'group',
          label: t('sf.group'),
          value: (row) => row.group,
          cell: (row) => h('a.strong', { href: `${to`/groups/${row.group}`}/trend` }, row.group),
        },
        number('success_percent', t('in.success'), (n) => share(n, 'good')),
        number('batches', t('in.batches')),
        {
          key: 'failed',
          label: t('in.failed'),
          num: true,
          value: (row) => row.batches - row.succeeded,
          cell: (row) => num(row.batches - row.succeeded),
        },
        number('p50_ms', t('in.p50'), duration),
        number('p95_ms', t('in.p95'), duration),
        number('last_ms', t('in.last'), duration),
        {
          key: 'latest',
          label: t('in.latest'),
          value: (row) => row.last_batch_no,
          cell: (row) => [
            h('a', { href: to`/batches/${row.group}/${row.last_batch_no}` }, row.last_batch_no),
            ' ',
            badge(row.last_status),
          ],
        },
      ],
    }).el,
    got.is_cut ? h('p.hint', t('in.cut')) : null,
  );
}
