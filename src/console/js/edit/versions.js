// Versions of a group: when, who, why, what changed; compared with each other, and taken back.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { store } from '../store.js';
import {
  button,
  confirmReason,
  dialog,
  empty,
  failed,
  h,
  loading,
  pages,
  put,
  segmented,
  shown,
  table,
  time,
  toast,
} from '../ui.js';
import { changesView, textDiff } from './diff.js';

/** Fills `el` with the versions of a group; `onDone()` after one was taken back. */
export async function showVersions(el, group, { onDone } = {}) {
  const at = api.path`/groups/${group}`;
  const chosen = new Set();
  let last = 0;
  const compare = button(t('ver.compare'), {
    icon: 'compare',
    test: 'versions-compare',
    disabled: t('ver.two'),
    onclick: () => {
      const [a, b] = [...chosen].map(Number).sort((x, y) => x - y);
      if (chosen.size !== 2) {
        toast(t('ver.two'), 'info');
        return;
      }
      differ(a, b);
    },
  });
  const list = pages({
    load: async (cursor) => {
      const got = await api.get(`${at}/versions`, { limit: 50, cursor });
      const page = Array.isArray(got) ? { items: got, next: null } : got;
      last = Math.max(last, ...page.items.map(no));
      return { items: [...page.items].sort((x, y) => no(y) - no(x)), next: page.next };
    },
    make: (rows) =>
      table({
        caption: t('ver.title'),
        rows,
        rowKey: (v) => String(no(v)),
        test: 'versions',
        locked: true,
        empty: empty({ title: t('ver.none') }),
        select: chosen,
        onSelect: () => {
          const two = chosen.size === 2;
          if (two) compare.removeAttribute('aria-disabled');
          else compare.setAttribute('aria-disabled', 'true');
        },
        columns: [
          {
            key: 'no',
            label: t('ver.no'),
            cell: (v) => [h('span.strong', String(no(v))), no(v) === last && h('span.muted', ` ${t('ver.now')}`)],
          },
          { key: 'at', label: t('ver.at'), cell: (v) => time(v.at) },
          { key: 'by', label: t('bf.by'), cell: (v) => v.author },
          { key: 'remark', label: t('def.remark'), cell: (v) => v.remark ?? '' },
          rows.some((v) => v.changes || v.added !== undefined) && {
            key: 'changes',
            label: t('ver.changes'),
            cell: (v) => summary(v),
          },
          {
            key: 'do',
            label: '',
            sort: false,
            cell: (v) =>
              h(
                'span.ver-do',
                button(t('ver.show'), { small: true, kind: 'quiet', test: 'version-show', onclick: () => show(v) }),
                no(v) !== last &&
                  button(t('ver.back'), {
                    small: true,
                    kind: 'quiet',
                    icon: 'rerun',
                    test: 'version-back',
                    disabled: store.why('edit', group) ?? false,
                    onclick: () => back(no(v)),
                  }),
              ),
          },
        ].filter(Boolean),
      }),
  });
  await shown(
    el,
    () => list.start(),
    () => h('div', h('div.dg-tools', h('p.muted', t('ver.lead')), compare), list.el),
  );

  const show = (v) => between(no(v) - 1, no(v), t('ver.one', { n: no(v) }));
  const differ = (a, b) => between(a, b, t('ver.between', { a, b }));

  /** What the later of two versions has otherwise: field by field, or line by line. */
  function between(a, b, title) {
    const host = h('div');
    const fields = async () => changesView((await api.get(`${at}/versions/${a}/diff/${b}`)).changes);
    const file = (n) => (n ? api.text(`${at}/versions/${n}`, {}, 'application/yaml, */*;q=0.1') : '');
    const lines = async () => textDiff(...(await Promise.all([file(a), file(b)])), { label: title });
    const fill = async (load) => {
      put(host, loading());
      try {
        put(host, await load());
      } catch (error) {
        put(
          host,
          failed(error, () => fill(load)),
        );
      }
    };
    dialog({
      title,
      size: 'full',
      test: 'version-diff',
      actions: [{ label: t('common.close'), run: (close) => close() }],
      body: h(
        'div.je',
        segmented({
          label: t('ver.how'),
          value: 'fields',
          options: [
            ['fields', t('ver.fields')],
            ['lines', t('def.text_diff')],
          ],
          test: 'version-how',
          onchange: (v) => fill(v === 'lines' ? lines : fields),
        }),
        host,
      ),
    });
    fill(fields);
  }

  async function back(to) {
    const host = h('div', loading());
    let fits = false;
    api
      .post(`${at}/rollback`, { to, dry_run: true })
      .then((got) => {
        fits = true;
        put(host, changesView(got.changes));
      })
      .catch((error) => put(host, failed(error)));
    const reason = await confirmReason({
      title: t('ver.back_to', { n: to }),
      lead: t('ver.back_lead', { n: to }),
      verb: t('ver.back'),
      kind: 'danger',
      body: host,
      run: (why) => {
        if (!fits) throw new Error(t('ver.wait'));
        return api.post(`${at}/rollback`, { to, reason: why, if_version: last });
      },
    });
    if (!reason) return;
    toast(t('ver.done', { n: to }), 'good');
    onDone?.();
    showVersions(el, group, { onDone });
  }
}

const no = (v) => v.version ?? v.no;

function summary(v) {
  const all = Array.isArray(v.changes) ? v.changes : null;
  const n = (how) => (all ? all.filter((c) => c.how === how).length : (v[how] ?? v.changes?.[how] ?? 0));
  return h(
    'span.nowrap',
    h('span.df-added', `+${n('added')}`),
    ' ',
    h('span.df-changed', `~${n('changed')}`),
    ' ',
    h('span.df-removed', `−${n('removed')}`),
  );
}
