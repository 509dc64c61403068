// Two batches of a group side by side: how long each job took, how many rows, what it gave.

import { api } from '../api.js';
import { locale, t } from '../i18n.js';
import { go } from '../router.js';
import { changesView } from '../edit/diff.js';
import { badge, duration, empty, failed, h, loading, num, put, select, table } from '../ui.js';

export function mount(el, ctx) {
  const group = ctx.group ?? ctx.params?.group;
  let ended = false;
  let a = ctx.no ?? ctx.query?.get('a') ?? '';
  let b = ctx.query?.get('b') ?? '';
  let only = 'all';
  let got = null;
  const host = h('div', loading());
  const picks = h('div.dg-tools');
  const root = h('div.cmp', picks, host);
  el.append(root);

  async function begin() {
    try {
      const page = await api.get('/batches', { group, limit: 200 });
      const nos = (page.items || page).map((x) => x.batch_no);
      if (ended) return;
      if (!nos.includes(a)) nos.unshift(a);
      // The one before it is what one compares with most often.
      if (!b) b = nos[nos.indexOf(a) + 1] ?? nos.find((n) => n !== a) ?? '';
      const options = nos.filter(Boolean).map((n) => [n, n]);
      put(
        picks,
        h(
          'label',
          t('cmp.this'),
          ' ',
          select({
            options,
            value: a,
            test: 'compare-a',
            onchange: (v) => {
              a = v;
              if (ctx.no)
                go(`/batches/${encodeURIComponent(group)}/${encodeURIComponent(v)}/compare?b=${encodeURIComponent(b)}`);
              else load();
            },
          }),
        ),
        h(
          'label',
          t('cmp.with'),
          ' ',
          select({
            options: options.filter(([n]) => n !== a),
            value: b,
            test: 'compare-b',
            onchange: (v) => {
              b = v;
              ctx.setQuery?.({ b });
              load();
            },
          }),
        ),
        select({
          label: t('grid.show'),
          value: only,
          test: 'compare-show',
          options: [
            ['all', t('cmp.all')],
            ['differ', t('cmp.differ')],
            ['slower', t('cmp.slower')],
          ],
          onchange: (v) => {
            only = v;
            draw();
          },
        }),
      );
      if (!b) {
        put(host, empty({ title: t('cmp.none'), lead: t('cmp.none_lead') }));
        return;
      }
      await load();
    } catch (error) {
      if (!ended) put(host, failed(error, begin));
    }
  }

  async function load() {
    put(host, loading());
    try {
      got = await api.get(api.path`/groups/${group}/compare`, { a, b });
      if (!ended) draw();
    } catch (error) {
      if (!ended) put(host, failed(error, load));
    }
  }

  function draw() {
    if (!got) return;
    const rows = (got.jobs || [])
      .map((job) => row(job))
      .filter((r) => (only === 'all' ? true : only === 'differ' ? r.differs : r.diff > 0));
    const sum = (side) => (got.jobs || []).reduce((n, j) => n + (j[side]?.duration_ms || 0), 0);
    const [sa, sb] = [sum('a'), sum('b')];
    const list = table({
      caption: t('cmp.caption', { a, b }),
      test: 'compare',
      rows,
      rowKey: (r) => r.code,
      empty: { title: t('cmp.nothing'), lead: '' },
      onOpen: (r) =>
        ctx.no
          ? ctx.openJob?.(r.code)
          : go(`/batches/${encodeURIComponent(group)}/${encodeURIComponent(a)}?job=${encodeURIComponent(r.code)}`),
      sort: { key: 'diff', down: true },
      columns: [
        { key: 'code', label: t('grid.job'), cell: (r) => h('span.strong', r.code) },
        {
          key: 'sa',
          label: a,
          value: (r) => r.a?.status,
          cell: (r) => (r.a ? badge(r.a.status) : h('span.none', t('cmp.absent'))),
        },
        {
          key: 'sb',
          label: b,
          value: (r) => r.b?.status,
          cell: (r) => (r.b ? badge(r.b.status) : h('span.none', t('cmp.absent'))),
        },
        {
          key: 'da',
          label: t('cmp.took', { no: a }),
          num: true,
          value: (r) => r.a?.duration_ms,
          cell: (r) => (r.a?.duration_ms == null ? '–' : duration(r.a.duration_ms)),
        },
        {
          key: 'db',
          label: t('cmp.took', { no: b }),
          num: true,
          value: (r) => r.b?.duration_ms,
          cell: (r) => (r.b?.duration_ms == null ? '–' : duration(r.b.duration_ms)),
        },
        {
          key: 'diff',
          label: t('cmp.longer'),
          num: true,
          firstDown: true,
          value: (r) => r.diff ?? -Infinity,
          cell: (r) => change(r),
        },
        {
          key: 'rows',
          label: t('cmp.rows'),
          num: true,
          hide: 'narrow',
          value: (r) => (r.ra ?? 0) - (r.rb ?? 0),
          cell: (r) => rowsOf(r),
        },
        { key: 'out', label: t('cmp.outputs'), sort: false, hide: 'narrow', cell: (r) => outputs(r) },
      ],
    });
    put(
      host,
      h(
        'p.cmp-sum',
        t('cmp.sum', { a, b, ta: duration(sa), tb: duration(sb), n: rows.filter((r) => r.differs).length }),
      ),
      list.el,
      beside(got, a, b),
    );
  }

  begin();
  return {
    update() {},
    destroy() {
      ended = true;
      root.remove();
    },
  };
}

function row(job) {
  const { a, b } = job;
  const rows = (side) => side?.rows_affected ?? null;
  const diff = a?.duration_ms != null && b?.duration_ms != null ? a.duration_ms - b.duration_ms : null;
  const outs = job.outputs ?? [];
  return {
    code: job.job_code ?? job.job,
    a,
    b,
    diff,
    ra: rows(a),
    rb: rows(b),
    outs,
    differs: !a || !b || a.status !== b.status || rows(a) !== rows(b) || outs.length > 0,
  };
}

function change(r) {
  if (r.diff === null) return '–';
  const percent = r.b.duration_ms ? Math.round((r.diff / r.b.duration_ms) * 100) : null;
  const cls = r.diff > 0 && percent > 20 ? 'cmp-slower' : r.diff < 0 && percent < -20 ? 'cmp-faster' : null;
  const sign = r.diff > 0 ? '▲ +' : r.diff < 0 ? '▼ ' : '';
  return h(
    'span',
    { class: cls },
    `${sign}${duration(r.diff)}${percent === null || !r.diff ? '' : ` (${percent > 0 ? '+' : ''}${percent.toLocaleString(locale())}%)`}`,
  );
}

function rowsOf(r) {
  if (r.ra === null && r.rb === null) return '–';
  return h('span', { class: r.ra !== r.rb ? 'cmp-differs' : null }, `${num(r.ra)} / ${num(r.rb)}`);
}

function outputs(r) {
  if (!r.outs.length) return h('span.none', '–');
  return [
    r.outs
      .slice(0, 3)
      .map((o) =>
        h(
          'div.cmp-out',
          { title: `${o.a ?? '–'} / ${o.b ?? '–'}` },
          h('b', o.name),
          ` ${String(o.a ?? '–').slice(0, 60)} / ${String(o.b ?? '–').slice(0, 60)}`,
        ),
      ),
    r.outs.length > 3 && h('div.muted', `+${r.outs.length - 3}`),
  ];
}

/** What differs beside the jobs: parameters and the definition itself. */
function beside(got, a, b) {
  const parts = [];
  if (got.params?.length) {
    parts.push(
      h(
        'section',
        h('h2', t('cmp.params')),
        table({
          caption: t('cmp.params'),
          rows: got.params,
          rowKey: (p) => p.name,
          locked: true,
          columns: [
            { key: 'name', label: t('cmp.name'), cell: (p) => h('code', p.name) },
            { key: 'a', label: a, cell: (p) => p.a ?? '–' },
            { key: 'b', label: b, cell: (p) => p.b ?? '–' },
          ],
        }).el,
      ),
    );
  }
  if (got.definition?.length)
    parts.push(h('section', h('h2', t('cmp.definition', { b, a })), changesView(got.definition)));
  return parts;
}
