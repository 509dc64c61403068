// One group: its batches, its picture, its grid, its jobs, its versions.

import { api, ApiError, live } from '../api.js';
import { t } from '../i18n.js';
import { closePanel, openJob } from '../job_panel.js';
import { openBatch } from '../open_batch.js';
import { go, setQuery, to } from '../router.js';
import { store } from '../store.js';
import {
  button,
  card,
  facts,
  failed,
  h,
  loading,
  menu,
  num,
  pageHead,
  pages,
  put,
  settled,
  shown,
  table,
  tabs,
} from '../ui.js';
import { batchTable, marked } from './batches.js';

const TABS = [
  ['batches', 'batches'],
  ['grid', 'grid'],
  ['dag', 'dag'],
  ['jobs', 'job'],
  ['trend', 'gantt'],
  ['versions', 'rerun'],
  ['about', 'info'],
];

export async function mount(el, ctx) {
  const { group } = ctx.params;
  ctx.title(group);
  const at = api.path`/groups/${group}`;
  const doc = await api.get(at);
  const def = doc.group;
  const body = h('div.tab-body');
  const bar = h('div');
  let shownTab = null;
  let turn = 0;
  const ends = [];
  put(
    el,
    pageHead({
      title: group,
      sub: [def.name, def.type].filter(Boolean).join(' · '),
      crumbs: [[t('nav.groups'), '#/groups']],
      actions: [
        menu(
          t('group.take'),
          [
            { label: t('group.export'), icon: 'download', href: api.href('/definition/export', { group }) },
            { label: t('group.backfill'), icon: 'backfill', href: `#/backfills?group=${encodeURIComponent(group)}` },
            {
              label: t('group.edit'),
              icon: 'edit',
              href: `#/definition?group=${encodeURIComponent(group)}`,
              disabled: store.why('edit', group),
            },
            {
              label: t('ed.open'),
              icon: 'dag',
              href: `#/editor?group=${encodeURIComponent(group)}`,
              disabled: store.why('edit', group),
            },
            { label: t('batch.audit'), icon: 'audit', href: `#/audit?group=${encodeURIComponent(group)}` },
          ],
          { icon: 'more', iconOnly: true, test: 'group-more' },
        ),
        button(t('batch.open'), {
          kind: 'primary',
          icon: 'plus',
          test: 'open-batch',
          disabled: store.why('run', group),
          onclick: () => openBatch({ group }),
        }),
      ],
    }),
    bar,
    body,
  );

  async function showTab(next, query) {
    const mine = ++turn;
    const name = TABS.some(([k]) => k === next) ? next : 'batches';
    shownTab?.destroy?.();
    shownTab = null;
    put(
      bar,
      tabs({
        label: t('batch.views'),
        current: name,
        items: TABS.map(([key, mark]) => [key, t(`group.tab_${key}`), mark, `${to`/groups/${group}`}/${key}`]),
      }),
    );
    put(body, loading());
    body.className = `tab-body tab-body-${name}`;
    const tabCtx = {
      group,
      no: undefined,
      query,
      setQuery,
      states: new Map(),
      batch: null,
      openJob: (code, no) => (no ? openJob({ group, no, job: code }) : go(to`/jobs/${`${group}.${code}`}`)),
      act() {},
      readonly: !store.may('run', group),
    };
    try {
      if (name === 'batches') shownTab = await batchesTab(body, group);
      else if (name === 'grid' || name === 'dag') {
        const module = await (name === 'grid' ? import('./group_grid.js') : import('./group_dag.js'));
        if (mine !== turn) return;
        put(body);
        shownTab = (await module.mount(body, tabCtx)) ?? {};
      } else if (name === 'jobs') await jobsTab(body, group);
      else if (name === 'trend') {
        const { mountTrend } = await import('./trend.js');
        if (mine !== turn) return;
        put(body);
        shownTab = await mountTrend(body, { group });
      } else if (name === 'versions') {
        const { showVersions } = await import('../edit/versions.js');
        put(body);
        await showVersions(body, group, { onDone: () => showTab('versions', query) });
      } else aboutTab(body, doc, def);
      if (mine !== turn) shownTab?.destroy?.();
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      if (mine === turn)
        put(
          body,
          failed(error, () => showTab(name, query)),
        );
    }
  }
  await showTab(ctx.params.tab, ctx.query);
  return {
    change(params, query) {
      if (params.group !== group) return false;
      showTab(params.tab, query);
      return true;
    },
    destroy() {
      turn += 1;
      shownTab?.destroy?.();
      closePanel();
      ends.forEach((end) => end());
    },
  };
}

async function batchesTab(body, group) {
  const grow = pages({
    load: (cursor) => api.get('/batches', { group, limit: 50, cursor }),
    make: (items) => {
      const list = batchTable(items, { empty: { title: t('batches.none'), lead: t('batches.none_lead') } });
      return {
        ...list,
        update: (next) => {
          list.update(next);
          marked(list, next);
        },
      };
    },
  });
  marked(grow, await grow.start());
  put(body, grow.el);
  const again = settled(1500, () => grow.items().length <= 50 && body.isConnected && grow.start().catch(() => {}));
  return { destroy: live({ group }, { batch: again, gap: again, state: (is) => store.tell('live', is) }) };
}

async function jobsTab(body, group) {
  await shown(
    body,
    async () => {
      // What a job waits for is in the graph; the list of jobs does not have it.
      const [jobs, graph] = await Promise.all([
        api.all('/jobs', { group }),
        api.get(api.path`/groups/${group}/dag`, { layout: 'none' }),
      ]);
      const parents = new Map();
      for (const edge of graph.edges) {
        if (!parents.has(edge.target)) parents.set(edge.target, []);
        parents.get(edge.target).push(edge.source);
      }
      return jobs.map((job) => ({ ...job, depends_on: parents.get(jobDef(job).code) ?? [] }));
    },
    (jobs) =>
      table({
        caption: t('nav.jobs'),
        rows: jobs,
        rowKey: (j) => jobDef(j).code,
        onOpen: (j) => go(to`/jobs/${`${group}.${jobDef(j).code}`}`),
        empty: t('job.none'),
        tall: true,
        columns: [
          {
            key: 'code',
            label: t('job.one'),
            value: (j) => jobDef(j).code,
            cell: (j) => h('a', { href: to`/jobs/${`${group}.${jobDef(j).code}`}` }, jobDef(j).code),
          },
          { key: 'name', label: t('job.name'), value: (j) => jobDef(j).name, cell: (j) => jobDef(j).name ?? '' },
          {
            key: 'type',
            label: t('job.type'),
            value: (j) => jobDef(j).job_type ?? jobDef(j).type,
            cell: (j) => jobDef(j).job_type ?? jobDef(j).type ?? '',
          },
          {
            key: 'source',
            label: t('job.source'),
            hide: 'narrow',
            value: (j) => jobDef(j).source,
            cell: (j) => jobDef(j).source ?? '',
          },
          {
            key: 'depends',
            label: t('job.depends_on'),
            hide: 'middle',
            cls: 'clip',
            sort: false,
            cell: (j) => {
              const all = j.depends_on.join(', ');
              return h('span', { title: all, 'data-test': 'depends-on' }, all);
            },
          },
          {
            key: 'mode',
            label: t('job.mode'),
            hide: 'narrow',
            sort: false,
            cell: (j) => (j.run_mode ? h('span.tag', t(`mode.${j.run_mode}`)) : ''),
          },
        ],
      }).el,
  );
}
const jobDef = (j) => (j.job && typeof j.job === 'object' ? j.job : { ...j, code: j.job_code ?? j.code });

function aboutTab(body, doc, def) {
  const value = (v) =>
    Array.isArray(v)
      ? v.map((x) => (typeof x === 'object' ? (x.name ?? JSON.stringify(x)) : x)).join(', ')
      : v && typeof v === 'object'
        ? h('code', JSON.stringify(v))
        : v === true
          ? t('common.yes')
          : v === false
            ? t('common.no')
            : String(v);
  const known = [
    'name',
    'type',
    'owner',
    'owners',
    'notify_email',
    'calendar',
    'time_zone',
    'due',
    'max_parallel',
    'params',
    'on_failure',
    'batch_timeout_sec',
    'source',
    'depends_on',
  ];
  const rows = Object.entries(def).filter(
    ([k, v]) =>
      v !== null &&
      v !== undefined &&
      v !== '' &&
      !(Array.isArray(v) && !v.length) &&
      !(typeof v === 'object' && !Array.isArray(v) && !Object.keys(v).length) &&
      !['jobs', 'last_batches', 'batches', 'counts', 'definition'].includes(k),
  );
  rows.sort(([a], [b]) => (known.indexOf(a) + 1 || 99) - (known.indexOf(b) + 1 || 99));
  put(
    body,
    card(
      t('group.tab_about'),
      facts(
        rows.map(([k, v]) => [h('code', k), value(v)]),
        { wide: true },
      ),
      facts([
        [t('nav.jobs'), num(doc.jobs)],
        [t('group.active_jobs'), num(doc.active_jobs)],
        [t('versions.no'), num(doc.version)],
        [
          t('nav.schedules'),
          doc.schedules?.length
            ? h(
                'span.tags',
                doc.schedules.map((s) => h('a', { href: to`/schedules/${s}` }, s)),
              )
            : null,
        ],
      ]),
    ),
  );
}
