// The inbox of failures: which jobs failed, who looks after each, and which somebody has acknowledged.

import { api, live } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import {
  ago,
  badge,
  button,
  dialog,
  empty,
  field,
  h,
  icon,
  input,
  pageHead,
  poll,
  put,
  segmented,
  select,
  settled,
  shown,
  table,
  time,
  toast,
} from '../ui.js';

const key = (row) => `${row.group}/${row.batch_no}/${row.job}`;
const jobHref = (row) => `${to`/batches/${row.group}/${row.batch_no}/list`}?job=${encodeURIComponent(row.job)}`;

/** Says something about a failure; the answer is the failure as it is then. */
const mark = (row, said) =>
  api.post(api.path`/groups/${row.group}/batches/${row.batch_no}/jobs/${row.job}/failure`, {
    attempt: row.attempt,
    ...said,
  });

export async function mount(el, ctx) {
  ctx.title(t('nav.inbox'));
  const me = store.session.user.display_name || store.session.user.name;
  const filters = { state: 'open', days: '30', group: '', assignee: '' };
  for (const name of Object.keys(filters)) filters[name] = ctx.query?.get(name) || filters[name];
  const chosen = new Set();
  const host = h('div');
  const bar = h('div.selection', { hidden: true, role: 'region', 'aria-label': t('act.bulk') });
  let rows = [];
  let turn = 0;

  const change = (next) => {
    Object.assign(filters, next);
    ctx.setQuery?.(filters);
    chosen.clear();
    load();
  };
  const groups = await api.all('/groups').catch(() => []);
  el.append(
    pageHead({ title: t('nav.inbox'), sub: t('inbox.sub') }),
    h(
      'div.dg-tools',
      segmented({
        label: t('inbox.state'),
        value: filters.state,
        test: 'inbox-state',
        options: ['open', 'acknowledged', 'all'].map((state) => [state, t(`inbox.${state}`)]),
        onchange: (state) => change({ state }),
      }),
      select({
        label: t('inbox.assignee'),
        value: filters.assignee,
        test: 'inbox-assignee',
        options: [
          ['', t('inbox.anybody')],
          [me, t('inbox.mine')],
        ],
        onchange: (assignee) => change({ assignee }),
      }),
      select({
        label: t('sf.group'),
        value: filters.group,
        test: 'inbox-group',
        options: [['', t('cal.all_groups')], ...groups.map((one) => [one.code ?? one.group, one.code ?? one.group])],
        onchange: (group) => change({ group }),
      }),
      select({
        label: t('in.days'),
        value: filters.days,
        test: 'inbox-days',
        options: ['1', '7', '30', '92'].map((n) => [n, t('in.days_n', { n: Number(n) })]),
        onchange: (days) => change({ days }),
      }),
    ),
    bar,
    host,
  );

  const read = () => api.get('/failures', { ...filters, group: filters.group || undefined, limit: 500 });
  async function load() {
    const mine = ++turn;
    drawBar();
    await shown(host, read, (got) => (mine === turn ? list(got) : undefined));
  }

  /** The same thing said about several failures, one after the other; what is refused is told with its job. */
  async function each(ones, said) {
    for (const row of ones) {
      try {
        await mark(row, said);
      } catch (error) {
        toast(`${row.job}: ${error.detail}`, 'bad');
      }
    }
    chosen.clear();
    store.tell('look-failures');
    await load();
  }

  function drawBar() {
    const ones = rows.filter((row) => chosen.has(key(row)));
    bar.hidden = ones.length === 0;
    const why = ones.map((row) => store.why('run', row.group)).find(Boolean) ?? false;
    const act = (words, mark_, test, said) =>
      button(words, { small: true, icon: mark_, test, disabled: why, onclick: () => each(ones, said) });
    put(
      bar,
      h('span.strong', t('inbox.n_chosen', { n: ones.length })),
      act(t('inbox.acknowledge'), 'check', 'inbox-ack', { acknowledged: true }),
      act(t('inbox.take'), 'user', 'inbox-take', { assignee: me }),
      act(t('inbox.reopen'), 'rerun', 'inbox-reopen', { acknowledged: false }),
    );
  }

  function list(got) {
    rows = got.items;
    store.tell('look-failures');
    return h(
      'div.stack',
      table({
        caption: t('nav.inbox'),
        rows,
        rowKey: key,
        test: 'inbox',
        select: chosen,
        onSelect: drawBar,
        onOpen: (row) => go(jobHref(row)),
        empty: empty({
          title: t(filters.state === 'open' ? 'inbox.none' : 'inbox.none_there'),
          lead: t(filters.state === 'open' ? 'inbox.none_lead' : 'inbox.none_there_lead'),
        }),
        columns: columns(),
      }).el,
      got.found > rows.length ? h('p.hint', t('inbox.more', { n: got.found - rows.length })) : null,
      got.is_cut ? h('p.hint', t('in.cut')) : null,
    );
  }

  const columns = () => [
    { key: 'status', label: t('sch.state'), value: (row) => row.status, cell: (row) => badge(row.status) },
    {
      key: 'job',
      label: t('grid.job'),
      value: (row) => row.job,
      cell: (row) => [h('a.strong', { href: jobHref(row) }, row.job), h('div.muted', `${row.group} · ${row.batch_no}`)],
    },
    {
      key: 'error',
      label: t('inbox.error'),
      sort: false,
      cell: (row) => h('div.inbox-error', { title: row.error }, row.error ?? ''),
    },
    {
      key: 'at',
      label: t('common.when'),
      value: (row) => (row.at ? Date.parse(row.at) : null),
      cell: (row) => ago(row.at),
    },
    {
      key: 'assignee',
      label: t('inbox.assignee'),
      value: (row) => row.assignee,
      cell: (row) => [
        row.assignee ?? h('span.muted', '–'),
        row.note && h('div.inbox-note', icon('edit', 12), row.note),
      ],
    },
    {
      key: 'ack',
      label: t('inbox.acknowledged'),
      value: (row) => row.acknowledged_at,
      cell: (row) => (row.is_acknowledged ? [row.acknowledged_by, h('div.muted', time(row.acknowledged_at))] : ''),
      hide: 'narrow',
    },
    {
      key: 'act',
      label: '',
      sort: false,
      cell: (row) => {
        const why = store.why('run', row.group) ?? false;
        return h(
          'span.inbox-acts',
          row.is_acknowledged
            ? null
            : button(t('inbox.acknowledge'), {
                small: true,
                icon: 'check',
                test: `inbox-ack-${row.job}`,
                disabled: why,
                onclick: () => each([row], { acknowledged: true }),
              }),
          button(t('inbox.edit', { job: row.job }), {
            small: true,
            icon: 'edit',
            iconOnly: true,
            kind: 'quiet',
            test: `inbox-edit-${row.job}`,
            disabled: why,
            onclick: () => edit(row),
          }),
        );
      },
    },
  ];

  async function edit(row) {
    const assignee = field({
      label: t('inbox.assignee'),
      hint: t('inbox.assignee_hint'),
      input: input({ name: 'assignee', value: row.assignee ?? '', test: 'inbox-edit-assignee' }),
    });
    const note = field({
      label: t('inbox.note'),
      input: input({ rows: 4, name: 'note', value: row.note ?? '', test: 'inbox-edit-note' }),
    });
    const box = dialog({
      title: t('inbox.edit', { job: row.job }),
      test: 'inbox-dialog',
      lead: row.error,
      body: [
        assignee,
        h('p', button(t('inbox.me'), { small: true, icon: 'user', onclick: () => (assignee.input.value = me) })),
        note,
      ],
      actions: [
        { label: t('common.cancel'), run: (close) => close(null) },
        {
          label: t('common.save'),
          kind: 'primary',
          test: 'inbox-save',
          run: async (close) => {
            await mark(row, { assignee: assignee.input.value, note: note.input.value });
            close(true);
          },
        },
      ],
    });
    if (await box.closed) await load();
  }

  await load();
  const again = settled(900, async () => {
    const isBusy = chosen.size || host.contains(document.activeElement) || document.querySelector('dialog[open]');
    if (isBusy) return;
    const mine = turn;
    const got = await read().catch(() => null);
    if (got && mine === turn && el.isConnected) put(host, list(got));
  });
  const ends = [live({}, { job: again, gap: again, state: (is) => store.tell('live', is) }), poll(again, 30000)];
  return {
    destroy() {
      turn = -1;
      ends.forEach((end) => end());
    },
  };
}
