// One batch: how it stands, what it needs, and its jobs in six ways of looking at them.

import { act, whyNot, actionOf } from '../actions.js';
import { api, ApiError, live } from '../api.js';
import { t } from '../i18n.js';
import { closePanel, openJob } from '../job_panel.js';
import { setQuery, to } from '../router.js';
import { isActive, isBad, isFinal, rank, statusWord } from '../status.js';
import { store } from '../store.js';
import {
  announce,
  badge,
  button,
  command,
  confirmReason,
  counts,
  duration,
  facts,
  failed,
  glyph,
  h,
  icon,
  loading,
  menu,
  pageHead,
  poll,
  progress,
  put,
  settled,
  since,
  tabs,
  time,
  toast,
} from '../ui.js';
import { expectedEnd, latePanel } from './batch_outlook.js';

const TABS = [
  ['dag', 'dag'],
  ['list', 'list'],
  ['grid', 'grid'],
  ['gantt', 'gantt'],
  ['compare', 'compare'],
  ['changes', 'audit'],
];
const MODULES = {
  dag: () => import('./batch_dag.js'),
  list: () => import('./batch_list.js'),
  grid: () => import('./group_grid.js'),
  gantt: () => import('./batch_gantt.js'),
  compare: () => import('./compare.js'),
  changes: () => import('./batch_changes.js'),
};

export async function mount(el, ctx) {
  const { group, no } = ctx.params;
  const at = api.path`/groups/${group}/batches/${no}`;
  ctx.title(`${no} · ${group}`);
  const head = h('div', { 'data-test': 'batch' });
  const bar = h('div');
  const body = h('div.tab-body', { role: 'tabpanel', tabindex: '-1' });
  let batch;
  let shown = null;
  let drawn = 0;
  const states = new Map();
  const tabOf = (next) => (MODULES[next] ? next : innerWidth < 720 ? 'list' : 'dag');
  let early = tabOf(ctx.params.tab) === 'dag' ? MODULES.dag().then((m) => m.early(group, no, ctx.query)) : null;
  // A refusal is told by the tab that waits for it.
  early?.catch(() => {});

  const keep = (next) => {
    const before = batch?.status;
    batch = next;
    states.clear();
    for (const job of next.jobs ?? []) states.set(job.job_code, job);
    if (before && before !== next.status)
      announce(t('batch.is_now', { batch: `${group} ${no}`, status: statusWord(next.status) }));
  };
  const refresh = async () => {
    const next = await api.get(at);
    const changed = new Set(
      (next.jobs ?? [])
        .filter((j) => JSON.stringify(j) !== JSON.stringify(states.get(j.job_code)))
        .map((j) => j.job_code),
    );
    keep(next);
    drawHead();
    if (changed.size) shown?.update?.(states, changed);
    tabCtx.batch = batch;
  };
  // Often enough to be true, seldom enough for a batch of two thousand jobs.
  const refreshSoon = settled(900, () => el.isConnected && refresh().catch(() => {}));

  const tabCtx = {
    group,
    no,
    states,
    setQuery,
    query: ctx.query,
    refresh,
    takeEarly: () => {
      const taken = early;
      early = null;
      return taken;
    },
    openJob: (code) =>
      openJob({ group, no, job: code, batch, onChange: refreshSoon, hear: (fn) => store.on('job', fn) }),
    act: (action, what) => act({ group, no, action, ...what, onDone: refreshSoon }),
    get readonly() {
      return !store.may('run', group);
    },
  };

  async function showTab(next, params) {
    const mine = ++drawn;
    const name = tabOf(next);
    shown?.destroy?.();
    shown = null;
    put(
      bar,
      tabs({
        label: t('batch.views'),
        current: name,
        items: TABS.map(([key, mark]) => [key, t(`batch.tab_${key}`), mark, `${to`/batches/${group}/${no}`}/${key}`]),
      }),
    );
    put(body, loading());
    Object.assign(tabCtx, { batch, query: params });
    try {
      const module = await MODULES[name]();
      if (mine !== drawn) return;
      put(body);
      body.className = `tab-body tab-body-${name}`;
      const made = await module.mount(body, tabCtx);
      if (mine !== drawn) made?.destroy?.();
      else shown = made ?? {};
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      if (mine === drawn)
        put(
          body,
          failed(error, () => showTab(name, params)),
        );
    }
  }

  function drawHead() {
    const held = document.activeElement?.closest?.('[data-focus]')?.dataset.focus;
    put(
      head,
      header({
        batch,
        group,
        no,
        refresh: refreshSoon,
        openJob: tabCtx.openJob,
        pick: (status) => {
          location.hash = `${to`/batches/${group}/${no}`}/list?status=${status}`;
        },
      }),
    );
    if (held) head.querySelector(`[data-focus="${CSS.escape(held)}"]`)?.focus();
    late.update(batch);
  }

  const late = latePanel(at, tabCtx.openJob);
  keep(await api.get(at));
  put(el, head, late.el, bar, body);
  drawHead();
  await showTab(ctx.params.tab, ctx.query);
  if (ctx.query.get('job')) tabCtx.openJob(ctx.query.get('job'));

  // --- What happens while it is looked at ---
  let fresh = new Map();
  const flush = settled(120, () => {
    const changed = new Set(fresh.keys());
    fresh = new Map();
    shown?.update?.(states, changed);
    drawHead();
    refreshSoon();
  });
  const ends = [
    live(
      { group, batch_no: no },
      {
        job: (event) => {
          const code = event.job_code ?? event.job;
          store.tell('job', event);
          const before = states.get(code);
          if (!before) return refreshSoon();
          if (
            event.status &&
            event.status !== before.status &&
            isBad(event.status) &&
            event.status !== 'UPSTREAM_FAILED'
          )
            announce(t('job.is_now', { job: code, status: statusWord(event.status) }));
          const { group: _g, batch_no: _b, job: _j, ...news } = event;
          const next = { ...before, ...news, job_code: code };
          states.set(code, next);
          const i = batch.jobs.findIndex((j) => j.job_code === code);
          if (i >= 0) batch.jobs[i] = next;
          fresh.set(code, next);
          return flush();
        },
        batch: refreshSoon,
        gap: refreshSoon,
        state: (is) => store.tell('live', is),
      },
    ),
    // Without events (a proxy that keeps them back) it is asked for now and then; with an ETag that costs little.
    poll(() => (isFinal(batch.status) ? null : refresh()), 10000),
  ];
  return {
    change(params, query) {
      if (params.group !== group || params.no !== no) return false;
      ctx.query = query;
      showTab(params.tab, query);
      if (query.get('job')) tabCtx.openJob(query.get('job'));
      return true;
    },
    destroy() {
      drawn += 1;
      shown?.destroy?.();
      closePanel();
      ends.forEach((end) => end());
    },
  };
}

const tally = (batch) => {
  const of = {};
  for (const job of batch.jobs ?? []) of[job.status] = (of[job.status] ?? 0) + 1;
  return of;
};

function header({ batch, group, no, refresh, openJob: open, pick }) {
  const path = api.path`/groups/${group}/batches/${no}`;
  const is = isActive(batch.status);
  const fails = (batch.jobs ?? [])
    .filter((j) => isBad(j.status) && j.status !== 'UPSTREAM_FAILED')
    .sort((a, b) => rank(a.status) - rank(b.status));
  const blocked = (batch.jobs ?? []).filter((j) => j.status === 'UPSTREAM_FAILED').length;
  const run = store.why('run', group);
  const whole = (what, verb, kind, lead) =>
    confirmReason({
      title: t(`batch.${what}_title`, { batch: `${group} · ${no}` }),
      lead: lead ?? t(`batch.${what}_lead`),
      verb,
      kind,
      run: async (reason) => {
        await api.post(`${path}/${what}`, { reason });
        toast(t(`batch.${what}_done`), 'good');
        refresh();
      },
    });
  const runningNow = (batch.jobs ?? []).filter((j) => isActive(j.status)).length;
  const waitingNow = (batch.jobs ?? []).filter((j) => !isFinal(j.status) && !isActive(j.status)).length;
  const mark = badge(batch.status, { paused: batch.is_paused && is });
  mark.classList.add('badge-large');
  mark.dataset.test = 'batch-status';
  const shut = batch.removing ? t('batch.removing_why') : null;
  const actions = [
    (fails.length > 0 || blocked > 0) &&
      button(t('action.rerun-from-failure'), {
        kind: is ? undefined : 'primary',
        icon: 'rerun',
        disabled: shut ?? whyNot(actionOf('rerun-from-failure'), group),
        attrs: { 'data-action': 'rerun-from-failure', 'data-focus': 'rff' },
        onclick: () => {
          act({ group, no, action: 'rerun-from-failure', onDone: refresh });
        },
      }),
    is &&
      (batch.is_paused
        ? button(t('batch.resume'), {
            kind: 'primary',
            icon: 'play',
            disabled: shut ?? run,
            attrs: { 'data-action': 'resume', 'data-focus': 'pause' },
            onclick: () => {
              whole('resume', t('batch.resume'));
            },
          })
        : button(t('batch.pause'), {
            icon: 'pause',
            disabled: shut ?? run,
            attrs: { 'data-action': 'pause', 'data-focus': 'pause' },
            onclick: () => {
              whole('pause', t('batch.pause'));
            },
          })),
    is &&
      button(t('batch.kill'), {
        icon: 'stop',
        kind: 'danger',
        disabled: shut ?? run,
        attrs: { 'data-action': 'kill-batch', 'data-focus': 'kill' },
        onclick: () => {
          whole('kill', t('batch.kill'), 'danger', t('batch.kill_lead', { running: runningNow, waiting: waitingNow }));
        },
      }),
    menu(
      t('common.more_actions'),
      [
        { label: t('batch.compare_with'), icon: 'compare', href: `${to`/batches/${group}/${no}`}/compare` },
        {
          label: t('batch.audit'),
          icon: 'audit',
          href: `#/audit?group=${encodeURIComponent(group)}&batch_no=${encodeURIComponent(no)}`,
        },
        { label: t('batch.as_json'), icon: 'download', href: api.href(path) },
      ],
      { icon: 'more', iconOnly: true, test: 'batch-more' },
    ),
  ];
  return [
    pageHead({
      title: no,
      badge: mark,
      crumbs: [
        [t('nav.batches'), '#/batches'],
        [group, to`/groups/${group}`],
      ],
      actions: actions.filter(Boolean),
    }),
    h(
      'div.batch-head',
      h('div.batch-progress', progress(tally(batch)), counts(tally(batch), { onPick: pick })),
      facts([
        [t('batch.began'), time(batch.create_time, { seconds: true })],
        is
          ? [t('batch.runs_since'), since(batch.create_time)]
          : [t('batch.took'), duration(Date.parse(batch.end_time) - Date.parse(batch.create_time))],
        is
          ? [t('batch.expected'), expectedEnd(batch.eta)]
          : [t('batch.ended'), time(batch.end_time, { seconds: true })],
        [
          t('due.due'),
          batch.due
            ? h(
                'span',
                { class: batch.is_late ? 'late' : null },
                time(batch.due),
                batch.is_late && ` · ${t('due.late')}${batch.late_by_ms ? ` ${duration(batch.late_by_ms)}` : ''}`,
              )
            : null,
        ],
        [
          t('batch.business_date'),
          batch.free_text
            ? h(
                'span',
                { 'data-test': 'free-text', title: t('open.free_text_hint') },
                [batch.business_date, t('batch.free_text')].filter(Boolean).join(' · '),
              )
            : batch.business_date,
        ],
        [t('batch.started_by'), batch.started_by],
        [
          t('batch.params'),
          Object.keys(batch.params ?? {}).length
            ? h(
                'span.mono',
                Object.entries(batch.params)
                  .map(([k, v]) => `${k}=${v}`)
                  .join(' '),
              )
            : null,
        ],
      ]),
      batch.reason && h('p.muted', `${t('act.reason')}: ${batch.reason}`),
    ),
    batch.is_paused && is && h('div.note.note-warning', icon('pause'), h('span', t('batch.paused_note'))),
    is &&
      batch.eta?.dispatched === false &&
      h(
        'div.note.note-warning',
        icon('warning'),
        h('div', t('batch.nobody'), command(`procession run --batch-no ${no} --group ${group} --resume`)),
      ),
    fails.length > 0 &&
      h(
        'section.note.note-bad',
        { 'aria-label': t('dash.failures'), 'data-test': 'batch-failures' },
        icon('warning'),
        h(
          'div.fails',
          h(
            'p.strong',
            t('batch.failed_n', { n: fails.length }),
            blocked > 0 && ` ${t('batch.blocked_n', { n: blocked })}`,
          ),
          h(
            'ul',
            fails
              .slice(0, 5)
              .map((j) =>
                h(
                  'li',
                  glyph(j.status),
                  h(
                    'button.link',
                    { type: 'button', 'data-focus': `f-${j.job_code}`, onclick: () => open(j.job_code) },
                    j.job_code,
                  ),
                  h('span.need-why', { title: j.error_message }, j.error_message ?? statusWord(j.status)),
                ),
              ),
            fails.length > 5 &&
              h(
                'li',
                h(
                  'button.link',
                  { type: 'button', onclick: () => pick('FAILED') },
                  t('common.and_n_more', { n: fails.length - 5 }),
                ),
              ),
          ),
        ),
      ),
  ];
}
