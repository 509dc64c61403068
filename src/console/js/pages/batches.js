// Batches, the latest first, by group, state, number and day.

import { api, live } from '../api.js';
import { t } from '../i18n.js';
import { openBatch } from '../open_batch.js';
import { go, to } from '../router.js';
import { BATCH_STATUSES, statusWord } from '../status.js';
import { store } from '../store.js';
import {
  badge,
  button,
  dayStart,
  duration,
  failed,
  h,
  icon,
  input,
  loading,
  pageHead,
  pages,
  progress,
  put,
  select,
  settled,
  table,
  time,
} from '../ui.js';
import { outlook } from './dashboard.js';

/** The table of batches; the group's page has one too. */
export const batchTable = (rows, more = {}) =>
  table({
    caption: t('nav.batches'),
    rows,
    rowKey: (r) => `${r.group}/${r.batch_no}`,
    test: 'batches',
    onOpen: (r) => go(to`/batches/${r.group}/${r.batch_no}`),
    rowClass: (r) => (['FAILED', 'KILLED'].includes(r.status) ? 'row-bad' : r.is_late ? 'row-late' : null),
    columns: [
      {
        key: 'batch_no',
        label: t('batch.no'),
        cell: (r) => h('a', { href: to`/batches/${r.group}/${r.batch_no}` }, r.batch_no),
      },
      { key: 'group', label: t('group.one'), cell: (r) => h('a', { href: to`/groups/${r.group}` }, r.group) },
      {
        key: 'status',
        label: t('common.status'),
        cell: (r) => [badge(r.status, { paused: r.is_paused }), r.removing && h('span.tag', t('batch.removing'))],
      },
      { key: 'jobs', label: t('batch.progress'), sort: false, width: '24%', cell: (r) => progress(r.jobs) },
      { key: 'create_time', label: t('batch.began'), cell: (r) => time(r.create_time) },
      {
        key: 'end_time',
        label: t('batch.ended_or'),
        hide: 'narrow',
        cell: (r) => (r.end_time ? time(r.end_time) : outlook(r)),
      },
      {
        key: 'took',
        label: t('batch.took'),
        num: true,
        hide: 'narrow',
        value: (r) => (r.end_time ? Date.parse(r.end_time) - Date.parse(r.create_time) : null),
        cell: (r) => (r.end_time ? duration(Date.parse(r.end_time) - Date.parse(r.create_time)) : '–'),
      },
      { key: 'business_date', label: t('batch.business_date'), hide: 'middle', cls: 'tight' },
      {
        key: 'started_by',
        label: t('batch.started_by'),
        hide: 'middle',
        cell: (r) => h('span', { title: r.reason }, r.started_by ?? ''),
      },
    ],
    ...more,
  });

/** Rows of a table of batches say which batch they are, for those who look for them. */
export function marked(list, items) {
  for (const tr of list.el.querySelectorAll('tbody tr[data-key]')) {
    const row = items.find((r) => `${r.group}/${r.batch_no}` === tr.dataset.key);
    if (row) Object.assign(tr.dataset, { test: 'batch', group: row.group, no: row.batch_no, status: row.status });
  }
}

export async function mount(el, ctx) {
  ctx.title(t('nav.batches'));
  const wanted = Object.fromEntries(['group', 'status', 'q', 'from', 'to'].map((k) => [k, ctx.query.get(k) ?? '']));
  const groups = await api.all('/groups').catch(() => []);
  const host = h('div');
  let list;
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    read();
  };
  const isFiltered = () => Object.values(wanted).some(Boolean);
  const grow = pages({
    load: (cursor) =>
      api.get('/batches', { ...wanted, from: dayStart(wanted.from), to: dayStart(wanted.to, 1), limit: 50, cursor }),
    make: (items) => {
      list = batchTable(items, {
        empty: {
          title: t(isFiltered() ? 'common.nothing_fits' : 'batches.none'),
          lead: isFiltered() ? null : t('batches.none_lead'),
        },
      });
      return {
        ...list,
        update: (next) => {
          list.update(next);
          marked(list, next);
        },
      };
    },
  });
  async function read(quiet) {
    if (!quiet) put(host, loading());
    try {
      const items = await grow.start();
      marked(list, items);
      if (host.firstChild !== grow.el) put(host, grow.el);
    } catch (error) {
      if (!quiet)
        put(
          host,
          failed(error, () => read()),
        );
    }
  }
  put(
    el,
    pageHead({
      title: t('nav.batches'),
      actions: [
        button(t('batch.open'), {
          kind: 'primary',
          icon: 'plus',
          test: 'open-batch',
          disabled: store.why('run'),
          onclick: () => openBatch({ group: wanted.group }),
        }),
      ],
    }),
    h(
      'form.filters',
      { role: 'search', 'aria-label': t('common.filter'), onsubmit: (e) => e.preventDefault() },
      h('label.visually-hidden', { for: 'batch-q' }, t('batches.find')),
      Object.assign(
        input({
          type: 'search',
          value: wanted.q,
          placeholder: t('batches.find'),
          test: 'filter-q',
          oninput: settled(300, (q) => change({ q })),
        }),
        { id: 'batch-q' },
      ),
      select({
        label: t('group.one'),
        value: wanted.group,
        options: [['', t('group.all')], ...groups.map((g) => [g.group ?? g.code, g.group ?? g.code])],
        onchange: (group) => change({ group }),
        test: 'filter-group',
      }),
      select({
        label: t('common.status'),
        value: wanted.status,
        options: [['', t('status.all')], ...BATCH_STATUSES.map((x) => [x, statusWord(x)])],
        onchange: (status) => change({ status }),
        test: 'filter-status',
      }),
      input({
        type: 'date',
        value: wanted.from,
        label: t('common.from'),
        onchange: (from) => change({ from }),
        test: 'filter-from',
      }),
      h('span.muted', '–'),
      input({
        type: 'date',
        value: wanted.to,
        label: t('common.to'),
        onchange: (to_) => change({ to: to_ }),
        test: 'filter-to',
      }),
      isFiltered() && h('a.btn.btn-quiet', { href: '#/batches' }, icon('close'), t('common.clear')),
    ),
    host,
  );
  await read();
  const again = settled(
    1500,
    () =>
      el.isConnected &&
      grow.items().length <= 50 &&
      !el.contains(document.activeElement?.closest?.('tbody') ?? null) &&
      read(true),
  );
  const end = live({}, { batch: again, gap: again, state: (is) => store.tell('live', is) });
  return { destroy: end };
}
