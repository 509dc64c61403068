// One job: what it is, how long it takes, its last runs, and changing it.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { to } from '../router.js';
import { store } from '../store.js';
import {
  badge,
  button,
  card,
  duration,
  empty,
  facts,
  failed,
  h,
  linkButton,
  loading,
  num,
  pageHead,
  put,
  shown,
  table,
  time,
} from '../ui.js';
import { codeEditor } from '../edit/code.js';
import { editJob, languageOf } from '../edit/job_form.js';
import { standing } from './jobs.js';
import { mountTrend } from './trend.js';

export async function mount(el, ctx) {
  const { code } = ctx.params;
  const at = api.path`/jobs/${code}`;
  ctx.title?.(code);
  let ended = false;
  let course = null;

  async function draw() {
    await shown(
      el,
      () => api.get(at),
      (doc) => {
        const { job } = doc;
        const stats = h('div', loading());
        const runs = h('div', loading());
        const fill = async (host, load) => {
          try {
            const made = await load();
            if (!ended) put(host, made);
          } catch (error) {
            if (!ended)
              put(
                host,
                error.status === 404 || error.status === 405
                  ? empty({ title: t('jbd.no_runs') })
                  : failed(error, () => fill(host, load)),
              );
          }
        };
        course?.destroy();
        course = null;
        const trend = h('div');
        mountTrend(trend, { group: job.group, job: job.code }).then((made) => {
          if (ended) made.destroy();
          else course = made;
        });
        fill(stats, async () => statsOf(await api.get(`${at}/stats`)));
        fill(runs, async () => history(await api.get(`${at}/history`, { limit: 30 }), job.group, job.code));
        const body = bodyOf(job);
        const why = store.why('edit', job.group) ?? false;
        return h(
          'div.stack',
          pageHead({
            title: job.code,
            sub: job.name !== job.code ? job.name : null,
            crumbs: [[t('jobs.title'), '#/jobs'], [job.code]],
            badge: standing({ ...job, run_mode: doc.run_mode, violation: doc.violation }),
            actions: [
              linkButton(t('jbd.around'), `${to`/groups/${job.group}/dag`}?focus=${encodeURIComponent(job.code)}`, {
                icon: 'groups',
                test: 'job-dag',
              }),
              button(t('sch.edit'), {
                icon: 'edit',
                kind: 'primary',
                disabled: why,
                test: 'job-edit',
                onclick: () => editJob({ doc, onDone: () => !ended && draw() }),
              }),
            ],
          }),
          h(
            'div.sch-cols',
            card(
              t('jbd.what'),
              facts([
                [t('sf.group'), h('a', { href: to`/groups/${job.group}` }, job.group)],
                [t('jobs.type'), h('code', job.type)],
                [t('jbd.source'), job.source],
                [t('jbd.proc'), job.proc_name && h('code', job.proc_name)],
                [t('jbd.executor'), job.executor && h('code', job.executor.app)],
                [t('jbd.handler'), job.executor?.handler && h('code', job.executor.handler)],
                [t('jbd.route'), job.executor && `${job.executor.route} · ${job.executor.block}`],
                [
                  t('jbd.after'),
                  links(doc.dependencies ?? (doc.depends_on ?? []).map((d) => ({ depends_on: d })), job.group),
                ],
                [
                  t('jbd.before'),
                  links(
                    (doc.children ?? []).map((d) => ({ depends_on: d })),
                    job.group,
                  ),
                ],
                [
                  t('jbd.externals'),
                  doc.externals?.length
                    ? h(
                        'ul',
                        doc.externals.map((x) => h('li', h('code', typeof x === 'string' ? x : JSON.stringify(x)))),
                      )
                    : null,
                ],
                [t('jbd.timeout'), job.timeout_sec && duration(job.timeout_sec * 1000)],
                [
                  t('jbd.retries'),
                  job.retry_count
                    ? t('jbd.retries_n', { n: job.retry_count, delay: duration((job.retry_delay_sec ?? 0) * 1000) })
                    : '0',
                ],
                [t('jbd.priority'), job.priority || null],
                [t('jbd.idempotent'), job.idempotent ? t('jbd.yes') : t('jbd.no')],
                [t('jbd.tx'), job.tx],
                [t('jbd.rule'), job.trigger_rule !== 'all_success' ? job.trigger_rule : null],
                [t('jbd.time'), job.schedule_time],
                [t('jobs.owner'), job.owner],
                [t('jobs.tags'), job.tags?.join(', ')],
                [t('jbd.notify'), job.notify_email?.join(', ')],
                [t('jbd.version'), doc.group_version],
              ]),
            ),
            card(t('jbd.durations'), stats),
          ),
          body &&
            card(
              t('jbd.body'),
              codeEditor({
                value: body,
                language: languageOf(job),
                readonly: true,
                label: t('jbd.body'),
                test: 'job-body',
                rows: Math.min(24, body.split('\n').length + 1),
              }).el,
            ),
          job.params?.length
            ? card(
                t('sf.params'),
                table({
                  caption: t('sf.params'),
                  rows: job.params,
                  rowKey: (p) => p.name,
                  locked: true,
                  columns: [
                    { key: 'name', label: t('jbd.p_name'), cell: (p) => h('code', p.name) },
                    { key: 'mode', label: t('jbd.p_mode'), cell: (p) => p.mode ?? 'in' },
                    { key: 'type', label: t('jbd.p_type'), cell: (p) => p.type ?? 'text' },
                    {
                      key: 'value',
                      label: t('jbd.p_value'),
                      cell: (p) =>
                        h(
                          'code',
                          p.value === undefined || p.value === null
                            ? ''
                            : typeof p.value === 'object'
                              ? JSON.stringify(p.value)
                              : String(p.value),
                        ),
                    },
                  ],
                }).el,
              )
            : null,
          trend,
          card(t('jbd.runs'), runs),
        );
      },
    );
  }
  await draw();
  return {
    destroy() {
      ended = true;
      course?.destroy();
    },
  };
}

/** The text that is run, where there is one. */
export function bodyOf(job) {
  if (typeof job.script === 'string') return job.script;
  if (typeof job.sql === 'string') return job.sql;
  if (job.sql && typeof job.sql === 'object')
    return Object.entries(job.sql)
      .map(([dialect, text]) => `-- ${dialect}\n${text}`)
      .join('\n\n');
  return '';
}

function links(edges, group) {
  if (!edges.length) return null;
  return h(
    'span.jb-links',
    edges.map((e, i) => [
      i ? ', ' : '',
      h('a', { href: to`/jobs/${`${group}.${e.depends_on}`}` }, e.depends_on),
      e.when &&
        e.when !== 'success' &&
        h('span.muted', ` (${typeof e.when === 'string' ? e.when : JSON.stringify(e.when)})`),
    ]),
  );
}

function statsOf(s) {
  if (!s || !s.successful_attempts) return empty({ title: t('jbd.no_history'), lead: t('jbd.no_history_lead') });
  return facts([
    [t('jbd.tries'), num(s.successful_attempts)],
    [t('jbd.p50'), duration(s.p50_ms)],
    [t('jbd.p95'), duration(s.p95_ms)],
    [t('jbd.last'), duration(s.last_ms)],
    [
      t('jbd.drift'),
      s.drift_percent === null || s.drift_percent === undefined
        ? null
        : h(
            'span',
            { class: s.drift_percent > 50 ? 'late' : null },
            `${s.drift_percent > 0 ? '+' : ''}${s.drift_percent}%`,
          ),
    ],
  ]);
}

function history(got, group, code) {
  const rows = got?.items ?? got ?? [];
  const most = Math.max(1, ...rows.map((r) => r.duration_ms ?? 0));
  return table({
    caption: t('jbd.runs'),
    rows,
    rowKey: (r) => `${r.batch_no}-${r.attempt}`,
    locked: true,
    test: 'job-history',
    empty: empty({ title: t('jbd.no_runs') }),
    columns: [
      {
        key: 'no',
        label: t('sf.no'),
        cell: (r) =>
          h(
            'a.strong',
            { href: `${to`/batches/${r.group ?? group}/${r.batch_no}`}?job=${encodeURIComponent(code)}` },
            r.batch_no,
          ),
      },
      { key: 'status', label: t('sch.state'), cell: (r) => badge(r.status) },
      { key: 'start', label: t('bf.begun'), cell: (r) => time(r.start_time ?? r.start) },
      {
        key: 'took',
        label: t('bf.took'),
        num: true,
        cell: (r) => (r.duration_ms == null ? '–' : duration(r.duration_ms)),
      },
      {
        key: 'bar',
        label: '',
        sort: false,
        cell: (r) =>
          r.duration_ms
            ? h('span.jb-bar', { css: { width: `${Math.max(2, Math.round((r.duration_ms / most) * 140))}px` } })
            : null,
        hide: 'narrow',
      },
      { key: 'attempt', label: t('sch.tries'), num: true, cell: (r) => r.attempt ?? '' },
      { key: 'error', label: t('sch.why'), cell: (r) => r.message ?? r.error_message ?? '' },
    ],
  }).el;
}
