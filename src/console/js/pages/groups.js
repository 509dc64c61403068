// Groups: the pipelines, each with how its last batch ended.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { openBatch } from '../open_batch.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import { badge, button, h, input, pageHead, put, settled, shown, table, time } from '../ui.js';

export const codeOf = (g) => g.group ?? g.code;
const last = (g) => g.last_batch ?? g.last ?? g.batches?.[0] ?? g.last_batches?.[0];

export async function mount(el, ctx) {
  ctx.title(t('nav.groups'));
  const host = h('div');
  let all = [];
  let list;
  const q = () => box.value.trim().toLowerCase();
  const draw = () =>
    list?.update(
      all.filter((g) => !q() || `${codeOf(g)} ${g.name ?? ''} ${owner(g)} ${g.type ?? ''}`.toLowerCase().includes(q())),
    );
  const box = input({
    type: 'search',
    label: t('groups.find'),
    placeholder: t('groups.find'),
    value: ctx.query.get('q') ?? '',
    test: 'filter-q',
    oninput: settled(120, (v) => {
      ctx.setQuery({ q: v });
      draw();
    }),
  });
  put(el, pageHead({ title: t('nav.groups'), sub: t('groups.lead') }), h('div.filters', box), host);
  await shown(
    host,
    async () => (all = await api.all('/groups')),
    () => {
      list = table({
        caption: t('nav.groups'),
        rows: all,
        rowKey: codeOf,
        test: 'groups',
        onOpen: (g) => go(to`/groups/${codeOf(g)}`),
        empty: { title: t('groups.none'), lead: t('groups.none_lead') },
        columns: [
          {
            key: 'group',
            label: t('group.one'),
            value: codeOf,
            cell: (g) => h('a', { href: to`/groups/${codeOf(g)}` }, codeOf(g)),
          },
          { key: 'name', label: t('job.name'), cls: 'clip', cell: (g) => g.name ?? '' },
          { key: 'type', label: t('group.type'), cell: (g) => (g.type ? h('span.tag', g.type) : '') },
          {
            key: 'jobs',
            label: t('nav.jobs'),
            num: true,
            value: (g) => Number(g.jobs ?? g.job_count ?? 0),
            cell: (g) => String(g.jobs ?? g.job_count ?? ''),
          },
          {
            key: 'last',
            label: t('group.last'),
            value: (g) => last(g)?.create_time,
            cell: (g) =>
              last(g)
                ? h(
                    'span.row.nowrap',
                    badge(last(g).status),
                    h('a', { href: to`/batches/${codeOf(g)}/${last(g).batch_no}` }, last(g).batch_no),
                  )
                : h('span.none', '–'),
          },
          {
            key: 'when',
            label: t('batch.began'),
            hide: 'narrow',
            value: (g) => last(g)?.create_time,
            cell: (g) => time(last(g)?.create_time),
          },
          {
            key: 'calendar',
            label: t('group.calendar'),
            hide: 'middle',
            cell: (g) => (g.calendar ? h('a', { href: to`/calendars/${g.calendar}` }, g.calendar) : ''),
          },
          { key: 'owner', label: t('group.owner'), hide: 'narrow', value: owner, cell: (g) => owner(g) },
          {
            key: 'do',
            label: '',
            sort: false,
            cell: (g) =>
              button(t('batch.open'), {
                icon: 'plus',
                small: true,
                kind: 'quiet',
                disabled: store.why('run', codeOf(g)),
                onclick: () => openBatch({ group: codeOf(g) }),
              }),
          },
        ],
      });
      draw();
      return list.el;
    },
  );
}

const owner = (g) => {
  const o = g.owner ?? g.owners;
  return Array.isArray(o) ? o.map((x) => x.name ?? x).join(', ') : (o?.name ?? o ?? '');
};
