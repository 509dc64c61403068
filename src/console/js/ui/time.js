// Times and lengths: in the reader's zone, which is named; in UTC on hover.

import { lang as current, locale } from '../i18n.js';
import { store } from '../store.js';
import { h } from './dom.js';

export const zone = () => (store.prefs.zone === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone);

const formats = new Map();
function format(options) {
  const key = `${locale()}|${zone()}|${JSON.stringify(options)}`;
  if (!formats.has(key))
    formats.set(key, new Intl.DateTimeFormat('sv-SE', { timeZone: zone(), hourCycle: 'h23', ...options }));
  return formats.get(key);
}

/** The zone as it is written beside times: `UTC+8`. */
export function zoneName(at = Date.now()) {
  const part = new Intl.DateTimeFormat('en', { timeZone: zone(), timeZoneName: 'shortOffset' })
    .formatToParts(at)
    .find((p) => p.type === 'timeZoneName');
  return (part?.value ?? zone()).replace('GMT', 'UTC');
}

const ms = (at) => (typeof at === 'number' ? at : at instanceof Date ? at.getTime() : Date.parse(at));
const DATE = { year: 'numeric', month: '2-digit', day: '2-digit' };
const CLOCK = { hour: '2-digit', minute: '2-digit' };

/** `2024-07-31 02:00`; today's without the date unless it is asked for. */
export function timeText(at, { seconds = false, date, millis = false } = {}) {
  const value = ms(at);
  if (!Number.isFinite(value)) return '';
  const clock = format({
    ...CLOCK,
    ...(seconds || millis ? { second: '2-digit' } : {}),
    ...(millis ? { fractionalSecondDigits: 3 } : {}),
  })
    .format(value)
    .replace(',', '.');
  const day = format(DATE).format(value);
  const withDay = date ?? day !== format(DATE).format(Date.now());
  return withDay ? `${day} ${clock}` : clock;
}

export const dayText = (at) => format(DATE).format(ms(at));

/** A time as an element: UTC and the zone on hover. */
export function time(at, options) {
  const value = ms(at);
  if (at === null || at === undefined || !Number.isFinite(value)) return h('span.none', '–');
  const iso = new Date(value).toISOString();
  return h(
    'time',
    {
      datetime: iso,
      title: `${timeText(value, { seconds: true, date: true })} ${zoneName(value)}\n${iso.replace('T', ' ').replace(/\.\d+Z/, '')} UTC`,
    },
    timeText(value, options),
  );
}

/** A sentence of the server with its moments in the reader's zone: one panel shows one clock. */
export const sentence = (text) =>
  String(text ?? '')
    .split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/)
    .map((part, i) => (i % 2 ? time(part, { seconds: true }) : part));

/** `35 ms`, `4.2 s`, `12 min 05 s`, `2 h 05 min`, `3 d 4 h`. */
export function duration(length) {
  if (length === null || length === undefined || !Number.isFinite(length)) return '–';
  const sign = length < 0 ? '−' : '';
  const n = Math.abs(length);
  const two = (x) => String(x).padStart(2, '0');
  const [MS, S, MIN, H, D] = current() === 'zh' ? ['毫秒', '秒', '分', '小时', '天'] : ['ms', 's', 'min', 'h', 'd'];
  if (n < 1000) return `${sign}${Math.round(n)} ${MS}`;
  if (n < 9950) return `${sign}${(n / 1000).toFixed(1)} ${S}`;
  const sec = Math.round(n / 1000);
  if (sec < 60) return `${sign}${sec} ${S}`;
  const [min, hour, day] = [Math.floor(sec / 60), Math.floor(sec / 3600), Math.floor(sec / 86400)];
  if (hour < 1) return `${sign}${min} ${MIN} ${two(sec % 60)} ${S}`;
  if (day < 1) return `${sign}${hour} ${H} ${two(min % 60)} ${MIN}`;
  return `${sign}${day} ${D} ${hour % 24} ${H}`;
}

/** `3 minutes ago`, `in 2 hours`, in the reader's language. */
export function agoText(at, now = Date.now()) {
  const off = ms(at) - now;
  if (!Number.isFinite(off)) return '';
  const n = Math.abs(off);
  const rel = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto', style: 'short' });
  if (n < 45000) return rel.format(Math.round(off / 1000), 'second');
  if (n < 45 * 60000) return rel.format(Math.round(off / 60000), 'minute');
  if (n < 22 * 3600000) return rel.format(Math.round(off / 3600000), 'hour');
  return rel.format(Math.round(off / 86400000), 'day');
}

/** The same as an element that keeps itself true while it is shown. */
export function ago(at) {
  if (!at || !Number.isFinite(ms(at))) return h('span.none', '–');
  const el = time(at);
  el.textContent = agoText(at);
  el.dataset.ago = String(ms(at));
  return el;
}
setInterval(() => {
  for (const el of document.querySelectorAll('[data-ago]')) {
    const words = agoText(Number(el.dataset.ago));
    if (el.textContent !== words) el.textContent = words;
  }
  for (const el of document.querySelectorAll('[data-since]'))
    el.textContent = duration(Date.now() - Number(el.dataset.since));
}, 1000);

/** How long something has run, as an element that counts. */
export function since(at) {
  const value = ms(at);
  return h('span.num', { 'data-since': String(value) }, duration(Date.now() - value));
}

export const num = (n) => (n === null || n === undefined ? '–' : Number(n).toLocaleString(locale()));

export function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  let value = n;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** The first moment of a day that an input names, in the reader's zone; with `after` days later. */
export function dayStart(day, after = 0) {
  if (!day) return '';
  const [y, m, d] = day.split('-').map(Number);
  return new Date(
    store.prefs.zone === 'utc' ? Date.UTC(y, m - 1, d + after) : new Date(y, m - 1, d + after).getTime(),
  ).toISOString();
}

/** Local date of an input (`2024-07-31T02:00`) as RFC 3339 UTC, by the browser's zone. */
export const fromInput = (value) => (value ? new Date(value).toISOString() : '');
