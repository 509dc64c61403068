// What happened to a batch, in order: starts and ends of its jobs, what operators did, and how the definition has
// moved since.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { changesView } from '../edit/diff.js';
import { badge, card, h, put, settled, shown, table, time } from '../ui.js';

export async function mount(el, ctx) {
  const at = api.path`/groups/${ctx.group}/batches/${ctx.no}`;
  const host = h('div');
  const different = h('div');
  const acts = h('div');
  let list;

  // The last start and the last end of each job, as its row holds them; the panel of a job has every change.
  const rows = async () => {
    const found = [];
    for (const job of ctx.states.values()) {
      if (job.start_time)
        found.push({ at: job.start_time, job: job.job_code, status: 'RUNNING', attempt: job.attempt });
      if (job.end_time)
        found.push({
          at: job.end_time,
          job: job.job_code,
          status: job.status,
          attempt: job.attempt,
          message: job.error_message,
        });
    }
    return found.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  };
  const draw = (found) => {
    list = table({
      caption: t('batch.tab_changes'),
      rows: found,
      rowKey: (r) => `${r.at} ${r.job} ${r.status}`,
      tall: true,
      empty: t('changes.none'),
      test: 'changes',
      onOpen: (r) => r.job && ctx.openJob(r.job),
      columns: [
        { key: 'at', label: t('common.when'), cell: (r) => time(r.at, { seconds: true, millis: true }) },
        {
          key: 'job',
          label: t('job.one'),
          cell: (r) =>
            r.job
              ? h('button.link', { type: 'button', onclick: () => ctx.openJob(r.job) }, r.job)
              : h('span.muted', t('batch.one')),
        },
        { key: 'status', label: t('common.status'), cell: (r) => badge(r.status) },
        { key: 'attempt', label: t('job.start_no'), num: true, hide: 'narrow' },
        {
          key: 'message',
          label: t('job.message'),
          cls: 'clip result-col',
          cell: (r) => h('span', { title: r.message }, r.message ?? ''),
        },
      ],
    });
    return list.el;
  };
  const readActs = async () => {
    const page = await api.get('/audit', { group: ctx.group, batch_no: ctx.no, limit: 100 });
    put(
      acts,
      page.items.length > 0 &&
        card(
          t('changes.acts'),
          { cls: 'flush' },
          table({
            caption: t('changes.acts'),
            rows: page.items,
            rowKey: (r) => String(r.id ?? `${r.at} ${r.action} ${r.job_code}`),
            columns: [
              { key: 'at', label: t('common.when'), cell: (r) => time(r.at, { seconds: true }) },
              { key: 'actor', label: t('changes.by') },
              { key: 'action', label: t('audit.action'), cell: (r) => h('code', r.action) },
              { key: 'job_code', label: t('job.one'), cell: (r) => r.job_code ?? '' },
              {
                key: 'reason',
                label: t('act.reason'),
                cls: 'clip',
                cell: (r) => h('span', { title: r.reason }, r.reason ?? ''),
              },
            ],
          }).el,
        ),
    );
  };
  put(el, h('div.stack', different, acts, host));
  await shown(host, rows, draw);
  readActs().catch(() => {});
  api
    .get(`${at}/differences`)
    .then(({ items }) => {
      if (items.length)
        put(different, card(t('changes.definition'), h('p.muted', t('changes.definition_lead')), changesView(items)));
    })
    .catch(() => {});
  const again = settled(1500, async () => {
    if (!el.isConnected) return;
    list?.update(await rows());
    readActs().catch(() => {});
  });
  return { update: again, destroy() {} };
}
