// Adding and changing a schedule: what it says, when that would fire, and then storing it.

import { api, say } from '../api.js';
import { lang, locale, t } from '../i18n.js';
import { store } from '../store.js';
import { announce, check, dialog, field, h, input, loading, put, select, settled, table, toast } from '../ui.js';
import { cronBuilder } from './cron.js';

const KINDS = ['cron', 'rule', 'every_sec', 'delay_sec', 'once_at', 'after', 'event', 'manual'];

/** When a definition fires next, as the server works it out: {sentence, next, note}. */
export const preview = (definition, n = 10) => api.post('/schedules/preview', { words: definition, n });

/** `2 h`, `90s`, `5m` as seconds. */
function seconds(text) {
  const s = String(text).trim();
  if (/^\d+$/.test(s)) return Number(s);
  let sum = 0;
  for (const [, n, unit] of s.matchAll(/(\d+)\s*([smhd])/gi))
    sum += Number(n) * { s: 1, m: 60, h: 3600, d: 86400 }[unit.toLowerCase()];
  return sum;
}
const span = (n) =>
  !n ? '' : n % 86400 === 0 ? `${n / 86400}d` : n % 3600 === 0 ? `${n / 3600}h` : n % 60 === 0 ? `${n / 60}m` : `${n}s`;

/**
 * Opens the form. `def`: the keys of a schedule as files have them, or {} for a new one.
 * `onDone(code)` after it is stored.
 */
export async function editSchedule({ def = {}, isNew, revision, onDone }) {
  const d = { batch_no: 'month(-1)', ...structuredClone(def) };
  let kind = KINDS.find((k) => d[k] !== undefined && d[k] !== null && d[k] !== false) || 'cron';
  let groups = [],
    calendars = [];
  try {
    [groups, calendars] = await Promise.all([
      api.all('/groups'),
      api
        .get('/calendars')
        .then((page) => page.items ?? page)
        .catch(() => []),
    ]);
  } catch (error) {
    toast(say(error), 'bad');
    return;
  }
  const mine = groups.filter((g) => store.may('edit', g.group ?? g.code));
  const groupOptions = mine.map((g) => [
    g.group ?? g.code,
    g.name && g.name !== (g.group ?? g.code) ? `${g.group ?? g.code} – ${g.name}` : (g.group ?? g.code),
  ]);
  if (d.group && !groupOptions.some(([g]) => g === d.group)) groupOptions.unshift([d.group, d.group]);
  if (isNew && !d.group && !d.type) d.group = groupOptions[0]?.[0];

  const see = h('div.sf-preview', { 'aria-live': 'polite', 'data-test': 'schedule-preview' }, loading());
  let turn = 0;
  const again = settled(350, async () => {
    const mineTurn = ++turn;
    try {
      const got = await preview(words());
      if (mineTurn === turn) put(see, showNext(got));
    } catch (error) {
      if (mineTurn === turn) put(see, h('p.field-error', { role: 'alert' }, say(error)));
    }
  });
  const set = (key) => (value) => {
    if (value === '' || value === null) delete d[key];
    else d[key] = value;
    again();
  };
  const text = (key, label, more = {}) =>
    field({
      label,
      hint: more.hint,
      input: input({
        value: more.show ? more.show(d[key]) : (d[key] ?? ''),
        mono: more.mono,
        type: more.type,
        list: more.list,
        placeholder: more.placeholder,
        test: `schedule-${key}`,
        oninput: (v) => set(key)(more.read ? more.read(v) : v.trim()),
      }),
    });
  const pick = (key, label, options, hint) =>
    field({
      label,
      hint,
      input: select({ value: d[key] ?? '', options, test: `schedule-${key}`, onchange: set(key) }),
    });

  function words() {
    const out = {};
    for (const [key, value] of Object.entries(d))
      if (
        value !== undefined &&
        value !== null &&
        value !== '' &&
        !(KINDS.includes(key) && key !== kind) &&
        !(key === 'at' && kind !== 'rule')
      )
        out[key] = value;
    if (kind === 'manual') out.manual = true;
    return out;
  }

  const when = h('div.sf-when');
  function drawWhen() {
    if (kind === 'manual') d.manual = true;
    const parts = {
      cron: () => cronBuilder({ value: (d.cron ??= '0 0 2 1 * ?'), onchange: set('cron') }).el,
      every_sec: () => text('every_sec', t('sf.every'), { hint: t('sf.span_hint'), show: span, read: seconds }),
      delay_sec: () => text('delay_sec', t('sf.delay'), { hint: t('sf.span_hint'), show: span, read: seconds }),
      once_at: () => text('once_at', t('sf.once_at'), { type: 'datetime-local' }),
      rule: () => [
        text('rule', t('sf.rule'), { hint: t('sf.rule_hint'), list: 'sf-rules' }),
        h(
          'datalist',
          { id: 'sf-rules' },
          [
            'last working day of month',
            'first working day of month',
            '3rd working day of month',
            'last working day of quarter',
            'day 15 of month',
            'last day of month',
            'last-2 day of year',
          ].map((v) => h('option', { value: v })),
        ),
        text('at', t('cron.at'), { type: 'time' }),
      ],
      event: () => text('event', t('sf.event'), { hint: t('sf.event_hint') }),
      manual: () => h('p.hint', t('sf.manual_hint')),
      after: () => {
        const after = typeof d.after === 'object' && d.after ? d.after : { group: d.after || '', on: 'success' };
        const give = (c) => {
          Object.assign(after, c);
          d.after = { ...after };
          again();
        };
        return [
          field({
            label: t('sf.after'),
            input: select({
              value: after.group ?? '',
              options: [['', '–'], ...groups.map((g) => [g.group ?? g.code, g.group ?? g.code])],
              onchange: (v) => give({ group: v }),
            }),
          }),
          field({
            label: t('sf.after_on'),
            input: select({
              value: after.on ?? 'success',
              options: [
                ['success', t('sf.on_success')],
                ['end', t('sf.on_end')],
              ],
              onchange: (v) => give({ on: v }),
            }),
          }),
        ];
      },
    };
    put(when, parts[kind]());
  }

  const calendarOptions = [
    ['', t('sf.of_group')],
    ...calendars.map((c) => [c.calendar ?? c.code, c.calendar ?? c.code]),
  ];
  const lines = (value) =>
    Array.isArray(value)
      ? value
          .map((b) =>
            typeof b === 'string' ? b : b.daily ? `${b.daily}${b.days ? ` ${b.days}` : ''}` : `${b.from}..${b.until}`,
          )
          .join('\n')
      : '';
  const blackouts = (value) => {
    const all = value
      .split('\n')
      .map((l) => l.trim())
      .filter(Boolean)
      .map((l) => {
        const range = l.match(/^(\S+)\.\.(\S+)$/);
        if (range) return { from: range[1], until: range[2] };
        const [daily, ...days] = l.split(/\s+/);
        return days.length ? { daily, days: days.join(' ') } : { daily };
      });
    return all.length ? all : '';
  };
  const params = () =>
    Object.entries(d.params || {})
      .map(([k, v]) => `${k}=${v}`)
      .join('\n');
  const readParams = (value) => {
    const out = {};
    for (const line of value.split('\n')) {
      const at = line.indexOf('=');
      if (at > 0) out[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    return Object.keys(out).length ? out : '';
  };
  const body = h(
    'div.sf',
    h(
      'div.sf-left',
      isNew &&
        field({
          label: t('sf.code'),
          hint: t('sf.code_hint'),
          input: input({
            value: d.code ?? '',
            mono: true,
            test: 'schedule-code',
            required: true,
            oninput: (v) => {
              d.code = v.trim();
            },
          }),
        }),
      text('name', t('sf.name')),
      d.type ? text('type', t('sf.type')) : pick('group', t('sf.group'), groupOptions),
      text('batch_no', t('sf.batch_no'), { mono: true, hint: t('sf.batch_no_hint'), list: 'sf-nos' }),
      h(
        'datalist',
        { id: 'sf-nos' },
        [
          'month(-1)',
          'month(0)',
          'quarter(0)',
          'quarter(-1)',
          'day(-1)',
          'day(0)',
          'year(-1)',
          'time(%Y%m%d-%H%M)',
          'same',
          'prev',
        ].map((v) => h('option', { value: v })),
      ),
      h(
        'fieldset.sf-box',
        h('legend', t('sf.when')),
        field({
          label: t('sf.kind'),
          input: select({
            value: kind,
            test: 'schedule-kind',
            options: KINDS.map((k) => [k, t(`sf.kind_${k}`)]),
            onchange: (v) => {
              kind = v;
              drawWhen();
              again();
            },
          }),
        }),
        when,
        h(
          'div.sf-pair',
          text('time_zone', t('sf.zone'), { hint: t('sf.zone_hint'), list: 'sf-zones' }),
          pick('calendar', t('sf.calendar'), calendarOptions),
        ),
        pick('shift', t('sf.shift'), [
          ['', t('sf.shift_run')],
          ['skip', t('sf.shift_skip')],
          ['next', t('sf.shift_next')],
          ['previous', t('sf.shift_previous')],
        ]),
      ),
      h(
        'datalist',
        { id: 'sf-zones' },
        zones().map((v) => h('option', { value: v })),
      ),
      h(
        'div.sf-pair',
        pick('overlap', t('sf.overlap'), [
          ['', t('sf.overlap_queue')],
          ['skip', t('sf.overlap_skip')],
          ['parallel', t('sf.overlap_parallel')],
          ['replace', t('sf.overlap_replace')],
        ]),
        field({
          label: t('sf.misfire'),
          input: select({
            value: typeof d.misfire === 'object' && d.misfire ? 'newest' : (d.misfire ?? ''),
            options: [
              ['', t('sf.misfire_once')],
              ['skip', t('sf.misfire_skip')],
              ['all', t('sf.misfire_all')],
              ['newest', t('sf.misfire_newest')],
            ],
            onchange: (v) => set('misfire')(v === 'newest' ? { newest: d.misfire?.newest ?? 3 } : v),
          }),
        }),
      ),
      h(
        'details',
        h('summary', t('sf.more')),
        h(
          'div.sf-pair',
          text('start', t('sf.start'), { placeholder: '2026-01-01' }),
          text('end', t('sf.end'), { placeholder: '2026-12-31T18:00' }),
        ),
        field({
          label: t('sf.blackouts'),
          hint: t('sf.blackouts_hint'),
          input: input({
            rows: 2,
            mono: true,
            value: lines(d.blackouts),
            oninput: (v) => set('blackouts')(blackouts(v)),
          }),
        }),
        field({
          label: t('sf.params'),
          hint: t('sf.params_hint'),
          input: input({ rows: 2, mono: true, value: params(), oninput: (v) => set('params')(readParams(v)) }),
        }),
        text('business_date', t('sf.business_date'), { type: 'date' }),
        check({
          label: t('open.free_text'),
          hint: t('open.free_text_hint'),
          checked: d.free_text,
          test: 'schedule-free_text',
          onchange: (on) => set('free_text')(on || ''),
        }),
        h(
          'div.sf-pair',
          text('retry_count', t('sf.retry_count'), { type: 'number', read: (v) => (v === '' ? '' : Number(v)) }),
          text('timeout_sec', t('sf.timeout'), { show: span, read: (v) => (v ? seconds(v) : '') }),
        ),
        text('misfire_window_sec', t('sf.window'), {
          show: span,
          read: (v) => (v ? seconds(v) : ''),
          hint: t('sf.span_hint'),
        }),
        field({
          label: t('sf.notify'),
          hint: t('sf.notify_hint'),
          input: input({
            value: (d.notify_email || []).join(', '),
            oninput: (v) => set('notify_email')(v.trim() ? v.split(/[,;\s]+/).filter(Boolean) : ''),
          }),
        }),
      ),
    ),
    h('div.sf-right', h('h3', t('sf.next')), see),
  );
  drawWhen();
  again();
  const why = field({
    label: t('act.reason'),
    input: input({ test: 'reason', name: 'reason', placeholder: t('sf.reason_hint') }),
  });
  const box = dialog({
    title: isNew ? t('sf.add') : t('sf.edit', { code: d.code }),
    size: 'full',
    test: 'schedule-form',
    body: [body, why],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('sf.save'),
        kind: 'primary',
        test: 'schedule-save',
        run: async (close) => {
          const reason = why.input.value.trim();
          if (!reason) {
            why.fail(t('act.reason_missing'));
            why.input.focus();
            return;
          }
          const definition = words();
          if (isNew) await api.post('/schedules', { code: d.code, words: definition, reason });
          else await api.put(api.path`/schedules/${d.code}`, { words: definition, reason, if_revision: revision });
          toast(t('sf.saved', { code: d.code }), 'good');
          close(true);
          onDone?.(d.code);
        },
      },
    ],
  });
  await box.closed;
}

const zones = () =>
  Intl.supportedValuesOf
    ? Intl.supportedValuesOf('timeZone')
    : ['Asia/Shanghai', 'Asia/Hong_Kong', 'Asia/Singapore', 'Europe/London', 'America/New_York', 'UTC'];

/** What the server says about coming times. */
export function showNext(got) {
  const sentence = sentenceOf(got);
  const rows = got?.next ?? [];
  if (sentence) announce(sentence);
  const skipped = got?.skipped ?? [];
  return [
    sentence && h('p.sf-sentence', { 'data-test': 'schedule-sentence' }, sentence),
    got?.note && h('p.hint', got.note),
    got?.time_zone && h('p.hint', t('sf.in_zone', { zone: got.time_zone })),
    rows.length > 0 &&
      table({
        caption: t('sf.next'),
        rows,
        rowKey: (r) => r.planned_at,
        locked: true,
        test: 'next-times',
        columns: [
          {
            key: 'planned_local',
            label: t('sf.at'),
            cell: (r) => [h('span.nowrap', r.planned_local ?? r.planned_at), h('span.muted', ` ${weekdayOf(r)}`)],
          },
          {
            key: 'batch_no',
            label: t('sf.no'),
            cell: (r) => (r.batch_no_error ? h('span.bad', r.batch_no_error) : h('span.strong', r.batch_no ?? '–')),
          },
          { key: 'words', label: t('sf.why'), cell: (r) => h('span.muted', wordsOf(r.words)) },
        ],
      }).el,
    skipped.length > 0 &&
      h(
        'details',
        h('summary', t('sf.left_out', { n: skipped.length })),
        h(
          'ul.sf-skipped',
          skipped.map((s) => h('li', `${s.planned_local ?? s.planned_at} – ${wordsOf(s.words)}`)),
        ),
      ),
    !rows.length && !sentence && !got?.note && h('p.hint', t('sf.none')),
  ];
}

/** Words of the server: one text, several, or one per language. */
function wordsOf(words) {
  if (!words) return '';
  if (Array.isArray(words)) return words.map(wordsOf).join('; ');
  return typeof words === 'string' ? words : (words[lang()] ?? words.en ?? '');
}

/** The weekday of a time where it falls, in the reader's language. */
function weekdayOf(r) {
  const day = Date.parse(`${String(r.planned_local ?? '').slice(0, 10)}T00:00:00Z`);
  return Number.isFinite(day)
    ? new Intl.DateTimeFormat(locale(), { weekday: 'short', timeZone: 'UTC' }).format(day)
    : (r.weekday ?? '');
}

export function sentenceOf(got) {
  const s = got?.sentence;
  if (!s) return '';
  return typeof s === 'string' ? s : (s[lang()] ?? s.en ?? '');
}
