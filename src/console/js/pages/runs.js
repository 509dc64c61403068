// One list of the runs of all jobs: by group, state, job and day.

import { api, live } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { STATUSES, statusWord } from '../status.js';
import { store } from '../store.js';
import {
  badge,
  button,
  dayStart,
  duration,
  empty,
  failed,
  h,
  input,
  loading,
  pageHead,
  pages,
  put,
  select,
  settled,
  since,
  table,
  time,
} from '../ui.js';

const PAGE = 100;
const runHref = (run) => `${to`/batches/${run.group}/${run.batch_no}/list`}?job=${encodeURIComponent(run.job)}`;
/** The panel of the job with its log: `line` opens it. */
const logHref = (run) => `${runHref(run)}&line=${run.attempt}:0`;

export async function mount(el, ctx) {
  ctx.title(t('nav.runs'));
  const wanted = Object.fromEntries(['group', 'status', 'q', 'from', 'to'].map((k) => [k, ctx.query.get(k) ?? '']));
  const groups = await api.all('/groups').catch(() => []);
  const host = h('div');
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    read();
  };
  let count = 0;
  const grow = pages({
    onCount: (n) => (count = n),
    load: (cursor) =>
      api.get('/runs', { ...wanted, from: dayStart(wanted.from), to: dayStart(wanted.to, 1), limit: PAGE, cursor }),
    make: (rows) =>
      table({
        caption: t('nav.runs'),
        rows,
        rowKey: (run) => String(run.queue_id),
        test: 'runs',
        onOpen: (run) => go(runHref(run)),
        empty: empty({ title: t('runs.none'), lead: t('runs.none_lead') }),
        columns: columns(),
      }),
  });
  async function read(quiet) {
    if (!quiet) put(host, loading());
    try {
      await grow.start();
      if (host.firstChild !== grow.el) put(host, grow.el);
    } catch (error) {
      if (!quiet) put(host, failed(error, read));
    }
  }
  put(
    el,
    pageHead({ title: t('nav.runs'), sub: t('runs.sub') }),
    h(
      'div.filters',
      input({
        type: 'search',
        label: t('runs.job'),
        placeholder: t('runs.job'),
        value: wanted.q,
        test: 'runs-q',
        oninput: settled(250, (q) => change({ q })),
      }),
      select({
        label: t('group.one'),
        value: wanted.group,
        test: 'runs-group',
        options: [['', t('cal.all_groups')], ...groups.map((one) => [one.code ?? one.group, one.code ?? one.group])],
        onchange: (group) => change({ group }),
      }),
      select({
        label: t('common.status'),
        value: wanted.status,
        test: 'runs-status',
        options: [
          ['', t('runs.any_status')],
          ...STATUSES.filter((status) => status !== 'SKIPPED_BRANCH').map((status) => [status, statusWord(status)]),
        ],
        onchange: (status) => change({ status }),
      }),
      input({
        type: 'date',
        label: t('runs.from'),
        value: wanted.from,
        test: 'runs-from',
        onchange: (from) => change({ from }),
      }),
      input({
        type: 'date',
        label: t('runs.to'),
        value: wanted.to,
        test: 'runs-to',
        onchange: (day) => change({ to: day }),
      }),
      Object.values(wanted).some(Boolean)
        ? button(t('runs.clear'), { kind: 'quiet', test: 'runs-clear', onclick: () => go('#/runs') })
        : null,
    ),
    host,
  );
  await read();
  const again = settled(1500, () => {
    // Who is on a later page, or in the table, is not disturbed.
    if (count > PAGE || host.contains(document.activeElement) || document.querySelector('dialog[open]')) return;
    read(true);
  });
  const end = live({}, { job: again, gap: again, state: (is) => store.tell('live', is) });
  return { destroy: end };
}

const columns = () => [
  {
    key: 'job',
    label: t('grid.job'),
    value: (run) => run.job,
    cell: (run) => h('a.strong', { href: runHref(run) }, run.job),
  },
  { key: 'group', label: t('group.one'), cell: (run) => h('a', { href: to`/groups/${run.group}` }, run.group) },
  {
    key: 'batch_no',
    label: t('batch.no'),
    cell: (run) => h('a', { href: to`/batches/${run.group}/${run.batch_no}` }, run.batch_no),
  },
  { key: 'status', label: t('common.status'), cell: (run) => badge(run.status) },
  {
    key: 'start',
    label: t('batch.began'),
    value: (run) => (run.start ? Date.parse(run.start) : null),
    cell: (run) => time(run.start),
  },
  {
    key: 'took',
    label: t('batch.took'),
    num: true,
    value: (run) => run.duration_ms,
    cell: (run) =>
      run.duration_ms !== null
        ? duration(run.duration_ms)
        : run.status === 'RUNNING' && run.start
          ? since(run.start)
          : '–',
  },
  { key: 'attempt', label: t('runs.attempts'), num: true, hide: 'narrow' },
  {
    key: 'message',
    label: t('inbox.error'),
    sort: false,
    hide: 'narrow',
    cell: (run) => h('div.inbox-error', { title: run.message }, run.message ?? ''),
  },
  {
    key: 'log',
    label: '',
    sort: false,
    cell: (run) =>
      run.attempt ? h('a', { href: logHref(run), 'data-test': `runs-log-${run.job}` }, t('panel.log')) : '',
  },
];
