// The first page: what fails, what is late, what runs, what comes; each with what can be done about it.

import { act } from '../actions.js';
import { api, live } from '../api.js';
import { has, t } from '../i18n.js';
import { openBatch } from '../open_batch.js';
import { to } from '../router.js';
import { glyph, statusClass } from '../status.js';
import { store } from '../store.js';
import {
  ago,
  announce,
  badge,
  button,
  card,
  command,
  duration,
  empty,
  h,
  icon,
  linkButton,
  num,
  pageHead,
  poll,
  progress,
  put,
  s,
  settled,
  shown,
  table,
  time,
  timeText,
  zone,
  zoneName,
} from '../ui.js';

const at = (x) => `${x.group}/${x.batch_no}`;
const batchHref = (x, job) =>
  to`/batches/${x.group}/${x.batch_no}` + (job ? `/list?job=${encodeURIComponent(job)}` : '');
const jobOf = (x) => x.job;
/** The failures that nobody has acknowledged. */
const openOf = (board) => (board.failures ?? []).filter((failure) => !failure.is_acknowledged);

export async function mount(el, ctx) {
  ctx.title(t('nav.dashboard'));
  const body = h('div');
  let known = new Set();
  let board;
  let isFirst = false;
  put(el, body);
  const draw = (next) => {
    board = next;
    const failing = new Set(openOf(next).map((f) => `${at(f)}/${jobOf(f)}`));
    const fresh = [...failing].filter((f) => !known.has(f));
    if (known.size || fresh.length)
      fresh.slice(0, 3).forEach((f) => known.size && announce(t('dash.failed_now', { what: f })));
    known = failing;
    store.tell('look-failures');
    const focus = document.activeElement?.closest?.('[data-focus]')?.dataset.focus;
    put(body, page(next, isFirst));
    if (focus) body.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  };
  const read = async () => {
    const [next, groups] = await Promise.all([
      api.get('/dashboard', { zone: zone() }),
      // Once there is a group it is not asked for again.
      board && !isFirst ? null : api.get('/groups', { limit: 1 }),
    ]);
    if (groups) isFirst = groups.items.length === 0;
    return next;
  };
  await shown(body, read, (got) => {
    draw(got);
    return undefined;
  });
  const again = settled(700, async () => {
    const next = await read().catch(() => null);
    if (next && next !== board && el.isConnected && !document.querySelector('dialog[open], [popover]:popover-open'))
      draw(next);
  });
  const ends = [
    live({}, { batch: again, job: again, gap: again, state: (is) => store.tell('live', is) }),
    poll(again, 15000),
  ];
  return { destroy: () => ends.forEach((end) => end()) };
}

/** What is done first in a console without a definition. */
const firstCard = () =>
  card(
    t('dash.first'),
    { test: 'first-step' },
    h('p.lead', t('dash.first_lead')),
    h(
      'ol.first-steps',
      h('li', h('span.strong', t('dash.first_define')), h('p', t('dash.first_define_how'))),
      h('li', h('span.strong', t('dash.first_open')), h('p', t('dash.first_open_how'))),
      h('li', h('span.strong', t('dash.first_schedule')), h('p', t('dash.first_schedule_how'))),
    ),
    h(
      'div.row',
      store.may('edit') &&
        linkButton(t('dash.first_go'), '#/definition', { kind: 'primary', icon: 'edit', test: 'first-go' }),
      store.may('edit') && linkButton(t('dash.first_source'), '#/definition?with=source', { icon: 'node' }),
    ),
    command('procession apply pipeline.yaml'),
  );

/** How many schedules fire within a week; the list goes on further. */
const withinWeek = (board) => {
  const end = Date.parse(board.now) + 7 * 86_400_000;
  return (board.next_firings ?? []).filter((f) => Date.parse(f.planned_at) <= end).length;
};

function page(board, isFirst) {
  const counts = board.today?.counts ?? {};
  const failures = openOf(board);
  const late = board.late ?? [];
  const running = board.running ?? [];
  return [
    pageHead({
      title: t('nav.dashboard'),
      sub: `${timeText(board.now ?? Date.now(), { date: true })} ${zoneName()}`,
      actions: [
        linkButton(t('batches.all'), '#/batches', { icon: 'batches' }),
        button(t('batch.open'), {
          kind: 'primary',
          icon: 'plus',
          test: 'open-batch',
          disabled: store.why('run'),
          onclick: () => openBatch({}),
        }),
      ],
    }),
    board.overdue_sec != null &&
      h(
        'p.note.note-warning',
        { role: 'status', 'data-test': 'overdue' },
        icon('clock'),
        h('span', t('dash.overdue', { span: duration(board.overdue_sec * 1000) })),
      ),
    h(
      'section.tiles',
      { 'aria-label': t('dash.now') },
      tile(
        'FAILED',
        failures.length,
        t('dash.failures'),
        failures.length ? '#needs' : '#/batches?status=FAILED',
        failures.length > 0,
      ),
      tile('LATE', late.length, t('dash.late'), '#needs', late.length > 0),
      tile('RUNNING', running.length, t('dash.running'), '#/batches?status=RUNNING'),
      tile('SUCCESS', (counts.SUCCESS ?? 0) + (counts.WARNING ?? 0), t('dash.done_today'), '#/batches?status=SUCCESS'),
      tile('PENDING', withinWeek(board), t('dash.coming'), '#/schedules'),
    ),
    h(
      'div.columns',
      h(
        'div.stack',
        isFirst && firstCard(),
        needs(failures, late),
        runningCard(running),
        todayCard(board.today?.batches ?? []),
      ),
      h(
        'div.stack',
        nextCard(board.next_firings ?? []),
        daysCard(board.days ?? []),
        nodesCard(board.nodes ?? []),
        outboxCard(board.outbox ?? {}),
      ),
    ),
  ];
}

const tile = (status, n, words, href, isBad) =>
  h(
    `a.tile.${statusClass(status)}`,
    {
      href: href.startsWith('#needs') ? '#/' : href,
      class: [isBad && 'tile-bad', !n && 'tile-zero'].filter(Boolean).join(' ') || null,
      'data-test': `tile-${status.toLowerCase()}`,
      onclick:
        href === '#needs'
          ? (e) => {
              e.preventDefault();
              document.getElementById('needs')?.scrollIntoView({ block: 'start' });
              document.getElementById('needs')?.focus({ preventScroll: true });
            }
          : null,
    },
    h('span.tile-n', status === 'LATE' ? icon('clock', 18) : glyph(status, 18), num(n)),
    h('span.tile-words', words),
  );

function needs(failures, late) {
  const all = [...failures.map((f) => ({ ...f, kind: 'failure' })), ...late.map((l) => ({ ...l, kind: 'late' }))];
  const title = h('span', { id: 'needs', tabindex: '-1' }, t('dash.needs'));
  if (!all.length)
    return card(
      title,
      { test: 'needs', cls: 'calm' },
      h('p.row', h('span.st-success', glyph('SUCCESS', 18)), t('dash.calm')),
    );
  const groups = new Map();
  for (const one of all) {
    if (!groups.has(at(one))) groups.set(at(one), []);
    groups.get(at(one)).push(one);
  }
  return card(
    title,
    { test: 'needs', actions: h('span.muted', t('dash.in_batches', { n: groups.size })) },
    h(
      'ul.needs',
      [...groups.values()].map((ones) => {
        const [first] = ones;
        const fails = ones.filter((x) => x.kind === 'failure');
        return h(
          'li.need',
          { class: fails.length ? null : 'need-late' },
          h(
            'div.need-head',
            h(
              'a.strong',
              { href: batchHref(first), 'data-focus': `b-${at(first)}` },
              `${first.group} · ${first.batch_no}`,
            ),
            h(
              'span.need-actions',
              fails.length > 0 &&
                button(t('action.rerun-from-failure'), {
                  icon: 'rerun',
                  small: true,
                  disabled: store.why('run', first.group),
                  test: 'need-rerun',
                  attrs: { 'data-focus': `r-${at(first)}`, 'data-action': 'rerun-from-failure' },
                  onclick: () => act({ group: first.group, no: first.batch_no, action: 'rerun-from-failure' }),
                }),
              linkButton(t('dash.look'), batchHref(first, fails.length ? jobOf(fails[0]) : undefined), {
                icon: 'right',
              }),
            ),
          ),
          h(
            'ul.need-jobs',
            ones
              .slice(0, 6)
              .map((x) =>
                h(
                  'li',
                  x.kind === 'late'
                    ? [
                        h('span.badge.st-late', icon('clock', 14), t(x.is_late ? 'dash.late' : 'due.at_risk')),
                        h('span', t('due.whole_batch')),
                        h(
                          'span.need-why',
                          x.due && t(x.is_late ? 'due.was_due' : 'due.is_due', { at: timeText(x.due) }),
                          x.expected_end && ` · ${t('due.expected', { at: timeText(x.expected_end) })}`,
                        ),
                      ]
                    : [
                        badge(x.status ?? 'FAILED'),
                        h('a', { href: batchHref(x, jobOf(x)), 'data-focus': `j-${at(x)}-${jobOf(x)}` }, jobOf(x)),
                        h('span.need-why', { title: x.error }, x.error ?? ''),
                        h('span.muted.nowrap', ago(x.at)),
                      ],
                ),
              ),
            ones.length > 6 &&
              h('li', h('a', { href: batchHref(first) }, t('common.and_n_more', { n: ones.length - 6 }))),
          ),
        );
      }),
    ),
  );
}

/** When a running batch is expected to end, and whether that is in time. */
export function outlook(x) {
  const expected =
    x.eta?.expected?.end ?? x.expected_end ?? x.eta?.expected_end ?? (typeof x.eta === 'string' ? x.eta : null);
  const isLate = x.is_late ?? x.eta?.is_late;
  return h(
    'span',
    x.certainty === 'unknown'
      ? h('span.muted', { title: expected && `${t('batch.at_a_guess')} ${timeText(expected)}` }, t('sure.unknown'))
      : expected
        ? time(expected)
        : h('span.none', '–'),
    x.due && h('span', { class: isLate ? 'late' : 'muted' }, ` / ${timeText(x.due)}`),
    isLate ? h('span.late', ` ${t('due.late')}`) : x.will_be_late && h('span.late', ` ${t('due.will_be_late')}`),
  );
}

function runningCard(running) {
  return card(
    t('dash.running'),
    { cls: 'flush', test: 'running' },
    table({
      caption: t('dash.running'),
      rows: running,
      rowKey: at,
      rowClass: (r) => (r.is_late ? 'row-late' : null),
      empty: t('dash.none_running'),
      locked: true,
      columns: [
        {
          key: 'batch',
          label: t('batch.one'),
          cell: (r) => h('a', { href: batchHref(r) }, `${r.group} · ${r.batch_no}`),
        },
        { key: 'status', label: t('common.status'), cell: (r) => badge(r.status, { paused: r.is_paused }) },
        {
          key: 'progress',
          label: t('batch.progress'),
          width: '30%',
          cell: (r) => progress(r.jobs ?? r.progress ?? r.counts),
        },
        { key: 'eta', label: t('batch.expected_due'), cell: outlook },
        { key: 'since', label: t('batch.began'), hide: 'middle', cell: (r) => ago(r.create_time) },
      ],
    }).el,
  );
}

function todayCard(batches) {
  return card(
    t('dash.today'),
    { cls: 'flush', test: 'today' },
    table({
      caption: t('dash.today'),
      rows: batches,
      rowKey: at,
      empty: t('dash.none_today'),
      rowClass: (r) => (['FAILED', 'KILLED'].includes(r.status) ? 'row-bad' : null),
      columns: [
        {
          key: 'batch',
          label: t('batch.one'),
          value: at,
          cell: (r) => h('a', { href: batchHref(r) }, `${r.group} · ${r.batch_no}`),
        },
        { key: 'status', label: t('common.status'), cell: (r) => badge(r.status, { paused: r.is_paused }) },
        { key: 'jobs', label: t('batch.progress'), sort: false, width: '26%', cell: (r) => progress(r.jobs) },
        { key: 'create_time', label: t('batch.began'), cell: (r) => time(r.create_time) },
        {
          key: 'took',
          label: t('batch.took'),
          num: true,
          hide: 'narrow',
          value: (r) => Date.parse(r.end_time) - Date.parse(r.create_time),
          cell: (r) => (r.end_time ? duration(Date.parse(r.end_time) - Date.parse(r.create_time)) : '–'),
        },
      ],
    }).el,
  );
}

const nextCard = (firings) =>
  card(
    t('dash.next'),
    { test: 'next' },
    firings.length
      ? h(
          'ul.lines',
          firings
            .slice(0, 8)
            .map((f) =>
              h(
                'li',
                h(
                  'span',
                  h('a', { href: to`/schedules/${f.schedule ?? f.code}` }, f.schedule ?? f.code),
                  h('span.muted', ` ${(f.groups ?? []).join(', ')}`),
                ),
                h('span.end', time(f.planned_at), h('br'), h('span.muted', ago(f.planned_at))),
              ),
            ),
        )
      : h('p.muted', t('dash.none_next')),
  );

/** Thirty days as columns; each is a link to its batches and says its numbers. */
function daysCard(days) {
  const most = Math.max(1, ...days.map((d) => (d.success ?? 0) + (d.failed ?? 0) + (d.running ?? 0)));
  const [w, tall] = [8, 64];
  const drawn = s(
    'svg.days',
    {
      viewBox: `0 0 ${Math.max(1, days.length) * (w + 2)} ${tall}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': t('dash.days_label', { n: days.length, failed: days.filter((d) => d.failed > 0).length }),
    },
    days.map((d, i) => {
      let y = tall;
      const part = (n, status) => {
        if (!n) return null;
        const size = Math.max(2, (n / most) * (tall - 4));
        y -= size;
        return s(`rect.${statusClass(status)}`, {
          x: i * (w + 2),
          y,
          width: w,
          height: Math.max(1, size - 0.8),
          rx: 1,
        });
      };
      return s(
        'g',
        s(
          'title',
          `${d.day}: ${t('dash.day_words', { success: d.success ?? 0, failed: d.failed ?? 0, running: d.running ?? 0 })}`,
        ),
        s('rect.ground', { x: i * (w + 2), y: 0, width: w, height: tall }),
        part(d.success, 'SUCCESS'),
        part(d.running, 'RUNNING'),
        part(d.failed, 'FAILED'),
      );
    }),
  );
  return card(
    t('dash.days'),
    { test: 'days' },
    days.some((d) => (d.success ?? 0) + (d.failed ?? 0) + (d.running ?? 0) > 0)
      ? [drawn, h('div.days-foot', h('span', days[0]?.day), h('span', days.at(-1)?.day))]
      : h('p.muted', t('dash.no_days')),
  );
}

function nodesCard(nodes) {
  const good = (n) => n.state !== 'dead';
  return card(
    t('nav.nodes'),
    { test: 'nodes', actions: h('a', { href: '#/nodes' }, t('common.all')) },
    nodes.length
      ? h(
          'ul.lines',
          nodes.map((n) =>
            h(
              'li',
              h(
                'span',
                h('span', { class: good(n) ? 'dot' : 'dot dot-bad', 'aria-hidden': 'true' }),
                n.name,
                // A node that was not named is called after its machine.
                n.host && n.host !== n.name && h('span.muted', ` ${n.host}`),
              ),
              h(
                'span.end',
                t('nodes.slots_of', { running: n.running ?? 0, slots: n.max_parallel ?? '–' }),
                h('span.muted', ` · ${has(`nodes.state_${n.state}`) ? t(`nodes.state_${n.state}`) : (n.state ?? '')}`),
              ),
            ),
          ),
        )
      : empty({ title: t('nodes.none'), lead: t('nodes.none_lead') }),
  );
}

const outboxCard = (counts) =>
  card(
    t('nav.outbox'),
    { test: 'outbox', actions: h('a', { href: '#/outbox' }, t('common.all')) },
    Object.keys(counts).length
      ? h(
          'div.chips',
          Object.entries(counts).map(([k, n]) =>
            h(
              'a.chip',
              { href: `#/outbox?status=${k}`, class: k === 'failed' && n ? 'st-failed' : 'st-pending' },
              t(`outbox.${k}`),
              h('b', String(n)),
            ),
          ),
        )
      : h('p.muted', t('outbox.none')),
  );
