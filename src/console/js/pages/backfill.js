// One backfill: its batches as they go on, stopping it and going on.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { to } from '../router.js';
import { store } from '../store.js';
import {
  badge,
  button,
  card,
  confirmReason,
  duration,
  facts,
  failed,
  h,
  loading,
  pageHead,
  poll,
  put,
  table,
  time,
  toast,
} from '../ui.js';
import { bar, mark, rangeText } from './backfills.js';

const onlyText = (only) => {
  const words = (Array.isArray(only) ? only.join(',') : String(only ?? '')).toLowerCase();
  if (words === 'missing') return t('bf.only_missing');
  return words === 'failed' ? t('bf.only_failed') : t('bf.only_both');
};

export async function mount(el, ctx) {
  const at = api.path`/backfills/${ctx.params.id}`;
  ctx.title?.(`#${ctx.params.id}`);
  let ended = false;
  let list = null;
  let was = '';
  put(el, loading());

  async function load() {
    const b = await api.get(at);
    if (ended) return;
    const text = JSON.stringify(b);
    if (text === was) return;
    was = text;
    draw(b);
  }

  function draw(b) {
    const runs = ['RUNNING', 'STOPPING'].includes(String(b.status).toUpperCase());
    const why = store.why('run', b.group) ?? false;
    const ask = (action, kind) =>
      confirmReason({
        title: t(`bf.do_${action}`),
        lead: t(`bf.lead_${action}`, { n: b.total - b.done }),
        verb: t(`bf.do_${action}`),
        kind,
        run: (reason) => api.post(`${at}/${action}`, { reason }),
      }).then((r) => r && (toast(t('bf.said'), 'good'), load()));
    const rows = b.batches ?? [];
    if (list) {
      list.update(rows);
    } else {
      list = table({
        caption: t('bf.batches'),
        rows,
        rowKey: (r) => r.batch_no,
        locked: true,
        test: 'backfill-batches',
        columns: [
          {
            key: 'no',
            label: t('sf.no'),
            cell: (r) => h('a.strong', { href: to`/batches/${b.group}/${r.batch_no}` }, r.batch_no),
          },
          { key: 'status', label: t('sch.state'), cell: (r) => mark(r.status) },
          { key: 'batch', label: t('bf.batch'), cell: (r) => (r.batch_status ? badge(r.batch_status) : '–') },
          { key: 'jobs', label: t('bf.jobs'), cell: (r) => (r.jobs ? bar(r.jobs_done ?? 0, r.jobs) : '–') },
          {
            key: 'took',
            label: t('bf.took'),
            num: true,
            cell: (r) => (r.duration_ms != null ? duration(r.duration_ms) : '–'),
          },
          {
            key: 'failed',
            label: t('bf.failed'),
            cell: (r) =>
              r.failed?.length
                ? r.failed.map((f) =>
                    h(
                      'div',
                      h(
                        'a',
                        { href: `${to`/batches/${b.group}/${r.batch_no}`}?job=${encodeURIComponent(f.job_code)}` },
                        f.job_code,
                      ),
                    ),
                  )
                : (r.message ?? ''),
          },
        ],
      });
    }
    put(
      el,
      h(
        'div.stack',
        pageHead({
          title: `${t('bf.one')} #${b.backfill_id}`,
          sub: `${b.group} · ${rangeText(b.range)}`,
          crumbs: [[t('bf.title'), '#/backfills'], [`#${b.backfill_id}`]],
          badge: mark(b.status),
          actions: [
            runs
              ? button(t('bf.do_stop'), {
                  icon: 'stop',
                  kind: 'danger',
                  disabled: why,
                  test: 'backfill-stop',
                  onclick: () => ask('stop', 'danger'),
                })
              : String(b.status).toUpperCase() !== 'SUCCESS'
                ? button(t('bf.do_resume'), {
                    icon: 'play',
                    kind: 'primary',
                    disabled: why,
                    test: 'backfill-resume',
                    onclick: () => ask('resume', 'primary'),
                  })
                : null,
          ],
        }),
        card(
          t('bf.how'),
          facts([
            [t('bf.done'), bar(b.done, b.total)],
            [t('bf.parallel'), b.parallel],
            [t('bf.order'), b.order && t(b.order === 'desc' ? 'bf.backwards' : 'bf.forwards')],
            [t('bf.only'), onlyText(b.only)],
            [t('bf.on_failure'), t(b.on_failure === 'stop' ? 'bf.stop' : 'bf.continue')],
            [t('bf.begun'), time(b.create_time)],
            [t('bf.ended'), b.end_time && time(b.end_time)],
            [t('bf.by'), b.started_by],
            [t('act.reason'), b.reason],
          ]),
        ),
        card(t('bf.batches'), list.el),
      ),
    );
  }

  try {
    await load();
  } catch (error) {
    if (!ended)
      put(
        el,
        failed(error, () => mount(el, ctx)),
      );
  }
  const stop = poll(load, 3000);
  return {
    destroy() {
      ended = true;
      stop();
    },
  };
}
