// Approvals: what waits for a decision, and what was decided.

import { api } from '../api.js';
import { decideButtons } from '../approve.js';
import { changeRequests } from '../change_requests.js';
import { t } from '../i18n.js';
import { to } from '../router.js';
import { badge, failed, field, h, loading, pageHead, pages, poll, put, segmented, select, table, time } from '../ui.js';

const MARK = {
  WAITING: 'QUEUED',
  APPROVED: 'SUCCESS',
  REJECTED: 'FAILED',
  EXPIRED: 'TIMEOUT',
  WITHDRAWN: 'KILLED',
};
const statusBadge = (status) => {
  const el = badge(MARK[status] ?? 'PENDING');
  el.lastChild.textContent = t(`approval.${status}`);
  el.dataset.status = status;
  return el;
};

export async function mount(el, ctx) {
  ctx.title(t('nav.approvals'));
  const wanted = { group: ctx.query.get('group') ?? '', all: ctx.query.get('all') === 'true' ? 'true' : '' };
  const groups = await api.all('/groups').catch(() => []);
  const host = h('div');
  const requests = changeRequests({ wanted });
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    read();
    requests.read();
  };
  const decision = (row) =>
    row.status === 'WAITING'
      ? row.may_decide
        ? h(
            'div.def-buttons',
            decideButtons({
              group: row.group,
              no: row.batch_no,
              job: row.job_code,
              question: row.question,
              onDone: read,
            }),
          )
        : h('span.muted', row.refusal)
      : h('div', row.decided_by && h('div', row.decided_by), row.comment && h('div.muted', row.comment));
  const grow = pages({
    load: (cursor) => api.get('/approvals', { ...wanted, limit: 50, cursor }),
    make: (items) =>
      table({
        caption: t('nav.approvals'),
        rows: items,
        rowKey: (r) => String(r.approval_id),
        test: 'approvals',
        empty: { title: t(wanted.all ? 'approval.none_ever' : 'approval.none') },
        columns: [
          { key: 'approval_id', label: '#', num: true },
          { key: 'status', label: t('common.status'), cell: (r) => statusBadge(r.status) },
          {
            key: 'job_code',
            label: t('job.one'),
            cell: (r) =>
              h(
                'div',
                h(
                  'a',
                  { href: to`/batches/${r.group}/${r.batch_no}` + `/list?job=${encodeURIComponent(r.job_code)}` },
                  `${r.group} · ${r.batch_no} · ${r.job_code}`,
                ),
                r.question && h('div.muted', r.question),
              ),
          },
          {
            key: 'approvers',
            label: t('approval.approvers'),
            hide: 'narrow',
            cell: (r) =>
              h(
                'div',
                r.approvers,
                r.started_by.length > 0 &&
                  r.four_eyes &&
                  h('div.muted', t('approval.not_by', { names: r.started_by.join(', ') })),
              ),
          },
          {
            key: 'deadline',
            label: t('approval.until'),
            cell: (r) => time(r.status === 'WAITING' ? r.deadline : (r.ended_at ?? r.deadline)),
          },
          { key: 'do', label: t('approval.decision'), sort: false, cell: decision },
        ],
      }),
  });
  async function read() {
    if (!host.childElementCount) put(host, loading());
    try {
      await grow.start();
      put(host, grow.el);
    } catch (error) {
      put(host, failed(error, read));
    }
  }
  put(
    el,
    pageHead({ title: t('nav.approvals'), sub: t('approval.lead') }),
    h(
      'div.filters',
      segmented({
        label: t('common.status'),
        value: wanted.all,
        options: [
          ['', t('approval.WAITING')],
          ['true', t('common.all')],
        ],
        onchange: (all) => change({ all }),
      }),
      field({
        label: t('group.one'),
        input: select({
          value: wanted.group,
          options: [['', t('common.all')], ...groups.map((g) => [g.code, g.name ? `${g.code} · ${g.name}` : g.code])],
          onchange: (event) => change({ group: event.target.value }),
        }),
      }),
    ),
    h('h2', t('change.title')),
    h('p.muted', t('change.lead')),
    requests.el,
    h('h2', t('approval.jobs')),
    host,
  );
  await Promise.all([read(), requests.read()]);
  const busy = () =>
    el.querySelector('[data-test^="approval-"]:focus, [data-test^="change-"]:focus') ||
    document.querySelector('dialog[open]');
  return poll(() => (busy() ? null : Promise.all([read(), requests.read()])), 10000);
}
