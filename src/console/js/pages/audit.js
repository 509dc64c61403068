// The audit log: who did what to what, when, from where and why. It is only ever added to.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { to } from '../router.js';
import { statusWord } from '../status.js';
import {
  dayStart,
  dialog,
  facts,
  failed,
  h,
  input,
  loading,
  menu,
  pageHead,
  pages,
  put,
  settled,
  table,
  time,
} from '../ui.js';

const KEYS = ['actor', 'action', 'group', 'batch_no', 'job', 'from', 'to'];
const jobOf = (r) => r.job_code ?? r.job;

export async function mount(el, ctx) {
  ctx.title(t('nav.audit'));
  const wanted = Object.fromEntries(KEYS.map((k) => [k, ctx.query.get(k) ?? '']));
  const host = h('div');
  const asked = () => ({ ...wanted, from: dayStart(wanted.from), to: dayStart(wanted.to, 1) });
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    read();
  };
  const grow = pages({
    load: (cursor) => api.get('/audit', { ...asked(), limit: 100, cursor }),
    make: (items) =>
      table({
        caption: t('nav.audit'),
        rows: items,
        rowKey: (r) => String(r.id ?? r.audit_id ?? `${r.at}${r.action}${jobOf(r)}`),
        test: 'audit',
        onOpen: show,
        tall: true,
        empty: { title: t(Object.values(wanted).some(Boolean) ? 'common.nothing_fits' : 'audit.none') },
        columns: [
          { key: 'at', label: t('common.when'), cell: (r) => time(r.at, { seconds: true }) },
          { key: 'actor', label: t('audit.actor'), cell: (r) => h('span', { title: r.host }, r.actor) },
          { key: 'host', label: t('audit.from'), hide: 'middle' },
          { key: 'action', label: t('audit.action'), cell: (r) => h('code', r.action) },
          {
            key: 'on',
            label: t('audit.on'),
            value: (r) => `${r.group ?? ''} ${r.batch_no ?? ''}`,
            cell: (r) =>
              r.group && r.batch_no
                ? h('a', { href: to`/batches/${r.group}/${r.batch_no}` }, `${r.group} · ${r.batch_no}`)
                : (r.group ??
                  ['schedule', 'node', 'calendar', 'user', 'name', 'token']
                    .map((k) => r.detail?.[k])
                    .find((x) => typeof x === 'string') ??
                  ''),
          },
          { key: 'job', label: t('job.one'), value: jobOf, cell: (r) => jobOf(r) ?? '' },
          { key: 'change', label: t('audit.change'), sort: false, hide: 'narrow', cell: (r) => changeWords(r.detail) },
          {
            key: 'reason',
            label: t('act.reason'),
            cls: 'clip',
            cell: (r) => h('span', { title: r.reason }, r.reason ?? ''),
          },
        ],
      }),
  });
  async function read() {
    put(host, loading());
    try {
      await grow.start();
      put(host, grow.el);
    } catch (error) {
      put(host, failed(error, read));
    }
  }
  const text = (key, label) =>
    input({
      type: 'search',
      label,
      placeholder: label,
      value: wanted[key],
      test: `filter-${key}`,
      oninput: settled(350, (v) => change({ [key]: v.trim() })),
    });
  put(
    el,
    pageHead({
      title: t('nav.audit'),
      sub: t('audit.lead'),
      actions: [
        menu(
          t('common.export'),
          () =>
            ['csv', 'jsonl'].map((format) => ({
              label: format.toUpperCase(),
              icon: 'download',
              href: api.href('/audit/export', { ...asked(), format }),
              test: `export-${format}`,
            })),
          { icon: 'download', test: 'export' },
        ),
      ],
    }),
    h(
      'form.filters',
      { role: 'search', 'aria-label': t('common.filter'), onsubmit: (e) => e.preventDefault() },
      text('actor', t('audit.actor')),
      text('action', t('audit.action')),
      text('group', t('group.one')),
      text('batch_no', t('batch.no')),
      text('job', t('job.one')),
      input({ type: 'date', label: t('common.from'), value: wanted.from, onchange: (from) => change({ from }) }),
      h('span.muted', '–'),
      input({ type: 'date', label: t('common.to'), value: wanted.to, onchange: (v) => change({ to: v }) }),
    ),
    host,
  );
  await read();
}

const side = (detail, which) =>
  [detail?.[which]?.status && statusWord(detail[which].status), detail?.[which]?.run_mode].filter(Boolean).join(' ');
function changeWords(detail) {
  const [a, b] = [side(detail, 'before'), side(detail, 'after')];
  return a || b ? h('span.nowrap', a || '–', ' → ', b || '–') : '';
}

function show(r) {
  dialog({
    title: `${r.action} · ${r.actor}`,
    size: 'm',
    closeOutside: true,
    body: [
      facts([
        [t('common.when'), time(r.at, { seconds: true, date: true })],
        [t('audit.actor'), r.actor],
        [t('audit.from'), r.host],
        [t('group.one'), r.group],
        [t('batch.no'), r.batch_no],
        [t('job.one'), jobOf(r)],
        [t('act.reason'), r.reason],
        [t('audit.seal'), r.seal_no ? h('code', `${r.seal_no}:${r.chain_hash}`) : t('audit.unsealed')],
      ]),
      r.detail && h('pre.code', JSON.stringify(r.detail, null, 2)),
    ],
  });
}
