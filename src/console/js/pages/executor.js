// One group of executors: where they are, what they run, and what is said about them.

import { api } from '../api.js';
import { t, has } from '../i18n.js';
import { go, redraw, to } from '../router.js';
import { store } from '../store.js';
import {
  ago,
  button,
  card,
  confirmReason,
  dialog,
  facts,
  field,
  glyph,
  h,
  input,
  pageHead,
  poll,
  put,
  shown,
  table,
  time,
  toast,
} from '../ui.js';
import { addressesOf, groupFields, thereWords } from './executors.js';
import { showSecret } from './users.js';

const word = (kind, value) =>
  value && has(`executors.${kind}_${value}`) ? t(`executors.${kind}_${value}`) : (value ?? '');

/** How a run is, in words and as a mark. */
function runState(run) {
  const ended =
    run.result ??
    (run.handle_code == null ? null : run.handle_code === 200 && !run.stopping ? 'OK' : (run.stopping ?? 'FAILED'));
  const mark =
    ended == null
      ? run.status === 'WAITING'
        ? 'QUEUED'
        : 'RUNNING'
      : ended === 'OK'
        ? 'SUCCESS'
        : ended === 'LOST' || ended === 'UNCONFIRMED'
          ? 'UNKNOWN'
          : 'FAILED';
  const words = ended == null ? word('run', run.status) : word('end', ended);
  return h(
    'span.row.nowrap',
    glyph(mark),
    run.handle_code != null && run.handle_code !== 200 ? `${words} (${run.handle_code})` : words,
  );
}

export async function mount(el, ctx) {
  const { app } = ctx.params;
  ctx.title(app);
  const at = api.path`/executor-groups/${app}`;
  const group = await api.get(at);
  const no = store.whyEverywhere('admin');
  const { title, addresses, glue, access } = groupFields(group);
  const there = h('div');
  const ran = h('div');
  put(
    el,
    pageHead({
      title: group.title,
      sub: group.title !== app ? app : null,
      crumbs: [[t('nav.executors'), '#/executors']],
      actions: [
        button(t('executors.renew'), {
          icon: 'key',
          disabled: no,
          test: 'executor-renew',
          onclick: () => renew(app, at),
        }),
        button(t('common.delete'), {
          icon: 'trash',
          kind: 'danger',
          disabled: no,
          test: 'executor-delete',
          onclick: () => {
            confirmReason({
              title: t('executors.delete_title', { name: app }),
              lead: t('executors.delete_lead'),
              verb: t('common.delete'),
              kind: 'danger',
              optional: true,
              run: async () => {
                await api.del(at);
                go('/executors');
              },
            });
          },
        }),
      ],
    }),
    h(
      'div.columns',
      h('div.stack', there, ran),
      h(
        'div.stack',
        card(
          t('executors.settings'),
          h('div.form', title, addresses, h('div.wide', glue), access.els),
          h(
            'div.row.spaced',
            button(t('common.save'), {
              kind: 'primary',
              icon: 'check',
              disabled: no,
              test: 'executor-change',
              onclick: async () => {
                await api.patch(at, {
                  title: title.input.value.trim() || undefined,
                  addresses: addressesOf(addresses.input.value),
                  allows_glue: glue.box.checked,
                  ...access.value(),
                });
                toast(t('common.saved'), 'good');
                redraw();
              },
            }),
          ),
        ),
        card(
          t('executors.how'),
          h('p', t('executors.how_lead')),
          h(
            'pre.code',
            { 'data-test': 'executor-how' },
            `xxl.job.admin.addresses=${location.origin}/xxl-job-admin\nxxl.job.executor.appname=${app}\nxxl.job.accessToken=…`,
          ),
          facts(
            [
              [t('executors.since'), time(group.create_time, { date: true })],
              [t('executors.changed'), ago(group.update_time)],
            ],
            { wide: true },
          ),
          h('p', h('a', { href: '#/audit?action=xxl-refused' }, t('executors.refused'))),
        ),
      ),
    ),
  );
  const drawThere = (now) =>
    card(
      t('executors.addresses'),
      { cls: 'flush', actions: [thereWords(now)] },
      table({
        caption: t('executors.addresses'),
        rows: now.registrations,
        rowKey: (r) => r.address,
        test: 'registrations',
        empty: t(now.addresses ? 'executors.fixed_none' : 'executors.registered_none'),
        rowClass: (r) => (r.is_alive ? null : 'row-bad'),
        columns: [
          { key: 'address', label: t('executors.address'), cell: (r) => h('code', r.address) },
          {
            key: 'is_alive',
            label: t('common.status'),
            value: (r) => (r.is_alive ? 0 : 1),
            cell: (r) =>
              h(
                'span.row.nowrap',
                glyph(r.is_alive ? 'SUCCESS' : 'FAILED'),
                t(r.is_alive ? 'executors.alive' : 'executors.gone'),
              ),
          },
          {
            key: 'since',
            label: t('executors.there_since'),
            hide: 'narrow',
            cell: (r) => time(r.since, { date: true }),
          },
          { key: 'seen', label: t('executors.seen'), cell: (r) => ago(r.seen) },
          {
            key: 'speaks',
            label: t('executors.speaks'),
            hide: 'middle',
            cell: (r) => (r.speaks === 'trigger' ? '3.5' : '2.2 – 3.4'),
          },
        ],
      }).el,
    );
  const drawRuns = (answer) =>
    card(
      t('executors.runs'),
      { cls: 'flush' },
      table({
        caption: t('executors.runs'),
        rows: answer.items,
        rowKey: (r) => String(r.log_id),
        test: 'executor-runs',
        empty: t('executors.runs_none'),
        columns: [
          { key: 'log_id', label: t('executors.run'), num: true },
          {
            key: 'job_code',
            label: t('nav.jobs'),
            value: (r) => `${r.group}.${r.job_code}`,
            cell: (r) =>
              h(
                'a',
                { href: `${to`/batches/${r.group}/${r.batch_no}`}?job=${encodeURIComponent(r.job_code)}` },
                `${r.group}.${r.job_code}`,
              ),
          },
          { key: 'batch_no', label: t('batch.no'), hide: 'narrow' },
          { key: 'status', label: t('common.status'), cell: runState },
          { key: 'address', label: t('executors.address'), hide: 'narrow', cell: (r) => h('code', r.address ?? '') },
          {
            key: 'handler',
            label: t('executors.what'),
            hide: 'middle',
            cell: (r) =>
              h(
                'code',
                `${r.handler ?? r.glue_type}${r.shard_total > 1 ? ` ${r.shard_index + 1}/${r.shard_total}` : ''}`,
              ),
          },
          { key: 'create_time', label: t('common.when'), cell: (r) => ago(r.trigger_time ?? r.create_time) },
          {
            key: 'handle_msg',
            label: t('executors.said'),
            sort: false,
            hide: 'middle',
            cls: 'clip',
            cell: (r) => h('span', { title: r.handle_msg }, r.handle_msg ?? ''),
          },
        ],
      }).el,
    );
  const runs = () => api.get(`${at}/runs?limit=50`);
  put(there, drawThere(group));
  await shown(ran, runs, drawRuns);
  const refresh = async () => {
    const [now, some] = await Promise.all([api.get(at), runs()]);
    if (!el.isConnected) return;
    if (!there.contains(document.activeElement)) put(there, drawThere(now));
    if (!ran.contains(document.activeElement)) put(ran, drawRuns(some));
  };
  return { destroy: poll(refresh, 10000) };
}

function renew(app, at) {
  const token = field({
    label: t('executors.token'),
    hint: t('executors.token_hint'),
    input: input({ type: 'password', autocomplete: 'new-password' }),
  });
  dialog({
    title: t('executors.renew_title', { name: app }),
    lead: t('executors.renew_lead'),
    size: 's',
    test: 'executor-renew-dialog',
    body: h('div.form', h('div.wide', token)),
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('executors.renew'),
        kind: 'primary',
        icon: 'key',
        run: async (close) => {
          const made = await api.post(`${at}/token`, { token: token.input.value || undefined });
          close();
          if (made.token)
            showSecret(t('executors.secret_title', { name: app }), t('executors.secret_lead'), made.token);
          else toast(t('common.saved'), 'good');
          redraw();
        },
      },
    ],
  });
}
