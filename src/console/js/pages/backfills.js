// Backfills: ranges of batches that are run as one thing.

import { api, say } from '../api.js';
import { has, t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import {
  ago,
  badge,
  button,
  dialog,
  empty,
  field,
  h,
  icon,
  input,
  pageHead,
  pages,
  put,
  select,
  settled,
  shown,
  table,
  time,
  toast,
} from '../ui.js';

const NEAREST = { OPEN: 'RUNNING', STOPPED: 'KILLED', STOPPING: 'KILLING', LEFT: 'SKIPPED', REFUSED: 'FAILED' };

/** The state of a backfill or of one of its batches, with the nearest mark. */
export function mark(status) {
  const state = String(status ?? '').toUpperCase();
  const el = badge(NEAREST[state] ?? (has(`status.${state}`) ? state : 'PENDING'));
  const key = `bf.state_${state.toLowerCase()}`;
  if (has(key)) el.querySelector('span').textContent = t(key);
  el.dataset.status = state;
  return el;
}

/** How much is done, as a bar with its words. */
export const bar = (done, total) =>
  h(
    'span.bf-bar',
    {
      role: 'progressbar',
      'aria-valuemin': 0,
      'aria-valuemax': total,
      'aria-valuenow': done,
      'aria-label': t('bf.progress', { done, total }),
    },
    h('i', { css: { width: `${total ? Math.round((done / total) * 100) : 0}%` } }),
    h('span', `${done}/${total}`),
  );

export const rangeText = (range) =>
  typeof range === 'string'
    ? range
    : range?.from
      ? `${range.from} … ${range.to}`
      : (range?.list?.join(', ') ?? JSON.stringify(range ?? ''));

export async function mount(el, ctx) {
  ctx.title?.(t('bf.title'));
  const host = h('div');
  el.append(
    pageHead({
      title: t('bf.title'),
      sub: t('bf.sub'),
      actions: [
        button(t('bf.open'), {
          icon: 'plus',
          kind: 'primary',
          test: 'backfill-open',
          disabled: store.why('run') ?? false,
          onclick: () => open(ctx),
        }),
      ],
    }),
    host,
  );
  const list = pages({
    load: (cursor) => api.get('/backfills', { limit: 50, cursor }),
    make: (rows) =>
      table({
        caption: t('bf.title'),
        rows,
        rowKey: (b) => String(b.backfill_id),
        test: 'backfills',
        onOpen: (b) => go(`/backfills/${b.backfill_id}`),
        locked: true,
        empty: empty({ title: t('bf.none'), lead: t('bf.none_lead') }),
        columns: [
          {
            key: 'id',
            label: t('bf.id'),
            cell: (b) => h('a.strong', { href: to`/backfills/${String(b.backfill_id)}` }, `#${b.backfill_id}`),
          },
          { key: 'group', label: t('sf.group'), cell: (b) => b.group },
          { key: 'range', label: t('bf.range'), cell: (b) => rangeText(b.range) },
          { key: 'status', label: t('sch.state'), cell: (b) => mark(b.status) },
          { key: 'done', label: t('bf.done'), cell: (b) => bar(b.done, b.total) },
          { key: 'begun', label: t('bf.begun'), cell: (b) => ago(b.create_time) },
          { key: 'ended', label: t('bf.ended'), cell: (b) => time(b.end_time), hide: 'narrow' },
          { key: 'by', label: t('bf.by'), cell: (b) => b.started_by, hide: 'narrow' },
        ],
      }),
  });
  await shown(
    host,
    () => list.start(),
    () => list.el,
  );
  return { destroy() {} };
}

/** Which batches, how many at a time; shows what would happen before anything does. */
async function open(ctx) {
  let groups = [];
  try {
    groups = await api.all('/groups');
  } catch (error) {
    toast(say(error), 'bad');
    return;
  }
  const mine = groups.map((g) => g.group ?? g.code).filter((g) => store.may('run', g));
  const d = {
    group: ctx.query?.get('group') ?? mine[0] ?? '',
    from: '',
    to: '',
    parallel: 1,
    order: 'asc',
    only: 'missing,failed',
    on_failure: 'stop',
  };
  const see = h(
    'div.bf-preview',
    { 'aria-live': 'polite', 'data-test': 'backfill-preview' },
    h('p.hint', t('bf.fill_in')),
  );
  let fits = false;
  let turn = 0;
  const body = () => ({
    group: d.group,
    range: d.to ? `${d.from}..${d.to}` : d.from,
    parallel: Number(d.parallel) || 1,
    order: d.order || undefined,
    only: d.only || undefined,
    on_failure: d.on_failure || undefined,
  });
  const again = settled(350, async () => {
    const mineTurn = ++turn;
    fits = false;
    if (!d.group || !d.from) return;
    try {
      const got = await api.post('/backfills/preview', body());
      if (mineTurn !== turn) return;
      fits = !got.refused;
      put(see, got.refused && h('p.field-error', { role: 'alert' }, got.refused), preview(got));
    } catch (error) {
      if (mineTurn === turn) put(see, h('p.field-error', { role: 'alert' }, say(error)));
    }
  });
  const set = (key) => (v) => {
    d[key] = typeof v === 'string' ? v.trim() : v;
    again();
  };
  const reason = field({ label: t('act.reason'), input: input({ name: 'reason', test: 'reason' }) });
  dialog({
    title: t('bf.open'),
    lead: t('bf.open_lead'),
    size: 'l',
    test: 'backfill-form',
    body: [
      h(
        'div.sf',
        h(
          'div.sf-left',
          field({
            label: t('sf.group'),
            input: select({
              value: d.group,
              test: 'backfill-group',
              options: mine.map((g) => [g, g]),
              onchange: set('group'),
            }),
          }),
          h(
            'div.sf-pair',
            field({
              label: t('bf.from'),
              hint: t('bf.no_hint'),
              input: input({ mono: true, test: 'backfill-from', placeholder: '202401', oninput: set('from') }),
            }),
            field({
              label: t('bf.to'),
              input: input({ mono: true, test: 'backfill-to', placeholder: '202412', oninput: set('to') }),
            }),
          ),
          h(
            'div.sf-pair',
            field({
              label: t('bf.parallel'),
              input: input({ type: 'number', min: 1, max: 50, value: '1', oninput: set('parallel') }),
            }),
            field({
              label: t('bf.order'),
              input: select({
                value: d.order,
                options: [
                  ['asc', t('bf.forwards')],
                  ['desc', t('bf.backwards')],
                ],
                onchange: set('order'),
              }),
            }),
          ),
          h(
            'div.sf-pair',
            field({
              label: t('bf.only'),
              input: select({
                value: d.only,
                options: [
                  ['missing,failed', t('bf.only_both')],
                  ['missing', t('bf.only_missing')],
                  ['failed', t('bf.only_failed')],
                ],
                onchange: set('only'),
              }),
            }),
            field({
              label: t('bf.on_failure'),
              input: select({
                value: d.on_failure,
                options: [
                  ['stop', t('bf.stop')],
                  ['go-on', t('bf.continue')],
                ],
                onchange: set('on_failure'),
              }),
            }),
          ),
          reason,
        ),
        h('div.sf-right', h('h3', t('bf.preview')), see),
      ),
    ],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('bf.start'),
        kind: 'primary',
        test: 'backfill-start',
        run: async (close) => {
          if (!reason.input.value.trim()) {
            reason.fail(t('act.reason_missing'));
            reason.input.focus();
            return;
          }
          if (!fits && !d.from) {
            toast(t('bf.fill_in'), 'info');
            return;
          }
          const got = await api.post('/backfills', { ...body(), reason: reason.input.value.trim() });
          close();
          const id = got?.backfill_id ?? got?.id;
          if (id) go(`/backfills/${id}`);
        },
      },
    ],
  });
}

function preview(got) {
  const rows = got.steps ?? got.batches ?? [];
  if (!rows.length) return h('p.hint', t('bf.no_batches'));
  const n = rows.filter((r) => r.runs !== false).length;
  return [
    h('p.strong', t('bf.would_run', { n, all: rows.length })),
    table({
      caption: t('bf.preview'),
      rows,
      rowKey: (r) => r.batch_no,
      locked: true,
      test: 'backfill-batches',
      rowClass: (r) => (r.runs === false ? 'jb-off' : ''),
      columns: [
        { key: 'no', label: t('sf.no'), cell: (r) => h('span.strong', r.batch_no) },
        {
          key: 'action',
          label: t('bf.action'),
          cell: (r) => [r.runs === undefined ? null : icon(r.runs ? 'play' : 'skip', 13), ' ', r.action ?? '–'],
        },
      ],
    }).el,
  ];
}
