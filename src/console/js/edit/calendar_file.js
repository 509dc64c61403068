// A file of days: its form by its name, the years it is complete for, and what it would change, in words.

import { t } from '../i18n.js';

/** The form of a file by the end of its name: `json`, `csv` or `ics`. */
export const formOf = (name) => (/\.csv$/i.test(name) ? 'csv' : /\.ics$/i.test(name) ? 'ics' : 'json');

/** `2026, 2027` as numbers. What is no year is left to the server to refuse, so it stays in. */
export const yearsOf = (text) =>
  String(text ?? '')
    .split(/[\s,，;；]+/)
    .filter(Boolean)
    .map(Number);

const dayWords = (day) => {
  const kind = t(day.kind === 'work' ? 'cals.kind_work' : 'cals.kind_off');
  return day.label ? `${kind} · ${day.label}` : kind;
};

function dayLine(date, change) {
  const set = (value) => t('cals.change_set', { what: date, value });
  if (change.added) return set(dayWords(change.added));
  if (change.removed) return t('cals.change_removed', { what: `${date} ${dayWords(change.removed)}` });
  const [old, next] = change.changed;
  return set(`${dayWords(old)} → ${dayWords(next)}`);
}

/** What differs, a line each: name and weekend, years, days. */
export function changesOf(changes) {
  return [
    ...(changes.head ?? []).map((one) =>
      t('cals.change_set', { what: one.what, value: `${one.old || '–'} → ${one.new || '–'}` }),
    ),
    ...(changes.years_added ?? []).map((year) => t('cals.change_added', { what: year })),
    ...(changes.years_removed ?? []).map((year) => t('cals.change_removed', { what: year })),
    ...Object.entries(changes.days ?? {}).map(([date, change]) => dayLine(date, change)),
  ];
}
