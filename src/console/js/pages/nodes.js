// Nodes: the processes that share the database, what they run, and whether they still answer. Sources beside them.

import { api } from '../api.js';
import { has, lang, t } from '../i18n.js';
import { store } from '../store.js';
import {
  ago,
  button,
  card,
  confirmReason,
  duration,
  empty,
  h,
  linkButton,
  num,
  pageHead,
  poll,
  put,
  shown,
  table,
  toast,
  glyph,
} from '../ui.js';

const stateWord = (s) => (has(`nodes.state_${s}`) ? t(`nodes.state_${s}`) : (s ?? ''));
const stateMark = (n) =>
  /lost|dead|ended|left|stale/.test(n.state ?? '') ? 'FAILED' : /drain|leav/.test(n.state ?? '') ? 'HELD' : 'SUCCESS';

const holdsWord = (s) => (has(`nodes.holds_${s.holds}`) ? t(`nodes.holds_${s.holds}`) : s.holds);

const controlGroups = (s) => {
  if (s.cgroup_obstacle) return t('nodes.cgroups_none', { why: s.cgroup_obstacle });
  return (s.controllers ?? []).join(', ') || t('nodes.cgroups_kill');
};

const byGroup = (map) => Object.entries(map ?? {}).map(([group, what]) => h('span.tag', `${group}: ${what}`));

/** How each living node isolates and limits scripts, and why not more. */
const scriptCard = (nodes) => {
  const rows = nodes.filter((n) => n.scripts && stateMark(n) !== 'FAILED');
  if (rows.length === 0) return null;
  return card(
    t('nodes.scripts_title'),
    { cls: 'flush', test: 'script-isolation' },
    table({
      caption: t('nodes.scripts_title'),
      rows,
      rowKey: (n) => n.id,
      columns: [
        { key: 'name', label: t('nodes.name') },
        { key: 'isolation', label: t('nodes.isolation'), cell: (n) => h('code', n.scripts.isolation) },
        {
          key: 'holds',
          label: t('nodes.scripts'),
          cell: (n) =>
            h(
              'span',
              holdsWord(n.scripts),
              n.scripts.equals_service &&
                h('span.late', { title: t('nodes.equals_service_lead') }, ` · ${t('nodes.equals_service')}`),
            ),
        },
        { key: 'obstacle', label: t('nodes.obstacle'), cell: (n) => n.scripts.obstacle ?? '' },
        {
          key: 'run_as',
          label: t('nodes.run_as'),
          sort: false,
          cell: (n) => h('span.tags', byGroup(n.scripts.run_as)),
        },
        {
          key: 'limits',
          label: t('nodes.limits'),
          sort: false,
          cell: (n) =>
            Object.keys(n.scripts.limits ?? {}).length
              ? h('span.tags', byGroup(n.scripts.limits))
              : t('nodes.limits_none'),
        },
        { key: 'cgroups', label: t('nodes.cgroups'), sort: false, cell: (n) => controlGroups(n.scripts) },
      ],
    }).el,
  );
};

export async function mount(el, ctx) {
  ctx.title(t('nav.nodes'));
  const host = h('div');
  const sources = h('div');
  put(el, pageHead({ title: t('nav.nodes'), sub: t('nodes.lead') }), h('div.stack', host, sources));
  const draw = (answer) => {
    const nodes = answer.items ?? answer.nodes ?? answer;
    const doubles = nodes.filter((n) => n.same_name);
    return [
      doubles.length > 0 &&
        h('p.note.note-warning', t('nodes.same_name', { names: [...new Set(doubles.map((n) => n.name))].join(', ') })),
      table({
        caption: t('nav.nodes'),
        rows: nodes,
        rowKey: (n) => n.id,
        test: 'nodes',
        empty: empty({ title: t('nodes.none'), lead: t('nodes.none_lead') }),
        rowClass: (n) => (stateMark(n) === 'FAILED' ? 'row-bad' : null),
        columns: [
          {
            key: 'name',
            label: t('nodes.name'),
            cell: (n) => h('span', { title: n.id }, n.name, h('span.muted', ` #${n.incarnation ?? 1}`)),
          },
          {
            key: 'state',
            label: t('common.status'),
            cell: (n) => h('span.row.nowrap', glyph(stateMark(n)), stateWord(n.state)),
          },
          {
            key: 'running',
            label: t('nodes.running'),
            num: true,
            cell: (n) => h('span', `${n.running} / ${n.max_parallel}`),
          },
          { key: 'batches', label: t('nav.batches'), num: true },
          {
            key: 'roles',
            label: t('nodes.roles'),
            sort: false,
            hide: 'narrow',
            cell: (n) =>
              h(
                'span.tags',
                []
                  .concat(n.roles ?? [])
                  .flatMap((r) => String(r).split(/[,+ ]+/))
                  .map((r) => h('span.tag', r)),
                (n.labels ?? []).map((l) => h('span.tag', `label: ${l}`)),
              ),
          },
          { key: 'host', label: t('nodes.where'), hide: 'narrow', cell: (n) => `${n.host} · ${n.pid}` },
          { key: 'heartbeat_at', label: t('nodes.heard'), cell: (n) => ago(n.heartbeat_at) },
          {
            key: 'lease_left_ms',
            label: t('nodes.lease'),
            num: true,
            hide: 'middle',
            cell: (n) => duration(n.lease_left_ms),
          },
          {
            key: 'skew_ms',
            label: t('nodes.skew'),
            num: true,
            hide: 'middle',
            cell: (n) => h('span', { class: Math.abs(n.skew_ms) > 2000 ? 'late' : null }, `${n.skew_ms} ms`),
          },
          { key: 'version', label: t('login.version'), hide: 'middle' },
          {
            key: 'do',
            label: '',
            sort: false,
            cell: (n) => {
              const drains = stateMark(n) === 'HELD';
              return button(t(drains ? 'nodes.undrain' : 'nodes.drain'), {
                small: true,
                kind: 'quiet',
                icon: drains ? 'play' : 'pause',
                disabled: stateMark(n) === 'FAILED' ? t('nodes.gone') : store.whyEverywhere('admin'),
                onclick: () => {
                  confirmReason({
                    title: t(drains ? 'nodes.undrain_title' : 'nodes.drain_title', { name: n.name }),
                    lead: t(drains ? 'nodes.undrain_lead' : 'nodes.drain_lead'),
                    verb: t(drains ? 'nodes.undrain' : 'nodes.drain'),
                    run: async (reason) => {
                      await api.post(api.path`/nodes/${n.name}/${drains ? 'undrain' : 'drain'}`, { reason });
                      toast(t('common.done'), 'good');
                      refresh();
                    },
                  });
                },
              });
            },
          },
        ],
      }).el,
      scriptCard(nodes),
    ];
  };
  await shown(host, () => api.get('/nodes'), draw);
  let before = '';
  const refresh = async () => {
    const next = await api.get('/nodes');
    const now = JSON.stringify(
      (next.items ?? next.nodes ?? next).map((n) => [n.id, n.state, n.running, n.batches, n.heartbeat_at]),
    );
    if (now !== before && el.isConnected && !host.contains(document.activeElement)) put(host, draw(next));
    before = now;
  };
  shown(
    sources,
    () => api.get('/sources'),
    (got) => {
      const all = got.items ?? got.sources ?? got;
      return card(
        t('sources.title'),
        {
          cls: 'flush',
          test: 'sources',
          actions:
            store.may('edit') &&
            linkButton(t('sources.add'), '#/definition?with=source', { icon: 'plus', test: 'source-add' }),
        },
        table({
          caption: t('sources.title'),
          rows: all,
          rowKey: (s) => s.name,
          empty: t('sources.none'),
          columns: [
            { key: 'name', label: t('sources.name') },
            { key: 'dialect', label: t('job.type') },
            {
              key: 'address',
              label: t('sources.address'),
              cls: 'clip',
              sort: false,
              cell: (s) => (s.at ? h('code', { title: s.at }, s.at) : h('span.bad', s.fault ?? '')),
            },
            {
              key: 'jobs',
              label: t('nav.jobs'),
              num: true,
              value: (s) => s.jobs.length,
              cell: (s) => h('span', { 'data-test': 'source-jobs' }, num(s.jobs.length)),
            },
            {
              key: 'do',
              label: '',
              sort: false,
              cell: (s) =>
                button(t('sources.check'), {
                  small: true,
                  kind: 'quiet',
                  icon: 'check',
                  disabled: store.why('edit'),
                  onclick: async () => {
                    const found = await api.post(api.path`/sources/${s.name}/check`, {});
                    const faults = [
                      found.fault,
                      found.session_lock_fault,
                      found.stops_sessions_fault,
                      ...(found.preflight?.findings ?? [])
                        .filter((f) => f.severity === 'error')
                        .map((f) => f.message[lang()]),
                    ].filter(Boolean);
                    toast(
                      found.ok
                        ? `${t('sources.ok', { name: s.name })} · ${[found.version, found.user].filter(Boolean).join(' · ')}`
                        : `${s.name}: ${faults.join('; ')}`,
                      found.ok ? 'good' : 'bad',
                    );
                    if (found.stops_definers_grant)
                      toast(t('sources.definers', { grant: found.stops_definers_grant }), 'bad');
                  },
                }),
            },
          ],
        }).el,
      );
    },
  );
  return { destroy: poll(refresh, 5000) };
}
