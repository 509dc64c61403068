// The jobs of a batch as a table: all that the picture shows, for who reads better than looks. Also where jobs are
// chosen to act on.

import { ACTIONS, act, whyNot } from '../actions.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { STATUSES, isActive, rank, statusWord } from '../status.js';
import { badge, button, bytes, duration, h, input, menu, put, select, settled, since, table, time } from '../ui.js';

export async function mount(el, ctx) {
  const { group, no, states } = ctx;
  const wanted = {
    q: ctx.query.get('q') ?? '',
    status: ctx.query.get('status') ?? '',
    tag: ctx.query.get('tag') ?? '',
  };
  const chosen = new Set();
  const left = new Map();
  const all = () => [...states.values()];
  const fits = (job) => {
    const q = wanted.q.toLowerCase();
    return (
      (!wanted.status || wanted.status.split(',').includes(job.status)) &&
      (!wanted.tag || job.tags?.includes(wanted.tag)) &&
      (!q ||
        job.job_code.toLowerCase().includes(q) ||
        (job.job_name ?? '').toLowerCase().includes(q) ||
        (job.error_message ?? '').toLowerCase().includes(q))
    );
  };
  const order = new Map([...states.keys()].map((code, i) => [code, i]));
  const expected = new Map((ctx.batch.eta?.expected?.jobs ?? []).map((j) => [j.job_code, j]));
  const path = new Set(ctx.batch.eta?.expected?.critical_path ?? []);
  const tags = [...new Set(all().flatMap((j) => j.tags ?? []))].sort();

  const list = table({
    caption: t('batch.jobs_of', { batch: `${group} ${no}` }),
    test: 'jobs',
    rowKey: (j) => j.job_code,
    select: chosen,
    onSelect: drawBar,
    onOpen: (j) => ctx.openJob(j.job_code),
    rowClass: (j) =>
      ['FAILED', 'TIMEOUT', 'UNKNOWN', 'KILLED'].includes(j.status) ? 'row-bad' : j.is_late ? 'row-late' : null,
    rows: [],
    tall: true,
    current: () => document.getElementById('job-panel')?.dataset.job,
    empty: { title: t('common.nothing_fits') },
    columns: [
      {
        key: 'job_code',
        label: t('job.one'),
        cell: (j) =>
          h(
            'span',
            { class: 'job-name' },
            h('button.link.strong', { type: 'button', onclick: () => ctx.openJob(j.job_code) }, j.job_code),
            path.has(j.job_code) && h('span.tag', { title: t('job.critical_hint') }, t('job.critical')),
          ),
      },
      {
        key: 'job_name',
        label: t('job.name'),
        hide: 'middle',
        cls: 'clip name-col',
        cell: (j) => h('span.muted', { title: j.job_name }, j.job_name),
      },
      {
        key: 'status',
        label: t('common.status'),
        value: (j) => rank(j.status),
        cell: (j) => [badge(j.status, { mode: j.run_mode }), j.is_late && h('span.late', ` ${t('due.late')}`)],
      },
      { key: 'job_type', label: t('job.type'), hide: 'narrow' },
      {
        key: 'start_time',
        label: t('job.began'),
        hide: 'narrow',
        cell: (j) =>
          j.start_time
            ? time(j.start_time, { seconds: true })
            : expected.get(j.job_code)?.start
              ? h(
                  'span.muted',
                  { title: t('job.expected_start') },
                  '~ ',
                  time(expected.get(j.job_code).start, { seconds: true }),
                )
              : '–',
      },
      {
        key: 'duration_ms',
        label: t('job.took'),
        num: true,
        value: (j) => j.duration_ms ?? (j.start_time ? Date.now() - Date.parse(j.start_time) : null),
        cell: (j) =>
          isActive(j.status) && j.start_time
            ? since(j.start_time)
            : j.duration_ms === null || j.duration_ms === undefined
              ? h(
                  'span.muted',
                  expected.get(j.job_code)?.p50_ms ? `~ ${duration(expected.get(j.job_code).p50_ms)}` : '–',
                )
              : duration(j.duration_ms),
      },
      { key: 'attempt', label: t('job.starts'), num: true, hide: 'middle' },
      ...(all().some((j) => j.due)
        ? [{ key: 'due', label: t('due.due'), hide: 'middle', cell: (j) => (j.due ? time(j.due) : '–') }]
        : []),
      {
        key: 'result',
        label: t('job.result'),
        sort: false,
        cls: 'clip result-col',
        cell: (j) => result({ ...j, outputs: j.outputs ?? left.get(j.job_code) }),
      },
    ],
  });

  const bar = h('div.selection', { role: 'region', 'aria-label': t('act.bulk'), hidden: true });
  const count = h('span.muted', { role: 'status' });
  function drawBar() {
    for (const code of [...chosen]) if (!states.has(code)) chosen.delete(code);
    bar.hidden = chosen.size === 0;
    const jobs = [...chosen].map((c) => states.get(c));
    put(
      bar,
      h('span.strong', t('act.n_chosen', { n: chosen.size })),
      ACTIONS.filter((a) => !a.whole).map((a) => {
        const can = jobs.filter((j) => !whyNot(a, group, j));
        if (!can.length && jobs.length) return null;
        return button(can.length === jobs.length ? t(`action.${a.name}`) : `${t(`action.${a.name}`)} (${can.length})`, {
          icon: a.icon,
          small: true,
          attrs: { 'data-action': a.name },
          onclick: () => {
            act({ group, no, action: a.name, jobs: can.map((j) => j.job_code), onDone: done });
          },
        });
      }),
      h('span.spacer'),
      button(t('act.choose_none'), {
        kind: 'quiet',
        small: true,
        icon: 'close',
        onclick: () => {
          chosen.clear();
          list.redraw();
          drawBar();
        },
      }),
    );
  }
  const done = () => {
    chosen.clear();
    drawBar();
    ctx.refresh();
  };
  const marks = () => {
    for (const tr of list.el.querySelectorAll('tbody tr[data-key]'))
      Object.assign(tr.dataset, { test: 'job', job: tr.dataset.key, status: states.get(tr.dataset.key)?.status ?? '' });
  };
  function draw() {
    const rows = all()
      .filter(fits)
      .sort((a, b) => order.get(a.job_code) - order.get(b.job_code));
    list.update(rows);
    marks();
    count.textContent =
      rows.length === states.size
        ? t('job.n', { n: rows.length })
        : t('job.n_of', { n: rows.length, all: states.size });
  }
  list.el.querySelector('.table-scroll').addEventListener('scroll', settled(60, marks), { passive: true });
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    draw();
  };
  const filter = () => Object.fromEntries(Object.entries(wanted).filter(([, v]) => v));
  put(
    el,
    h(
      'form.filters',
      { role: 'search', 'aria-label': t('common.filter'), onsubmit: (e) => e.preventDefault() },
      input({
        type: 'search',
        label: t('job.find'),
        placeholder: t('job.find'),
        value: wanted.q,
        test: 'filter-q',
        oninput: settled(150, (q) => change({ q })),
      }),
      select({
        label: t('common.status'),
        value: wanted.status,
        options: [
          ['', t('status.all')],
          ...(wanted.status.includes(',')
            ? [[wanted.status, wanted.status.split(',').map(statusWord).join(', ')]]
            : []),
          ['FAILED,TIMEOUT,UNKNOWN,KILLED', t('status.bad')],
          ...STATUSES.map((x) => [x, statusWord(x)]),
        ],
        test: 'filter-status',
        onchange: (status) => change({ status }),
      }),
      tags.length > 0 &&
        select({
          label: t('job.tag'),
          value: wanted.tag,
          options: [['', t('job.all_tags')], ...tags.map((x) => [x, x])],
          onchange: (tag) => change({ tag }),
        }),
      count,
      h('span.spacer'),
      menu(
        t('act.bulk'),
        () =>
          ACTIONS.filter((a) => !a.whole).map((a) => ({
            label: t('act.on_filtered', { action: t(`action.${a.name}`) }),
            icon: a.icon,
            kind: a.danger ? 'danger' : undefined,
            test: `bulk-${a.name}`,
            disabled: whyNot(a, group),
            run: () => act({ group, no, action: a.name, filter: filter(), onDone: done }),
          })),
        { icon: 'down', test: 'bulk' },
      ),
    ),
    bar,
    list.el,
  );
  // What jobs left may be megabytes: it is read for batches that a person can read.
  async function outputs() {
    if (states.size > 300) return;
    const full = await api.get(api.path`/groups/${group}/batches/${no}`, { outputs: true });
    for (const job of full.jobs ?? []) if (states.has(job.job_code)) left.set(job.job_code, job.outputs);
    draw();
  }
  const soon = settled(2500, () => el.isConnected && outputs().catch(() => {}));
  draw();
  outputs().catch(() => {});
  return {
    update() {
      draw();
      soon();
    },
    destroy() {},
  };
}

/** What came of a job, in a line. */
export function result(job) {
  if (job.error_message) return h('span.bad', { title: job.error_message }, job.error_message);
  const outputs = job.outputs;
  if (!outputs) return job.waits_on ? h('span.muted', { title: job.waits_on }, job.waits_on) : '';
  const words = Object.entries(outputs.values ?? {}).map(([k, v]) => `${k} = ${v ?? 'NULL'}`);
  for (const [k, stored] of Object.entries(outputs.stored ?? {})) {
    words.push(`${k} = <${t('panel.stored_value', { type: stored.type ?? 'text', size: bytes(stored.bytes) })}>`);
  }
  if (outputs.rows_affected > 0) words.push(t('job.rows_changed', { n: outputs.rows_affected }));
  const text = words.join(', ');
  return h('span.muted', { title: text }, text);
}
