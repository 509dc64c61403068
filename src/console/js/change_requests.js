// Changes that wait for a second person: listed, looked at, decided.

import { api } from './api.js';
import { changesView, textDiff } from './edit/diff.js';
import { t } from './i18n.js';
import { store } from './store.js';
import {
  badge,
  button,
  confirmReason,
  dialog,
  facts,
  failed,
  h,
  loading,
  pages,
  put,
  table,
  time,
  toast,
} from './ui.js';

const MARK = {
  WAITING: 'QUEUED',
  APPROVED: 'RUNNING',
  DONE: 'SUCCESS',
  FAILED: 'FAILED',
  REJECTED: 'FAILED',
  WITHDRAWN: 'KILLED',
  EXPIRED: 'TIMEOUT',
};
const statusBadge = (status) => {
  const el = badge(MARK[status] ?? 'PENDING');
  el.lastChild.textContent = t(`change.${status}`);
  el.dataset.status = status;
  return el;
};

const text = (value) => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2));

/** What a change would do: the fields of a definition, the rows of a batch, or both texts. */
function effectView(effect) {
  if (!effect) return h('p.muted', t('change.effect_hidden'));
  if (Array.isArray(effect.changes)) return changesView(effect.changes);
  if (Array.isArray(effect.lines)) {
    return table({
      caption: t('change.effect'),
      rows: effect.lines,
      rowKey: (r) => r.job_code,
      test: 'change-lines',
      columns: [
        { key: 'job_code', label: t('job.one') },
        { key: 'from', label: t('change.before'), cell: (r) => r.from ?? '–' },
        { key: 'to', label: t('change.after'), cell: (r) => r.then ?? r.to ?? '–' },
      ],
    });
  }
  return textDiff(text(effect.before), text(effect.after ?? effect.changes));
}

const verbs = (row) =>
  [
    row.may_decide && ['approve', 'approve', 'primary'],
    row.may_decide && ['reject', 'reject', undefined],
    row.may_withdraw && ['withdraw', 'reject', undefined],
    row.may_break_glass && ['break-glass', 'break-glass', 'danger'],
  ].filter(Boolean);

async function decide(row, [name, verb], onDone) {
  const id = row.change_request_id;
  let after;
  const done = await confirmReason({
    title: `${t(`change.${name}`)}: ${row.summary}`,
    lead: t(`change.${name}_lead`, { author: row.author }),
    verb: t(`change.${name}`),
    kind: name === 'approve' ? 'primary' : 'danger',
    label: t('approval.comment'),
    hint: t('approval.comment_hint'),
    optional: name === 'approve' || name === 'withdraw',
    run: async (comment) => {
      after = await api.post(api.path`/change-requests/${id}/${verb}`, { comment: comment || null });
    },
  });
  if (done === null) return;
  if (after?.status === 'FAILED') toast(t('change.failed', { id, why: after.failure ?? '' }), 'bad');
  else toast(after?.status === 'DONE' ? t('change.done', { id }) : t('common.done'), 'good');
  store.tell('change-decided');
  onDone();
}

const decideButtons = (row, onDone) =>
  verbs(row).map((verb) =>
    button(t(`change.${verb[0]}`), {
      small: true,
      kind: verb[2],
      test: `change-${verb[0]}`,
      onclick: () => {
        decide(row, verb, onDone);
      },
    }),
  );

/** Everything that an approver looks at. */
async function look(row, onDone) {
  const whole = await api.get(api.path`/change-requests/${row.change_request_id}`);
  const box = dialog({
    title: t('change.title_of', { id: whole.change_request_id }),
    lead: whole.summary,
    size: 'l',
    test: 'change-dialog',
    body: [
      facts(
        [
          [t('common.status'), statusBadge(whole.status)],
          [t('change.author'), `${whole.author} (${whole.author_from})`],
          [t('act.reason'), whole.reason],
          [t('change.needs'), whole.needs.join(', ')],
          [t('approval.until'), time(whole.expires_at)],
          whole.decided_by && [
            t('approval.decision'),
            `${whole.decided_by}${whole.comment ? `: ${whole.comment}` : ''}`,
          ],
          whole.failure && [t('change.FAILED'), whole.failure],
        ].filter(Boolean),
      ),
      h('h3', t('change.effect')),
      h('div', { 'data-test': 'change-effect' }, effectView(whole.effect)),
      whole.body &&
        h('details', h('summary', t('change.request')), h('pre', `${whole.method} ${whole.path}\n${text(whole.body)}`)),
    ],
  });
  box.setActions(
    verbs(whole).map((verb) => ({
      label: t(`change.${verb[0]}`),
      kind: verb[2],
      test: `change-dialog-${verb[0]}`,
      run: (close) => {
        close();
        return decide(whole, verb, onDone);
      },
    })),
  );
}

/** The list: an element, and what reads it anew. */
export function changeRequests({ wanted }) {
  const el = h('div');
  const outcome = (row) =>
    h(
      'div',
      row.decided_by && h('div', row.decided_by, row.without_second_person && ` · ${t('change.alone')}`),
      row.comment && h('div.muted', row.comment),
      row.failure && h('div.muted', row.failure),
    );
  const decision = (row) =>
    h(
      'div.def-buttons',
      button(t('change.look'), {
        small: true,
        test: 'change-look',
        onclick: () => {
          look(row, read).catch((error) => put(el, failed(error, read)));
        },
      }),
      decideButtons(row, read),
      row.status !== 'WAITING' ? outcome(row) : !row.may_decide && h('span.muted', row.refusal),
    );
  const grow = pages({
    load: async (cursor) => {
      const page = await api.get('/change-requests', { all: wanted.all, limit: 50, cursor });
      const here = (row) => !wanted.group || row.groups.includes(wanted.group);
      return { ...page, items: page.items.filter(here) };
    },
    make: (items) =>
      table({
        caption: t('change.title'),
        rows: items,
        rowKey: (r) => String(r.change_request_id),
        test: 'change-requests',
        empty: { title: t(wanted.all ? 'change.none_ever' : 'change.none') },
        columns: [
          { key: 'change_request_id', label: '#', num: true },
          { key: 'status', label: t('common.status'), cell: (r) => statusBadge(r.status) },
          { key: 'action', label: t('change.kind'), hide: 'narrow', cell: (r) => t(`change.${r.action}`) },
          {
            key: 'summary',
            label: t('change.one'),
            cell: (r) => h('div', r.summary, h('div.muted', r.reason)),
          },
          { key: 'author', label: t('change.author'), hide: 'narrow' },
          {
            key: 'expires_at',
            label: t('approval.until'),
            cell: (r) => time(r.status === 'WAITING' ? r.expires_at : (r.decided_at ?? r.expires_at)),
          },
          { key: 'do', label: t('approval.decision'), sort: false, cell: decision },
        ],
      }),
  });
  async function read() {
    if (!el.childElementCount) put(el, loading());
    try {
      await grow.start();
      put(el, grow.el);
    } catch (error) {
      put(el, failed(error, read));
    }
  }
  return { el, read };
}
