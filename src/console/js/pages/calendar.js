// Past and coming batches on a calendar: what ran, what will, and which days are worked.

import { api } from '../api.js';
import { locale, t } from '../i18n.js';
import { to } from '../router.js';
import { statusClass, statusWord, rank } from '../status.js';
import {
  button,
  dialog,
  empty,
  failed,
  glyph,
  h,
  icon,
  loading,
  pageHead,
  put,
  segmented,
  select,
  timeText,
  zone,
} from '../ui.js';

const two = (n) => String(n).padStart(2, '0');
const day = (y, m, d) => `${y}-${two(m)}-${two(d)}`;

export async function mount(el, ctx) {
  ctx.title?.(t('cal.title'));
  const today = new Date();
  const asked = /^(\d{4})(?:-(\d{2}))?$/.exec(ctx.query?.get('at') ?? '');
  const at = {
    year: asked ? Number(asked[1]) : today.getFullYear(),
    month: asked?.[2] ? Number(asked[2]) : today.getMonth() + 1,
  };
  let view = ctx.query?.get('view') === 'year' ? 'year' : 'month';
  let group = ctx.query?.get('group') ?? '';
  let calendar = ctx.query?.get('calendar') ?? '';
  let ended = false;
  let focus = null;
  const host = h('div', loading());
  const title = h('h2.cal-title', { 'aria-live': 'polite' });
  const groups = h('span');
  const days_ = h('span');
  el.append(
    pageHead({
      title: t('cal.title'),
      sub: t('cal.sub'),
      actions: [h('a.btn', { href: '#/calendars' }, icon('calendar'), h('span', t('cal.working_days')))],
    }),
    h(
      'div.dg-tools',
      button(t('cal.before'), {
        icon: 'left',
        iconOnly: true,
        kind: 'quiet',
        test: 'calendar-before',
        onclick: () => move(-1),
      }),
      title,
      button(t('cal.after'), {
        icon: 'right',
        iconOnly: true,
        kind: 'quiet',
        test: 'calendar-after',
        onclick: () => move(1),
      }),
      button(t('cal.today'), {
        kind: 'quiet',
        test: 'calendar-today',
        onclick: () => {
          at.year = today.getFullYear();
          at.month = today.getMonth() + 1;
          show();
        },
      }),
      segmented({
        label: t('cal.view'),
        value: view,
        options: [
          ['month', t('cal.month')],
          ['year', t('cal.year')],
        ],
        test: 'calendar-view',
        onchange: (v) => {
          view = v;
          show();
        },
      }),
      groups,
      days_,
    ),
    host,
  );
  api
    .all('/groups')
    .then((all) =>
      put(
        groups,
        select({
          label: t('sf.group'),
          value: group,
          test: 'calendar-group',
          options: [['', t('cal.all_groups')], ...all.map((g) => [g.group ?? g.code, g.group ?? g.code])],
          onchange: (v) => {
            group = v;
            show();
          },
        }),
      ),
    )
    .catch(() => {});
  api
    .get('/calendars')
    .then((page) => page.items ?? page)
    .then((all) => {
      if (!all.length || ended) return;
      put(
        days_,
        select({
          label: t('sf.calendar'),
          value: calendar,
          test: 'calendar-which',
          options: [['', t('cal.of_group')], ...all.map((c) => [c.code, c.name ? `${c.code} – ${c.name}` : c.code])],
          onchange: (v) => {
            calendar = v;
            show();
          },
        }),
      );
    })
    .catch(() => {});

  function move(by) {
    if (view === 'year') at.year += by;
    else {
      const next = new Date(at.year, at.month - 1 + by, 1);
      at.year = next.getFullYear();
      at.month = next.getMonth() + 1;
    }
    show();
  }

  /** The server gives two months at a time. */
  async function fetchDays(from, until) {
    const parts = [];
    for (const d = new Date(from); d <= until; d.setDate(d.getDate() + 60)) {
      const end = new Date(d);
      end.setDate(end.getDate() + 59);
      parts.push([say(d), say(end < until ? end : until)]);
    }
    const zone_ = group ? undefined : zone();
    const all = await Promise.all(
      parts.map(([a, b]) =>
        api.get('/calendar', { from: a, to: b, group, calendar: calendar || undefined, zone: zone_ }),
      ),
    );
    return all.flatMap((page) => page.items ?? page.days ?? []);
  }
  const say = (d) => day(d.getFullYear(), d.getMonth() + 1, d.getDate());

  async function show() {
    ctx.setQuery?.({
      at: view === 'year' ? String(at.year) : `${at.year}-${two(at.month)}`,
      view: view === 'year' ? 'year' : null,
      group,
      calendar,
    });
    title.textContent = new Intl.DateTimeFormat(
      locale(),
      view === 'year' ? { year: 'numeric' } : { year: 'numeric', month: 'long' },
    ).format(new Date(at.year, at.month - 1, 1));
    const first = view === 'year' ? new Date(at.year, 0, 1) : new Date(at.year, at.month - 1, 1);
    const last = view === 'year' ? new Date(at.year, 11, 31) : new Date(at.year, at.month, 0);
    // Weeks begin on Monday; the weeks of both ends are shown whole.
    const from = new Date(first);
    if (view === 'month') from.setDate(1 - ((first.getDay() + 6) % 7));
    const until = new Date(last);
    if (view === 'month') until.setDate(last.getDate() + (6 - ((last.getDay() + 6) % 7)));
    put(host, loading());
    try {
      const got = await fetchDays(from, until);
      if (ended) return;
      const days = new Map(got.map((d) => [d.date, d]));
      put(host, view === 'year' ? year(days) : month(days, from, until), legend());
    } catch (error) {
      if (!ended) put(host, failed(error, show));
    }
  }

  function month(days, from, until) {
    const cells = [];
    for (const d = new Date(from); d <= until; d.setDate(d.getDate() + 1))
      cells.push(day(d.getFullYear(), d.getMonth() + 1, d.getDate()));
    focus = cells.includes(focus)
      ? focus
      : (cells.find((c) => c === day(today.getFullYear(), today.getMonth() + 1, today.getDate())) ?? cells[0]);
    const weekdays = Array.from({ length: 7 }, (_, i) =>
      new Intl.DateTimeFormat(locale(), { weekday: 'short' }).format(new Date(2024, 0, 1 + i)),
    );
    const rows = [];
    for (let i = 0; i < cells.length; i += 7) rows.push(cells.slice(i, i + 7));
    const grid = h(
      'table.cal',
      { 'data-test': 'calendar' },
      h(
        'thead',
        h(
          'tr',
          weekdays.map((w) => h('th', { scope: 'col' }, w)),
        ),
      ),
      h(
        'tbody',
        rows.map((week) =>
          h(
            'tr',
            week.map((date) => cell(date, days.get(date))),
          ),
        ),
      ),
    );
    grid.addEventListener('keydown', (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[e.key];
      const here = e.target.closest('td[data-day]');
      if (!step || !here || e.target !== here) return;
      const next = cells[cells.indexOf(here.dataset.day) + step];
      if (!next) return;
      e.preventDefault();
      focus = next;
      for (const td of grid.querySelectorAll('td[data-day]')) td.tabIndex = td.dataset.day === next ? 0 : -1;
      grid.querySelector(`td[data-day="${next}"]`)?.focus();
    });
    return grid;
  }

  function cell(date, d) {
    const batches = batchesOf(d),
      firings = firingsOf(d);
    const off = d && d.working === false;
    const outside = Number(date.slice(5, 7)) !== at.month;
    const isToday = date === day(today.getFullYear(), today.getMonth() + 1, today.getDate());
    const label = [
      new Intl.DateTimeFormat(locale(), { dateStyle: 'full' }).format(new Date(`${date}T12:00`)),
      off ? t('cal.off') : '',
      holiday(d),
      batches.length ? t('cal.n_batches', { n: batches.length }) : '',
      firings.length ? t('cal.n_firings', { n: firings.length }) : '',
    ]
      .filter(Boolean)
      .join(', ');
    const td = h(
      'td',
      {
        'data-day': date,
        tabindex: date === focus ? '0' : '-1',
        'aria-label': label,
        class:
          [off && 'cal-off', d?.mark === 'made_up' && 'cal-made', outside && 'cal-out', isToday && 'cal-today']
            .filter(Boolean)
            .join(' ') || null,
      },
      h(
        'div.cal-head',
        h('span.cal-n', String(Number(date.slice(8)))),
        holiday(d) && h('span.cal-name', holiday(d)),
        d?.mark === 'made_up' && h('span.cal-tag', t('cal.made_up')),
      ),
      batches.slice(0, 4).map(batchLine),
      firings.slice(0, Math.max(1, 5 - Math.min(4, batches.length))).map(firingLine),
      batches.length + firings.length > 5 &&
        button(t('cal.all_n', { n: batches.length + firings.length }), {
          kind: 'quiet',
          small: true,
          onclick: () => whole(date, batches, firings),
        }),
    );
    td.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && e.target === td) whole(date, batches, firings);
    });
    // On a phone a day has room for marks alone: pressed, it says what they are.
    td.addEventListener('click', (e) => {
      if (!matchMedia('(max-width: 720px)').matches || !(batches.length + firings.length)) return;
      e.preventDefault();
      whole(date, batches, firings);
    });
    return td;
  }

  function whole(date, batches, firings) {
    dialog({
      title: new Intl.DateTimeFormat(locale(), { dateStyle: 'full' }).format(new Date(`${date}T12:00`)),
      size: 's',
      body:
        batches.length + firings.length
          ? h('div.cal-day', batches.map(batchLine), firings.map(firingLine))
          : empty({ title: t('cal.nothing') }),
      actions: [{ label: t('common.close'), run: (close) => close() }],
    });
  }

  function year(days) {
    return h(
      'div.cal-year',
      { 'data-test': 'calendar' },
      Array.from({ length: 12 }, (_, m) => {
        const first = new Date(at.year, m, 1);
        const n = new Date(at.year, m + 1, 0).getDate();
        const lead = (first.getDay() + 6) % 7;
        return h(
          'section.cal-mini',
          h(
            'button.cal-month',
            {
              type: 'button',
              onclick: () => {
                at.month = m + 1;
                view = 'month';
                el.querySelector('[data-test="calendar-view-month"]')?.click();
              },
            },
            new Intl.DateTimeFormat(locale(), { month: 'long' }).format(first),
          ),
          h(
            'div.cal-dots',
            { role: 'list' },
            Array.from({ length: lead }, () => h('i')),
            Array.from({ length: n }, (_, i) => {
              const date = day(at.year, m + 1, i + 1);
              const d = days.get(date);
              const batches = batchesOf(d),
                firings = firingsOf(d);
              const worst = batches.map((b) => b.status).sort((a, b) => rank(a) - rank(b))[0];
              const words = [
                date,
                d?.working === false ? t('cal.off') : '',
                holiday(d),
                worst ? `${t('cal.n_batches', { n: batches.length })}: ${statusWord(worst)}` : '',
                firings.length ? t('cal.n_firings', { n: firings.length }) : '',
              ]
                .filter(Boolean)
                .join(', ');
              return h(
                'span.cal-dot',
                {
                  role: 'listitem',
                  title: words,
                  'aria-label': `${i + 1}: ${words}`,
                  class:
                    [
                      worst && statusClass(worst),
                      worst && 'cal-has',
                      !worst && firings.length && 'cal-will',
                      d?.working === false && 'cal-off',
                    ]
                      .filter(Boolean)
                      .join(' ') || null,
                },
                String(i + 1),
              );
            }),
          ),
        );
      }),
    );
  }

  function legend() {
    return h(
      'div.gt-legend',
      h('span', glyph('SUCCESS', 13), t('cal.ran')),
      h('span', icon('clock', 13), t('cal.will')),
      h('span', h('i.cal-l-off'), t('cal.off')),
      h('span', h('span.cal-tag', t('cal.made_up')), t('cal.made_up_long')),
    );
  }

  await show();
  return {
    destroy() {
      ended = true;
    },
  };
}

const batchesOf = (d) => d?.batches ?? [];
const firingsOf = (d) => d?.firings ?? d?.coming ?? [];

/** The name of a holiday, where a list has one. */
function holiday(d) {
  if (!d) return '';
  return d.label ?? '';
}

function batchLine(b) {
  return h(
    `a.cal-item.${statusClass(b.status)}`,
    { href: to`/batches/${b.group}/${b.batch_no}`, title: `${b.group} ${b.batch_no} ${statusWord(b.status)}` },
    glyph(b.status, 13),
    h('span', `${b.group} ${b.batch_no}`),
  );
}

function firingLine(f) {
  const code = f.schedule ?? f.code;
  const groups = f.groups?.join(', ') ?? f.group ?? code;
  return h(
    'a.cal-item.cal-firing',
    { href: to`/schedules/${code}`, title: `${code} ${f.planned_local ?? f.planned_at} ${groups} ${f.batch_no ?? ''}` },
    icon('clock', 13),
    h(
      'span',
      `${f.planned_local ? f.planned_local.slice(11, 16) : timeText(f.planned_at, { date: false })} ${groups} ${f.times > 1 ? t('cal.times', { n: f.times }) : (f.batch_no ?? '')}`,
    ),
  );
}
