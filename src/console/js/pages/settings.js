// The settings this process runs with, to read. They are changed in procession.toml.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { card, h, input, pageHead, put, settled, shown, table } from '../ui.js';

/** Settings as one list: `engine.lease_sec` and its value. */
function flatten(value, at = '', out = []) {
  if (value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length)
    for (const [k, v] of Object.entries(value)) flatten(v, at ? `${at}.${k}` : k, out);
  else out.push([at, value]);
  return out;
}
const words = (v) =>
  v === null || v === undefined
    ? '–'
    : Array.isArray(v)
      ? v.map((x) => (typeof x === 'object' ? JSON.stringify(x) : x)).join(', ') || '[]'
      : typeof v === 'object'
        ? JSON.stringify(v)
        : String(v);

export async function mount(el, ctx) {
  ctx.title(t('nav.settings'));
  const host = h('div');
  let all = [];
  let lists = [];
  const draw = (q) => {
    for (const [section, list] of lists) {
      const rows = all.filter(
        ([k, v]) => k.split('.')[0] === section && (!q || k.includes(q) || words(v).toLowerCase().includes(q)),
      );
      list.update(rows);
      list.el.closest('.card').hidden = rows.length === 0;
    }
  };
  put(
    el,
    pageHead({ title: t('nav.settings'), sub: t('settings.lead') }),
    h(
      'div.filters',
      input({
        type: 'search',
        label: t('settings.find'),
        placeholder: t('settings.find'),
        oninput: settled(120, (v) => draw(v.trim().toLowerCase())),
      }),
    ),
    host,
  );
  await shown(
    host,
    () => api.get('/settings'),
    (got) => {
      const items = got.items ?? got.settings ?? got;
      all = Array.isArray(items) ? items.map((i) => [i.key ?? i.name, i.value, i.from ?? i.origin]) : flatten(items);
      lists = [...new Set(all.map(([k]) => k.split('.')[0]))].map((section) => [
        section,
        table({
          caption: section,
          rows: [],
          rowKey: (r) => r[0],
          columns: [
            { key: 'k', label: t('settings.key'), width: '40%', value: (r) => r[0], cell: (r) => h('code', r[0]) },
            { key: 'v', label: t('param.value'), value: (r) => words(r[1]), cell: (r) => h('code', words(r[1])) },
            ...(all.some((r) => r[2])
              ? [{ key: 'f', label: t('settings.from'), value: (r) => r[2], cell: (r) => h('span.muted', r[2] ?? '') }]
              : []),
          ],
        }),
      ]);
      return h(
        'div.stack',
        lists.map(([section, list]) => card(section, { cls: 'flush' }, list.el)),
      );
    },
  );
  draw('');
}
