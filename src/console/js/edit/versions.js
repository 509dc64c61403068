// Versions of a group: when, who, why, what changed; compared with each other, and taken back.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { store } from '../store.js';
import { button, confirmReason, dialog, empty, failed, h, loading, pages, put, shown, table, time, toast } from '../ui.js';
import { changesView, textDiff } from './diff.js';

/** Fills `el` with the versions of a group; `onDone()` after one was taken back. */
export async function showVersions(el, group, { onDone } = {}) {
  const at = api.path`/groups/${group}`;
  const chosen = new Set();
  let last = 0;
  const compare = button(t('ver.compare'), { icon: 'compare', test: 'versions-compare', disabled: t('ver.two'), onclick: () => {
    const [a, b] = [...chosen].map(Number).sort((x, y) => x - y);
    if (chosen.size !== 2) { toast(t('ver.two'), 'info'); return; }
    differ(a, b);
  } });
  const list = pages({
    load: async (cursor) => {
      const got = await api.get(`${at}/versions`, { limit: 50, cursor });
      const page = Array.isArray(got) ? { items: got, next: null } : got;
      last = Math.max(last, ...page.items.map(no));
      return { items: [...page.items].sort((x, y) => no(y) - no(x)), next: page.next };
    },
    make: (rows) => table({
      caption: t('ver.title'), rows, rowKey: (v) => String(no(v)), test: 'versions', locked: true, empty: empty({ title: t('ver.none') }),
      select: chosen, onSelect: () => { const two = chosen.size === 2; if (two) compare.removeAttribute('aria-disabled'); else compare.setAttribute('aria-disabled', 'true'); },
      columns: [
        { key: 'no', label: t('ver.no'), cell: (v) => [h('span.strong', String(no(v))), no(v) === last && h('span.muted', ` ${t('ver.now')}`)] },
        { key: 'at', label: t('ver.at'), cell: (v) => time(v.at) },
        { key: 'by', label: t('bf.by'), cell: (v) => v.author },
        { key: 'remark', label: t('def.remark'), cell: (v) => v.remark ?? '' },
        { key: 'changes', label: t('ver.changes'), cell: (v) => summary(v) },
        { key: 'do', label: '', sort: false, cell: (v) => h('span.ver-do',
          button(t('ver.show'), { small: true, kind: 'quiet', test: 'version-show', onclick: () => show(v) }),
          no(v) !== last && button(t('ver.back'), { small: true, kind: 'quiet', icon: 'rerun', test: 'version-back', disabled: store.why('edit', group) ?? false, onclick: () => back(no(v)) })) },
      ],
    }),
  });
  await shown(el, () => list.start(), () => h('div', h('div.dg-tools', h('p.muted', t('ver.lead')), compare), list.el));

  async function show(v) {
    const host = h('div', loading());
    dialog({ title: t('ver.one', { n: no(v) }), size: 'l', test: 'version', body: host, actions: [{ label: t('common.close'), run: (close) => close() }] });
    try {
      const changes = v.changes && Array.isArray(v.changes) ? v.changes : (await api.get(`${at}/versions/${no(v)}`)).changes;
      put(host, changes ? changesView(changes) : h('pre', await api.text(`${at}/versions/${no(v)}`, {}, 'application/yaml, text/plain;q=0.9, */*;q=0.1')));
    } catch (error) {
      put(host, failed(error));
    }
  }

  async function differ(a, b) {
    const host = h('div', loading());
    dialog({ title: t('ver.between', { a, b }), size: 'full', test: 'version-diff', body: host, actions: [{ label: t('common.close'), run: (close) => close() }] });
    try {
      const got = await api.get(`${at}/versions/${a}/diff/${b}`);
      put(host, got.old !== undefined && got.new !== undefined ? textDiff(got.old, got.new) : changesView(got.changes ?? got));
    } catch (error) {
      put(host, failed(error));
    }
  }

  async function back(to) {
    const host = h('div', loading());
    let fits = false;
    api.post(`${at}/rollback`, { to, dry_run: true }).then((got) => { fits = true; put(host, changesView(got.changes)); }).catch((error) => put(host, failed(error)));
    const reason = await confirmReason({
      title: t('ver.back_to', { n: to }), lead: t('ver.back_lead', { n: to }), verb: t('ver.back'), kind: 'danger', body: host,
      run: (why) => { if (!fits) throw new Error(t('ver.wait')); return api.post(`${at}/rollback`, { to, reason: why, if_version: last }); },
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
  const n = (how) => (all ? all.filter((c) => c.how === how).length : v[how] ?? v.changes?.[how] ?? 0);
  return h('span.nowrap', h('span.df-added', `+${n('added')}`), ' ', h('span.df-changed', `~${n('changed')}`), ' ', h('span.df-removed', `−${n('removed')}`));
}
