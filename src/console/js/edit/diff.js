// What differs: between two texts line by line, and between two definitions field by field.

import { t } from '../i18n.js';
import { empty, h, icon } from '../ui.js';

/** Lines of both texts: [[sign, line, number before, number after]]; sign is ' ', '-' or '+'. */
export function lineDiff(before, after) {
  const a = before.split('\n'),
    b = after.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  const x = a.slice(head, a.length - tail),
    y = b.slice(head, b.length - tail);
  const middle = x.length * y.length > 4e6 ? [...x.map((l) => ['-', l]), ...y.map((l) => ['+', l])] : common(x, y);
  const all = [...a.slice(0, head).map((l) => [' ', l]), ...middle, ...a.slice(a.length - tail).map((l) => [' ', l])];
  let n = 0,
    m = 0;
  return all.map(([sign, line]) => [sign, line, sign === '+' ? null : ++n, sign === '-' ? null : ++m]);
}

function common(x, y) {
  const w = y.length + 1;
  const long = new Uint16Array((x.length + 1) * w);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--)
      long[i * w + j] =
        x[i] === y[j] ? long[(i + 1) * w + j + 1] + 1 : Math.max(long[(i + 1) * w + j], long[i * w + j + 1]);
  }
  const out = [];
  let i = 0,
    j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push([' ', x[i]]);
      i += 1;
      j += 1;
    } else if (i < x.length && (j === y.length || long[(i + 1) * w + j] >= long[i * w + j + 1])) {
      out.push(['-', x[i]]);
      i += 1;
    } else {
      out.push(['+', y[j]]);
      j += 1;
    }
  }
  return out;
}

/** The differing lines with three of what is around them. */
export function textDiff(before, after, { label } = {}) {
  const all = lineDiff(before, after);
  const near = new Set();
  all.forEach(([sign], i) => {
    if (sign !== ' ') for (let k = i - 3; k <= i + 3; k++) near.add(k);
  });
  if (!near.size) return h('p.muted', t('diff.same'));
  const rows = [];
  let gap = false;
  all.forEach(([sign, line, n, m], i) => {
    if (!near.has(i)) {
      gap = true;
      return;
    }
    if (gap && rows.length) rows.push(h('tr.df-gap', h('td', { colspan: 4 }, '⋯')));
    gap = false;
    rows.push(
      h(
        'tr',
        { class: { '-': 'df-out', '+': 'df-in', ' ': null }[sign] },
        h('td.df-n', n ?? ''),
        h('td.df-n', m ?? ''),
        h(
          'td.df-sign',
          { 'aria-label': sign === '-' ? t('diff.removed') : sign === '+' ? t('diff.added') : null },
          sign,
        ),
        h('td.df-line', line || ' '),
      ),
    );
  });
  return h(
    'div.df-frame',
    { tabindex: '0', role: 'region', 'aria-label': label ?? t('diff.title') },
    h('table.df', { 'data-test': 'diff' }, h('tbody', rows)),
  );
}

const SIGN = { added: '+', removed: '−', changed: '~' };

/** Changes as the server lists them: {entity, code, how, fields: [{field, old, new}]}. */
export function changesView(changes, { none } = {}) {
  if (!changes?.length) return empty({ title: none ?? t('diff.nothing'), mark: 'check' });
  return h(
    'ul.df-list',
    { 'data-test': 'changes' },
    changes.map((c) => {
      const word = `diff.how_${c.how}`;
      const head = [
        h(
          `span.df-how.df-${c.how}`,
          h('span', { 'aria-hidden': 'true' }, SIGN[c.how] ?? '~'),
          h('span.visually-hidden', t(word)),
        ),
        h('span.muted', entityName(c.entity)),
        h('strong', c.code),
      ];
      if (!c.fields?.length) return h('li', h('div.df-head', head));
      const open = changes.length <= 6;
      return h(
        'li',
        h(
          'details',
          { open },
          h('summary.df-head', head, h('span.muted', c.fields.map((f) => f.field).join(', '))),
          c.fields.map(fieldView),
        ),
      );
    }),
  );
}

const entityName = (word) => {
  const key = `diff.thing_${word}`;
  const said = t(key);
  return said === key ? word : said;
};

function fieldView(f) {
  const old = f.old ?? '',
    now = f.new ?? '';
  const long = `${old}${now}`.includes('\n') || `${old}${now}`.length > 120;
  return h(
    'div.df-field',
    h('code', f.field),
    long
      ? textDiff(String(old), String(now), { label: f.field })
      : h('span', h('del', f.old ?? t('diff.unset')), ' → ', h('ins', f.new ?? t('diff.unset'))),
  );
}

/** Faults and warnings with their lines; a press goes there. */
export function faultsView(faults, { warnings = [], goto } = {}) {
  const line = (f, kind) =>
    h(
      'li',
      { class: `df-${kind}` },
      icon(kind === 'fault' ? 'warning' : 'info', 14),
      f.line > 0 && goto
        ? h('button.df-goto', { type: 'button', onclick: () => goto(f.line) }, t('diff.line', { n: f.line }))
        : f.line > 0
          ? h('span', t('diff.line', { n: f.line }))
          : null,
      h('span', f.what, f.fix && h('span.muted', ` – ${f.fix}`)),
    );
  // A list that is an alert is no list any more: the box around it is.
  return h(
    'div',
    { role: faults.length ? 'alert' : null },
    h(
      'ul.df-faults',
      { 'data-test': 'faults' },
      faults.map((f) => line(f, 'fault')),
      warnings.map((f) => line(f, 'warn')),
    ),
  );
}

/** What a check without faults has found. */
export const checkedWords = ({ groups, jobs, dependencies }) =>
  t('def.ok', {
    groups: t('def.n_groups', { n: groups }),
    jobs: t('dag.n_jobs', { n: jobs }),
    edges: t('dag.n_edges', { n: dependencies }),
  });
