// All schedules: when they fire next, what became of the last time, and why one does not fire.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import { ago, badge, button, empty, h, icon, pageHead, select, shown, table, time } from '../ui.js';
import { editSchedule, sentenceOf } from '../edit/schedule_form.js';

/** Whose batches it opens. */
export const targetOf = (s) => s.schedule?.group ?? s.group ?? s.schedule?.type ?? '';
export const codeOf = (s) => s.schedule?.code ?? s.code ?? (typeof s.schedule === 'string' ? s.schedule : '');
export const stateOf = (s) => String(s.status ?? '').toUpperCase();

/** When it fires, as its words have it. */
export function timingOf(def = {}) {
  if (def.cron) return def.cron;
  if (def.rule) return `${def.rule} ${def.at ?? ''}`;
  if (def.every_sec) return t('sch.every', { s: def.every_sec });
  if (def.delay_sec) return t('sch.delay', { s: def.delay_sec });
  if (def.once_at) return t('sch.once', { at: def.once_at });
  if (def.event) return t('sch.event', { name: def.event });
  if (def.after) return t('sch.after', { group: def.after.group ?? def.after });
  if (def.manual) return t('sf.kind_manual');
  return '';
}

export function scheduleMark(s) {
  const state = stateOf(s);
  const word =
    { ENABLED: 'active', PAUSED: 'paused', OVER: 'done', DONE: 'done', ENDED: 'done' }[state] ?? state.toLowerCase();
  const mark = { active: 'st-success', paused: 'st-paused', done: 'st-skipped' }[word] ?? 'st-warning';
  const known = t(`sch.state_${word}`);
  return h(
    `span.badge.${mark}`,
    { 'data-status': state, title: s.reason ?? null },
    icon(word === 'paused' ? 'pause' : word === 'active' ? 'clock' : 'info', 13),
    h('span', known.startsWith('sch.') ? state : known),
  );
}

export async function mount(el, ctx) {
  ctx.title?.(t('sch.title'));
  const words = { q: ctx.query?.get('q') ?? '', status: ctx.query?.get('status') ?? '' };
  const host = h('div');
  let all = [];
  let list = null;
  const search = h('input.dg-search', {
    type: 'search',
    placeholder: t('sch.search'),
    'aria-label': t('sch.search'),
    value: words.q,
    'data-test': 'schedule-search',
    oninput: () => {
      words.q = search.value;
      ctx.setQuery?.({ q: words.q });
      list?.update(sift());
    },
  });
  const sift = () =>
    all.filter(
      (s) =>
        (!words.status || stateOf(s) === words.status) &&
        (!words.q ||
          `${codeOf(s)} ${s.schedule?.name ?? ''} ${targetOf(s)}`.toLowerCase().includes(words.q.toLowerCase())),
    );
  el.append(
    pageHead({
      title: t('sch.title'),
      sub: t('sch.sub'),
      actions: [
        button(t('sf.add'), {
          icon: 'plus',
          kind: 'primary',
          test: 'schedule-add',
          disabled: store.why('edit') ?? false,
          onclick: () => editSchedule({ isNew: true, onDone: (code) => go(`/schedules/${encodeURIComponent(code)}`) }),
        }),
      ],
    }),
    h(
      'div.dg-tools',
      search,
      select({
        label: t('sch.state'),
        value: words.status,
        test: 'schedule-status',
        options: [
          ['', t('sch.any')],
          ['ENABLED', t('sch.state_active')],
          ['PAUSED', t('sch.state_paused')],
        ],
        onchange: (v) => {
          words.status = v;
          ctx.setQuery?.({ status: v });
          list?.update(sift());
        },
      }),
    ),
    host,
  );
  await shown(
    host,
    async () => {
      all = await api.all('/schedules');
      return all;
    },
    () => {
      list = table({
        caption: t('sch.title'),
        rows: sift(),
        rowKey: codeOf,
        test: 'schedules',
        onOpen: (s) => go(`/schedules/${encodeURIComponent(codeOf(s))}`),
        empty: empty({ title: t('sch.none'), lead: t('sch.none_lead') }),
        sort: { key: 'next' },
        columns: [
          {
            key: 'code',
            label: t('sf.code'),
            value: codeOf,
            cell: (s) => [
              h('a.strong', { href: to`/schedules/${codeOf(s)}` }, codeOf(s)),
              s.schedule?.name && h('div.muted', s.schedule.name),
            ],
          },
          { key: 'status', label: t('sch.state'), value: stateOf, cell: scheduleMark },
          {
            key: 'target',
            label: t('sf.group'),
            value: targetOf,
            cell: (s) =>
              s.schedule?.group
                ? h('a', { href: to`/groups/${s.schedule.group}` }, s.schedule.group)
                : h('span', targetOf(s)),
          },
          {
            key: 'when',
            label: t('sf.when'),
            value: (s) => timingOf(s.schedule),
            cell: (s) => [
              h('span', sentenceOf(s) || timingOf(s.schedule)),
              sentenceOf(s) && h('div.muted.mono', timingOf(s.schedule)),
            ],
            hide: 'narrow',
          },
          {
            key: 'next',
            label: t('sch.next'),
            value: (s) => (s.next_time ? Date.parse(s.next_time) : null),
            cell: (s) =>
              s.next_time
                ? [h('div.nowrap', s.next_local ?? time(s.next_time)), ago(s.next_time)]
                : h('span.none', '–'),
          },
          {
            key: 'last',
            label: t('sch.last'),
            value: (s) => (s.last?.planned_at ? Date.parse(s.last.planned_at) : null),
            cell: (s) => (s.last ? firing(s) : h('span.none', '–')),
            hide: 'narrow',
          },
        ],
      });
      return list.el;
    },
  );
  return { destroy() {} };
}

function firing(s) {
  const f = s.last;
  return [
    firingMark(f),
    ' ',
    f.batch_no && s.schedule?.group
      ? h('a', { href: to`/batches/${s.schedule.group}/${f.batch_no}` }, f.batch_no)
      : f.batch_no,
    ' ',
    h('span.muted', ago(f.planned_at)),
  ];
}

const FIRED = {
  FIRED: 'SUCCESS',
  MISFIRED: 'WARNING',
  SKIPPED: 'SKIPPED',
  FAILED: 'FAILED',
  PENDING: 'PENDING',
  WAITING: 'QUEUED',
};

/** A firing's state: its own word with the mark of the job state that is nearest to it. */
export function firingMark(f) {
  const state = String(f.status).toUpperCase();
  const el = badge(FIRED[state] ?? 'PENDING', { title: f.reason ?? undefined });
  const key = `sch.firing_${state.toLowerCase()}`;
  const word = t(key);
  el.querySelector('span').textContent = word === key ? state : word;
  el.dataset.status = state;
  return el;
}
