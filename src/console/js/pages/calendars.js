// Calendars: which days are worked, year by year, and the days that somebody sets.

import { api } from '../api.js';
import { changesOf, formOf, yearsOf } from '../edit/calendar_file.js';
import { locale, t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import {
  button,
  check,
  dialog,
  empty,
  facts,
  failed,
  field,
  h,
  input,
  loading,
  pageHead,
  put,
  select,
  shown,
  table,
  toast,
} from '../ui.js';

export async function mount(el, ctx) {
  return ctx.params?.code ? one(el, ctx, ctx.params.code) : list(el, ctx);
}

const codeOf = (c) => c.code ?? c.calendar;

async function list(el, ctx) {
  ctx.title?.(t('cals.title'));
  const host = h('div');
  el.append(
    pageHead({
      title: t('cals.title'),
      sub: t('cals.sub'),
      crumbs: [[t('cal.title'), '#/calendar'], [t('cals.title')]],
      actions: [
        button(t('cals.import'), {
          icon: 'file',
          kind: 'primary',
          test: 'calendar-import',
          disabled: store.whyEverywhere('edit'),
          onclick: () => importFile({}),
        }),
      ],
    }),
    host,
  );
  await shown(
    host,
    async () => {
      const page = await api.get('/calendars');
      return page.items ?? page;
    },
    (all) =>
      table({
        caption: t('cals.title'),
        rows: all,
        rowKey: codeOf,
        test: 'calendars',
        onOpen: (c) => go(`/calendars/${encodeURIComponent(codeOf(c))}`),
        empty: empty({ title: t('cals.none'), lead: t('cals.none_lead') }),
        columns: [
          {
            key: 'code',
            label: t('sf.code'),
            value: codeOf,
            cell: (c) => [
              h('a.strong', { href: to`/calendars/${codeOf(c)}` }, codeOf(c)),
              c.name && h('div.muted', c.name),
            ],
          },
          { key: 'weekend', label: t('cals.weekend'), cell: (c) => c.weekend ?? '–' },
          { key: 'years', label: t('cals.years'), cell: (c) => (c.years?.length ? c.years.join(', ') : '–') },
          { key: 'days', label: t('cals.days'), num: true, cell: (c) => c.days ?? '–' },
          {
            key: 'used',
            label: t('cals.used'),
            sort: false,
            cell: (c) => (c.used_by?.length ? c.used_by.join(', ') : '–'),
          },
        ],
      }).el,
  );
  return { destroy() {} };
}

/** Stores the days of a file in a calendar: what would change is shown first. */
function importFile({ code, done }) {
  const name = field({
    label: t('sf.code'),
    hint: t('cals.code_hint'),
    input: input({ value: code ?? '', test: 'calendar-code', mono: true, oninput: stale }),
  });
  const file = field({
    label: t('cals.file'),
    hint: t('cals.file_hint'),
    wide: true,
    input: h('input.input', { type: 'file', accept: '.json,.csv,.ics', 'data-test': 'calendar-file', onchange: stale }),
  });
  const years = field({
    label: t('cals.complete'),
    hint: t('cals.complete_hint'),
    input: input({ test: 'calendar-years', oninput: stale }),
  });
  const replace = check({ label: t('cals.replace'), hint: t('cals.replace_hint'), onchange: stale });
  const reason = field({
    label: t('act.reason'),
    wide: true,
    input: input({ test: 'reason', name: 'reason' }),
  });
  const found = h('div', { 'aria-live': 'polite', 'data-test': 'calendar-changes' });
  let ready = false;

  async function send(dry_run) {
    const [chosen] = file.input.files;
    const at = name.input.value.trim();
    name.fail(at ? null : t('cals.code_missing'));
    file.fail(chosen ? null : t('cals.file_missing'));
    if (!at || !chosen) return null;
    return api.put(api.path`/calendars/${at}`, {
      text: await chosen.text(),
      format: formOf(chosen.name),
      years: yearsOf(years.input.value),
      replace: replace.box.checked,
      reason: reason.input.value.trim() || undefined,
      dry_run,
    });
  }
  const box = dialog({
    title: t('cals.import'),
    lead: t('cals.import_lead'),
    size: 'm',
    test: 'calendar-dialog',
    body: [h('div.form', name, file, years), replace, reason, found],
    actions: [],
  });
  function stale() {
    if (ready) put(found);
    ready = false;
    actions();
  }
  function actions() {
    box.setActions([
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('def.look'),
        kind: ready ? undefined : 'primary',
        test: 'calendar-look',
        run: async () => {
          const got = await send(true);
          if (!got) return;
          const lines = changesOf(got.changes);
          put(
            found,
            h('h3', t('jbd.would')),
            lines.length
              ? h(
                  'ul.plain',
                  lines.slice(0, 40).map((line) => h('li', line)),
                )
              : h('p.muted', t('cals.no_change')),
            lines.length > 40 && h('p.muted', t('common.and_n_more', { n: lines.length - 40 })),
          );
          ready = lines.length > 0;
          actions();
          found.scrollIntoView({ block: 'nearest' });
        },
      },
      {
        label: t('sf.save'),
        kind: ready ? 'primary' : undefined,
        disabled: !ready,
        test: 'calendar-store',
        run: async (close) => {
          if (!reason.input.value.trim()) {
            reason.fail(t('act.reason_missing'));
            reason.input.focus();
            return;
          }
          const got = await send(false);
          if (!got) return;
          toast(t('cals.imported', { code: got.calendar }), 'good');
          close();
          if (done) done();
          else go(`/calendars/${encodeURIComponent(got.calendar)}`);
        },
      },
    ]);
  }
  actions();
}

async function one(el, ctx, code) {
  ctx.title?.(code);
  let year = Number(ctx.query?.get('year')) || new Date().getFullYear();
  let ended = false;
  const host = h('div', loading());
  const pick = h('span');
  const why = store.why('edit') ?? false;
  el.append(
    pageHead({
      title: code,
      crumbs: [[t('cal.title'), '#/calendar'], [t('cals.title'), '#/calendars'], [code]],
      actions: [
        button(t('cals.import'), {
          icon: 'file',
          test: 'calendar-import',
          disabled: store.whyEverywhere('edit'),
          onclick: () => importFile({ code, done: show }),
        }),
        button(t('cals.set'), {
          icon: 'edit',
          disabled: why,
          test: 'calendar-set',
          onclick: () => setDay(`${year}-01-01`),
        }),
      ],
    }),
    h('div.dg-tools', pick),
    host,
  );

  async function show() {
    ctx.setQuery?.({ year: String(year) });
    const now = new Date().getFullYear();
    put(
      pick,
      select({
        label: t('cal.year'),
        value: String(year),
        test: 'calendar-year',
        options: Array.from({ length: 10 }, (_, i) => String(now - 6 + i)).map((y) => [y, y]),
        onchange: (v) => {
          year = Number(v);
          show();
        },
      }),
    );
    put(host, loading());
    try {
      const got = await api.get(api.path`/calendars/${code}`, { year });
      if (ended) return;
      const days = new Map((got.days ?? []).map((d) => [d.date, d]));
      put(
        host,
        facts([
          [t('cals.working'), got.working_days],
          [t('cals.state'), got.assumed ? h('span.late', t('cals.assumed')) : t('cals.listed')],
        ]),
        h(
          'div.cal-year',
          { 'data-test': 'calendar-days' },
          Array.from({ length: 12 }, (_, m) => month(m, days, got.months?.[m])),
        ),
        h(
          'div.gt-legend',
          h('span', h('i.cal-l-off'), t('cal.off')),
          h('span', h('span.cal-tag', t('cal.made_up')), t('cal.made_up_long')),
          h('span', t('cals.hint')),
        ),
      );
    } catch (error) {
      if (!ended) put(host, failed(error, show));
    }
  }

  function month(m, days, facts_) {
    const first = new Date(year, m, 1);
    const n = new Date(year, m + 1, 0).getDate();
    return h(
      'section.cal-mini',
      h(
        'h2',
        new Intl.DateTimeFormat(locale(), { month: 'long' }).format(first),
        facts_?.working_days !== undefined && h('span.muted', ` ${t('cals.n_working', { n: facts_.working_days })}`),
      ),
      h(
        'div.cal-dots',
        Array.from({ length: (first.getDay() + 6) % 7 }, () => h('i')),
        Array.from({ length: n }, (_, i) => {
          const date = `${year}-${String(m + 1).padStart(2, '0')}-${String(i + 1).padStart(2, '0')}`;
          const d = days.get(date);
          const weekend = [0, 6].includes(new Date(year, m, i + 1).getDay());
          const off = d ? d.working === false : weekend;
          const name = d && typeof d.basis === 'object' && d.basis ? (d.basis.listed ?? '') : '';
          const made = d?.mark === 'made_up' || d?.mark === 'make_up';
          const words = [
            date,
            off ? t('cal.off') : t('cals.worked'),
            name,
            made ? t('cal.made_up') : '',
            d?.basis === 'assumed' ? t('cals.assumed') : '',
          ]
            .filter(Boolean)
            .join(', ');
          return h(
            'button.cal-dot',
            {
              type: 'button',
              title: words,
              'aria-label': `${i + 1}: ${words}`,
              class:
                [off && 'cal-off', off && name && 'cal-named', made && 'cal-made'].filter(Boolean).join(' ') || null,
              onclick: () => setDay(date, off, name),
              disabled: why ? true : null,
            },
            String(i + 1),
          );
        }),
      ),
    );
  }

  function setDay(date, off, name) {
    const on = field({ label: t('cals.date'), input: input({ type: 'date', value: date }) });
    const kind = field({
      label: t('cals.kind'),
      input: select({
        value: off ? 'work' : 'off',
        options: [
          ['off', t('cals.kind_off')],
          ['work', t('cals.kind_work')],
          ['clear', t('cals.kind_clear')],
        ],
      }),
    });
    const label = field({ label: t('cals.label'), input: input({ value: name ?? '' }) });
    const reason = field({ label: t('act.reason'), input: input({ test: 'reason', name: 'reason' }) });
    dialog({
      title: t('cals.set'),
      lead: t('cals.set_lead', { code }),
      size: 's',
      test: 'calendar-day',
      body: [on, kind, label, reason],
      actions: [
        { label: t('common.cancel'), run: (close) => close() },
        {
          label: t('sf.save'),
          kind: 'primary',
          run: async (close) => {
            if (!reason.input.value.trim()) {
              reason.fail(t('act.reason_missing'));
              return;
            }
            await api.post(api.path`/calendars/${code}/days`, {
              date: on.input.value,
              kind: kind.input.value,
              label: label.input.value.trim() || undefined,
              reason: reason.input.value.trim(),
            });
            toast(t('cals.saved'), 'good');
            close();
            show();
          },
        },
      ],
    });
  }

  await show();
  return {
    destroy() {
      ended = true;
    },
  };
}
