// Cron builder: fields and text that follow each other. What it means is said by the server.

import { t } from '../i18n.js';
import { field, h, input, put, select } from '../ui.js';

const NAMES = ['sec', 'min', 'hour', 'dom', 'month', 'dow', 'year'];
const DAYS = [
  ['2', 'mon'],
  ['3', 'tue'],
  ['4', 'wed'],
  ['5', 'thu'],
  ['6', 'fri'],
  ['7', 'sat'],
  ['1', 'sun'],
];

/** The seven fields of Quartz, also of the five classic ones. */
export function split(expression) {
  const parts = expression.trim().split(/\s+/).filter(Boolean);
  if (parts.length === 5) {
    const [min, hour, dom, month, dow] = parts;
    // Classic cron counts Sunday as 0 or 7, Quartz as 1; only plain numbers and ranges are moved.
    const moved = dow.replace(/\d+/g, (d) => String((Number(d) % 7) + 1));
    const both = dom !== '*' && dow !== '*';
    return {
      sec: '0',
      min,
      hour,
      dom: dow !== '*' && dom === '*' ? '?' : dom,
      month,
      dow: dow === '*' ? '?' : moved,
      year: '',
      classic: true,
      both,
    };
  }
  const all = {};
  NAMES.forEach((name, i) => {
    all[name] = parts[i] ?? '';
  });
  return all;
}

export const join = (f) =>
  [f.sec, f.min, f.hour, f.dom, f.month, f.dow, f.year]
    .filter((x, i) => x || i < 6)
    .map((x) => x || '*')
    .join(' ');

/** The plain form that a text has, or null. */
function shape(f) {
  const plain = (x) => /^\d+$/.test(x);
  if (f.year && f.year !== '*') return null;
  if (f.sec !== '0') return null;
  const free = (x) => x === '*' || x === '?';
  const every = f.min.match(/^(?:\*|0)\/(\d+)$/);
  if (every && f.hour === '*' && free(f.dom) && f.month === '*' && free(f.dow)) return { kind: 'minutes', n: every[1] };
  if (!plain(f.min) || Number(f.min) > 59) return null;
  if (f.hour === '*' && free(f.dom) && f.month === '*' && free(f.dow)) return { kind: 'hourly', min: f.min };
  if (!plain(f.hour) || Number(f.hour) > 23) return null;
  const at = `${f.hour.padStart(2, '0')}:${f.min.padStart(2, '0')}`;
  if (f.month !== '*') return null;
  if (free(f.dom) && free(f.dow)) return { kind: 'daily', at };
  if (free(f.dom) && /^[1-7](,[1-7])*$/.test(f.dow)) return { kind: 'weekly', at, days: f.dow.split(',') };
  if (free(f.dom) && f.dow === '2-6') return { kind: 'weekly', at, days: ['2', '3', '4', '5', '6'] };
  if (free(f.dow) && /^(\d+(,\d+)*|L|LW)$/.test(f.dom)) return { kind: 'monthly', at, day: f.dom };
  const nth = f.dow.match(/^([1-7])(?:#([1-5])|L)$/);
  if (free(f.dom) && nth) return { kind: 'nth', at, day: nth[1], nth: nth[2] || 'L' };
  return null;
}

function text(s) {
  const [hour, min] = (s.at || '02:00').split(':').map(Number);
  switch (s.kind) {
    case 'minutes':
      return `0 */${Math.max(1, Number(s.n) || 15)} * * * ?`;
    case 'hourly':
      return `0 ${Number(s.min) || 0} * * * ?`;
    case 'daily':
      return `0 ${min} ${hour} * * ?`;
    case 'weekly':
      return `0 ${min} ${hour} ? * ${(s.days && s.days.length ? [...s.days].sort() : ['2']).join(',')}`;
    case 'monthly':
      return `0 ${min} ${hour} ${s.day || '1'} * ?`;
    case 'nth':
      return `0 ${min} ${hour} ? * ${s.day || '6'}${s.nth === 'L' ? 'L' : `#${s.nth || '1'}`}`;
    default:
      return '';
  }
}

/** @returns {el, value()} ; `onchange(text)` is called on every change. */
export function cronBuilder({ value = '0 0 2 1 * ?', onchange }) {
  let now = value;
  let form = shape(split(value)) || { kind: 'fields' };
  const line = input({
    value: now,
    mono: true,
    test: 'cron',
    label: t('cron.text'),
    oninput: (v) => {
      now = v;
      form = shape(split(v)) || { kind: 'fields' };
      how.value = form.kind;
      draw();
      onchange(v);
    },
  });
  const parts = h('div.cron-parts');
  const how = select({
    label: t('cron.how'),
    value: form.kind,
    test: 'cron-kind',
    options: ['minutes', 'hourly', 'daily', 'weekly', 'monthly', 'nth', 'fields'].map((k) => [k, t(`cron.${k}`)]),
    onchange: (kind) => {
      form = { at: '02:00', min: '0', n: '15', ...form, kind };
      if (kind !== 'fields') give(text(form));
      draw();
    },
  });
  const give = (v) => {
    now = v;
    line.value = v;
    onchange(v);
  };
  const set = (change) => {
    form = { ...form, ...change };
    give(text(form));
  };
  const time = () =>
    h(
      'label',
      t('cron.at'),
      ' ',
      input({ type: 'time', value: form.at || '02:00', label: t('cron.at'), onchange: (v) => v && set({ at: v }) }),
    );

  function draw() {
    const weekdays = DAYS.map(([n, name]) => [n, t(`cron.day_${name}`)]);
    const one = {
      minutes: () =>
        h(
          'label',
          t('cron.every'),
          ' ',
          input({
            type: 'number',
            min: 1,
            max: 59,
            value: form.n || '15',
            label: t('cron.minutes'),
            oninput: (v) => set({ n: v }),
          }),
          ' ',
          t('cron.min_unit'),
        ),
      hourly: () =>
        h(
          'label',
          t('cron.minute_of'),
          ' ',
          input({
            type: 'number',
            min: 0,
            max: 59,
            value: form.min || '0',
            label: t('cron.minute_of'),
            oninput: (v) => set({ min: v }),
          }),
        ),
      daily: () => time(),
      weekly: () => [
        h(
          'span.cron-days',
          { role: 'group', 'aria-label': t('cron.days') },
          weekdays.map(([n, word]) =>
            h(
              'button.btn.btn-small',
              {
                type: 'button',
                'aria-pressed': String((form.days || ['2']).includes(n)),
                onclick: (e) => {
                  const days = new Set(form.days || ['2']);
                  if (days.has(n) && days.size > 1) days.delete(n);
                  else days.add(n);
                  set({ days: [...days] });
                  e.currentTarget.setAttribute('aria-pressed', String(days.has(n)));
                },
              },
              word,
            ),
          ),
        ),
        time(),
      ],
      monthly: () => [
        h(
          'label',
          t('cron.on_day'),
          ' ',
          select({
            label: t('cron.on_day'),
            value: form.day || '1',
            options: [
              ...Array.from({ length: 31 }, (_, i) => [String(i + 1), String(i + 1)]),
              ['L', t('cron.last_day')],
              ['LW', t('cron.last_weekday')],
              ...(form.day && form.day.includes(',') ? [[form.day, form.day]] : []),
            ],
            onchange: (v) => set({ day: v }),
          }),
        ),
        time(),
      ],
      nth: () => [
        h(
          'label',
          t('cron.the'),
          ' ',
          select({
            label: t('cron.the'),
            value: form.nth || '1',
            options: [
              ['1', t('cron.first')],
              ['2', t('cron.second')],
              ['3', t('cron.third')],
              ['4', t('cron.fourth')],
              ['L', t('cron.last')],
            ],
            onchange: (v) => set({ nth: v }),
          }),
          select({
            label: t('cron.days'),
            value: form.day || '6',
            options: weekdays,
            onchange: (v) => set({ day: v }),
          }),
        ),
        time(),
      ],
      fields: () => fields(),
    }[form.kind];
    put(parts, one?.());
  }

  function fields() {
    const f = split(now);
    return h(
      'div.cron-fields',
      NAMES.map((name) =>
        field({
          label: t(`cron.f_${name}`),
          input: input({
            value: f[name],
            mono: true,
            label: t(`cron.f_${name}`),
            oninput: (v) => {
              f[name] = v.trim();
              // Of the two days one must be `?`.
              if (name === 'dom' && v.trim() && v.trim() !== '?' && f.dow !== '?') f.dow = '?';
              if (name === 'dow' && v.trim() && v.trim() !== '?' && f.dom !== '?') f.dom = '?';
              give(join(f));
            },
          }),
        }),
      ),
      h('p.hint', t('cron.hint')),
    );
  }

  draw();
  const el = h(
    'div.cron',
    h('div.cron-top', how, parts),
    field({ label: t('cron.text'), hint: t('cron.text_hint'), input: line }),
  );
  return { el, value: () => now, line };
}
