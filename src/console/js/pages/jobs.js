// All jobs: found by words, tag, group, type and whether they are active.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { button, empty, h, icon, pageHead, pages, put, select, settled, shown, table } from '../ui.js';

const TYPES = [
  'PROC',
  'SQL',
  'SCRIPT',
  'HTTP',
  'SENSOR',
  'BATCH',
  'HANDLER',
  'GLUE',
  'FLINK',
  'SPARK',
  'APPROVAL',
  'NOOP',
];

export async function mount(el, ctx) {
  ctx.title?.(t('jobs.title'));
  const wish = { q: '', group: '', tag: '', type: '', active: '' };
  for (const key of Object.keys(wish)) wish[key] = ctx.query?.get(key) ?? '';
  let turn = 0;
  const host = h('div');
  const groups = h('span');
  const tags = h('span');
  const q = h('input.dg-search', {
    type: 'search',
    placeholder: t('jobs.search'),
    'aria-label': t('jobs.search'),
    value: wish.q,
    'data-test': 'jobs-search',
    oninput: settled(250, () => change({ q: q.value.trim() })),
  });
  const change = (next) => {
    Object.assign(wish, next);
    ctx.setQuery?.(wish);
    drawTags();
    load();
  };
  const drawTags = () =>
    put(
      tags,
      wish.tag &&
        button(t('jobs.tag', { tag: wish.tag }), {
          icon: 'close',
          small: true,
          test: 'jobs-tag',
          onclick: () => change({ tag: '' }),
        }),
    );
  el.append(
    pageHead({
      title: t('jobs.title'),
      sub: t('jobs.sub'),
      actions: [h('a.btn', { href: '#/definition' }, icon('edit'), h('span', t('jobs.files')))],
    }),
    h(
      'div.dg-tools',
      q,
      groups,
      select({
        label: t('jobs.type'),
        value: wish.type,
        test: 'jobs-type',
        options: [['', t('jobs.any_type')], ...TYPES.map((x) => [x, x])],
        onchange: (v) => change({ type: v }),
      }),
      select({
        label: t('jobs.active'),
        value: wish.active,
        test: 'jobs-active',
        options: [
          ['', t('jobs.any_active')],
          ['true', t('jobs.is_active')],
          ['false', t('jobs.is_inactive')],
        ],
        onchange: (v) => change({ active: v }),
      }),
      tags,
    ),
    host,
  );
  drawTags();
  api
    .all('/groups')
    .then((all) =>
      put(
        groups,
        select({
          label: t('sf.group'),
          value: wish.group,
          test: 'jobs-group',
          options: [['', t('cal.all_groups')], ...all.map((g) => [g.code ?? g.group, g.code ?? g.group])],
          onchange: (v) => change({ group: v }),
        }),
      ),
    )
    .catch(() => {});

  async function load() {
    const mine = ++turn;
    const list = pages({
      load: (cursor) => api.get('/jobs', { ...wish, active: wish.active || undefined, limit: 200, cursor }),
      make: (rows) =>
        table({
          caption: t('jobs.title'),
          rows,
          rowKey: (j) => `${j.group}.${j.code}`,
          test: 'jobs',
          onOpen: (j) => go(to`/jobs/${`${j.group}.${j.code}`}`),
          empty: empty({ title: t('jobs.none'), lead: t('jobs.none_lead') }),
          rowClass: (j) => (j.is_active === false ? 'jb-off' : ''),
          columns: [
            {
              key: 'code',
              label: t('grid.job'),
              value: (j) => j.code,
              cell: (j) => [
                h('a.strong', { href: to`/jobs/${`${j.group}.${j.code}`}`, 'data-test': 'job-link' }, j.code),
                j.name && j.name !== j.code && h('div.muted', j.name),
              ],
            },
            { key: 'group', label: t('sf.group'), cell: (j) => h('a', { href: to`/groups/${j.group}` }, j.group) },
            { key: 'type', label: t('jobs.type'), value: (j) => j.type, cell: (j) => h('code', j.type) },
            {
              key: 'body',
              label: t('jobs.body'),
              value: (j) => j.proc_name ?? j.handler ?? j.executor ?? j.source,
              cell: (j) => [
                (j.proc_name ?? j.handler) && h('code', j.proc_name ?? j.handler),
                (j.source ?? j.executor) && h('span.muted', ` ${j.source ?? j.executor}`),
              ],
              hide: 'narrow',
            },
            {
              key: 'tags',
              label: t('jobs.tags'),
              sort: false,
              cell: (j) =>
                (j.tags ?? []).map((x) => h('button.jb-tag', { type: 'button', onclick: () => change({ tag: x }) }, x)),
              hide: 'narrow',
            },
            { key: 'owner', label: t('jobs.owner'), cell: (j) => j.owner ?? '', hide: 'narrow' },
            {
              key: 'state',
              label: t('jobs.standing'),
              value: (j) => `${j.is_active}${j.run_mode ?? ''}`,
              cell: standing,
            },
          ],
        }),
    });
    await shown(
      host,
      () => list.start(),
      () => (mine === turn ? list.el : undefined),
    );
  }
  await load();
  return {
    destroy() {
      turn = -1;
    },
  };
}

/** What is out of the ordinary about a job. */
export function standing(j) {
  const marks = [];
  if (j.is_active === false)
    marks.push(h('span.badge.st-skipped', icon('pause', 13), h('span', t('jobs.is_inactive'))));
  if (j.run_mode)
    marks.push(h('span.badge.st-held', icon('hold', 13), h('span', t('jobs.mode', { mode: j.run_mode }))));
  if (j.violation) marks.push(h('span.badge.st-warning', icon('warning', 13), h('span', t('jobs.breach'))));
  return marks.length ? marks : h('span.muted', t('jobs.ordinary'));
}
