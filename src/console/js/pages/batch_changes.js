// Every change of state of a batch's jobs, in order; and how the definition differs from the one it runs.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { badge, card, h, put, settled, shown, table, time } from '../ui.js';

export async function mount(el, ctx) {
  const at = api.path`/groups/${ctx.group}/batches/${ctx.no}`;
  const host = h('div');
  const different = h('div');
  let list;
  const load = async () => {
    const all = await api.all(`${at}/changes`, {}, 5000);
    return all.reverse();
  };
  put(el, h('div.stack', different, host));
  await shown(host, load, (rows) => {
    list = table({
      caption: t('batch.tab_changes'), rows, rowKey: (r) => `${r.at}-${r.job_code ?? r.job}-${r.status}-${r.attempt}-${r.id ?? ''}`, tall: true, empty: t('changes.none'), test: 'changes',
      onOpen: (r) => (r.job_code ?? r.job) && ctx.openJob(r.job_code ?? r.job),
      columns: [
        { key: 'at', label: t('common.when'), cell: (r) => time(r.at, { seconds: true, millis: true }) },
        { key: 'job', label: t('job.one'), value: (r) => r.job_code ?? r.job, cell: (r) => r.job_code ?? r.job ?? h('span.muted', t('batch.one')) },
        { key: 'status', label: t('common.status'), cell: (r) => [r.from && [badge(r.from), ' → '], badge(r.to ?? r.status)] },
        { key: 'attempt', label: t('job.start_no'), num: true, hide: 'narrow' },
        { key: 'message', label: t('job.message'), cls: 'clip', cell: (r) => h('span', { title: r.error_message ?? r.message }, r.error_message ?? r.message ?? '') },
      ],
    });
    return list.el;
  });
  api.get(`${at}/differences`).then((d) => {
    const lines = Array.isArray(d) ? d : d.items ?? d.lines ?? d.differences ?? d.changes ?? [];
    if (lines.length) put(different, card(t('changes.definition'), h('p.muted', t('changes.definition_lead')), h('ul.plain', lines.map((x) => h('li.mono', typeof x === 'string' ? x : x.words ?? x.said ?? JSON.stringify(x))))));
  }).catch(() => {});
  const again = settled(1500, async () => list?.update(await load()));
  return { update: again, destroy() {} };
}
