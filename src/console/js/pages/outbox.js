// The outbox: what people were told, what waits, what was given up; and what is held back for a while.

import { api } from '../api.js';
import { t, has } from '../i18n.js';
import { to } from '../router.js';
import { store } from '../store.js';
import {
  ago,
  badge,
  button,
  card,
  confirmReason,
  dialog,
  duration,
  facts,
  failed,
  field,
  h,
  icon,
  input,
  loading,
  pageHead,
  pages,
  put,
  select,
  settled,
  table,
  time,
  toast,
} from '../ui.js';

const STATES = ['pending', 'sent', 'failed', 'digest', 'acked'];
const MARK = { pending: 'QUEUED', sent: 'SUCCESS', failed: 'FAILED', digest: 'SKIPPED', acked: 'FORCED' };
const stateBadge = (s) => {
  const el = badge(MARK[s] ?? 'PENDING');
  el.lastChild.textContent = t(`outbox.${s}`);
  el.dataset.status = s;
  return el;
};
const eventWord = (e) => (has(`event.${e}`) ? t(`event.${e}`) : e);

export async function mount(el, ctx) {
  ctx.title(t('nav.outbox'));
  const wanted = Object.fromEntries(['status', 'to', 'group', 'event'].map((k) => [k, ctx.query.get(k) ?? '']));
  const groups = await api.all('/groups').catch(() => []);
  const chosen = new Set();
  const host = h('div');
  const bar = h('div.selection', { hidden: true, role: 'region', 'aria-label': t('act.bulk') });
  const snoozes = h('div');
  const may = store.why('run');
  const change = (changes) => {
    Object.assign(wanted, changes);
    ctx.setQuery(wanted);
    chosen.clear();
    read();
  };
  const grow = pages({
    load: (cursor) => api.get('/outbox', { ...wanted, limit: 50, cursor }),
    make: (items) =>
      table({
        caption: t('nav.outbox'),
        rows: items,
        rowKey: (r) => String(r.id),
        test: 'outbox',
        select: chosen,
        onSelect: drawBar,
        onOpen: (r) => show(r.id),
        empty: { title: t(Object.values(wanted).some(Boolean) ? 'common.nothing_fits' : 'outbox.none') },
        rowClass: (r) => (r.status === 'failed' ? 'row-bad' : null),
        columns: [
          { key: 'id', label: '#', num: true },
          { key: 'created', label: t('common.when'), cell: (r) => time(r.created) },
          { key: 'event', label: t('outbox.event'), cell: (r) => eventWord(r.event) },
          { key: 'to', label: t('outbox.to'), cls: 'clip' },
          { key: 'status', label: t('common.status'), cell: (r) => stateBadge(r.status) },
          {
            key: 'subject',
            label: t('outbox.subject'),
            cls: 'clip',
            cell: (r) =>
              h('button.link', { type: 'button', onclick: () => show(r.id), title: r.subject }, r.subject ?? '–'),
          },
          {
            key: 'next',
            label: t('outbox.next'),
            hide: 'narrow',
            cls: 'clip',
            cell: (r) =>
              r.reason
                ? h('span', { title: r.reason, class: r.status === 'failed' ? 'bad' : null }, r.reason)
                : r.sent
                  ? time(r.sent)
                  : r.next
                    ? ago(r.next)
                    : '',
          },
        ],
      }),
  });
  async function read() {
    put(host, loading());
    drawBar();
    try {
      await grow.start();
      put(host, grow.el);
    } catch (error) {
      put(host, failed(error, read));
    }
  }
  const each = async (what, ids, verb) => {
    await confirmReason({
      title: t(`outbox.${what}_title`, { n: ids.length }),
      lead: t(`outbox.${what}_lead`),
      verb,
      run: async (reason) => {
        for (const id of ids) await api.post(api.path`/outbox/${id}/${what}`, { reason });
        toast(t('common.done'), 'good');
        chosen.clear();
        read();
      },
    });
  };
  function drawBar() {
    bar.hidden = chosen.size === 0;
    put(
      bar,
      h('span.strong', t('outbox.n_chosen', { n: chosen.size })),
      button(t('outbox.resend'), {
        small: true,
        icon: 'send',
        disabled: may,
        onclick: () => {
          each('resend', [...chosen], t('outbox.resend'));
        },
      }),
      button(t('outbox.ack'), {
        small: true,
        icon: 'check',
        disabled: may,
        onclick: () => {
          each('ack', [...chosen], t('outbox.ack'));
        },
      }),
    );
  }
  async function show(id) {
    const one = await api.get(api.path`/outbox/${id}`).catch((error) => {
      toast(error.detail, 'bad');
      return null;
    });
    if (!one) return;
    const topic = one.topic ?? {};
    dialog({
      title: one.subject ?? `#${one.id}`,
      size: 'l',
      test: 'outbox-letter',
      body: [
        facts([
          [t('common.status'), stateBadge(one.status)],
          [t('outbox.to'), one.to],
          [t('outbox.event'), eventWord(one.event)],
          [t('common.when'), time(one.created)],
          [t('outbox.sent_at'), one.sent && time(one.sent)],
          [t('outbox.next'), one.next && time(one.next)],
          [t('outbox.tries'), one.failed_attempts || null],
          [
            t('batch.one'),
            topic.group && topic.batch_no
              ? h(
                  'a',
                  {
                    href:
                      to`/batches/${topic.group}/${topic.batch_no}` +
                      (topic.job ? `/list?job=${encodeURIComponent(topic.job)}` : ''),
                  },
                  [topic.group, topic.batch_no, topic.job].filter(Boolean).join(' · '),
                )
              : null,
          ],
        ]),
        one.reason && h('p.note.note-warning', icon('warning'), h('span', one.reason)),
        h('pre.letter', one.body ?? one.notification?.headline?.[one.lang] ?? ''),
      ],
      actions: [
        {
          label: t('outbox.ack'),
          icon: 'check',
          disabled: may ?? (['acked', 'digest'].includes(one.status) ? t('outbox.ack_not') : null),
          run: (close) => {
            close();
            each('ack', [one.id], t('outbox.ack'));
          },
        },
        {
          label: t('outbox.resend'),
          icon: 'send',
          kind: 'primary',
          disabled: may ?? (one.status === 'pending' ? t('outbox.resend_not') : null),
          run: (close) => {
            close();
            each('resend', [one.id], t('outbox.resend'));
          },
        },
      ],
    });
  }
  async function readSnoozes() {
    try {
      const got = await api.get('/snoozes');
      const all = got.items ?? got;
      put(
        snoozes,
        all.length > 0 &&
          card(
            t('snooze.title'),
            { cls: 'flush' },
            table({
              caption: t('snooze.title'),
              rows: all,
              rowKey: (s) => String(s.id),
              columns: [
                { key: 'group', label: t('group.one') },
                { key: 'job', label: t('job.one'), cell: (s) => s.job ?? t('common.all') },
                { key: 'until', label: t('snooze.until'), cell: (s) => time(s.until) },
                { key: 'who', label: t('audit.actor'), cell: (s) => s.by },
                { key: 'reason', label: t('act.reason'), cls: 'clip' },
                {
                  key: 'do',
                  label: '',
                  sort: false,
                  cell: (s) =>
                    button(t('snooze.wake'), {
                      small: true,
                      kind: 'quiet',
                      icon: 'bell',
                      disabled: store.why('run', s.group),
                      onclick: () => {
                        confirmReason({
                          title: t('snooze.wake_title'),
                          lead: t('snooze.wake_lead'),
                          verb: t('snooze.wake'),
                          run: async (reason) => {
                            await api.del(api.path`/snoozes/${s.id}`, { reason });
                            readSnoozes();
                          },
                        });
                      },
                    }),
                },
              ],
            }).el,
          ),
      );
    } catch {
      put(snoozes);
    }
  }
  async function snooze() {
    const group = field({ label: t('group.one'), input: select({ options: groups.map((g) => [g.code, g.code]) }) });
    const job = field({ label: t('job.one'), hint: t('snooze.job_hint'), input: input({ mono: true }) });
    const span = field({
      label: t('snooze.for'),
      input: select({
        value: '120',
        options: [30, 60, 120, 240, 480, 1440, 4320].map((m) => [String(m), duration(m * 60000)]),
      }),
    });
    confirmReason({
      title: t('snooze.new'),
      lead: t('snooze.lead'),
      verb: t('snooze.new'),
      body: h('div.form', group, job, span),
      run: async (reason) => {
        await api.post('/snoozes', {
          group: group.input.value,
          job: job.input.value.trim() || undefined,
          minutes: Number(span.input.value),
          reason,
        });
        toast(t('common.done'), 'good');
        readSnoozes();
      },
    });
  }
  put(
    el,
    pageHead({
      title: t('nav.outbox'),
      sub: t('outbox.lead'),
      actions: [
        button(t('outbox.test'), { icon: 'send', disabled: store.whyEverywhere('admin'), onclick: test }),
        button(t('snooze.new'), { icon: 'bell', disabled: may, onclick: snooze }),
      ],
    }),
    h(
      'div.stack',
      snoozes,
      h(
        'div',
        h(
          'div.filters',
          input({
            type: 'search',
            label: t('outbox.find'),
            placeholder: t('outbox.find'),
            value: wanted.to,
            oninput: settled(400, (to_) => change({ to: to_.trim() })),
          }),
          select({
            label: t('group.one'),
            value: wanted.group,
            options: [['', t('group.all')], ...groups.map((g) => [g.code, g.code])],
            onchange: (group) => change({ group }),
          }),
          select({
            label: t('common.status'),
            value: wanted.status,
            options: [['', t('status.all')], ...STATES.map((s) => [s, t(`outbox.${s}`)])],
            test: 'filter-status',
            onchange: (status) => change({ status }),
          }),
        ),
        bar,
        host,
      ),
    ),
  );
  await Promise.all([read(), readSnoozes()]);
}

function test() {
  const address = field({
    label: t('outbox.to'),
    hint: t('outbox.test_hint'),
    wide: true,
    input: input({ placeholder: 'name@example.com' }),
  });
  confirmReason({
    title: t('outbox.test'),
    verb: t('outbox.test'),
    body: address,
    run: async (reason) => {
      const to_ = address.input.value.trim();
      const got = await api.post('/notify/test', { recipients: to_ ? [to_] : [], reason });
      for (const one of got.tests)
        toast(one.ok ? t('outbox.test_done', { to: one.to }) : `${one.to}: ${one.reason}`, one.ok ? 'good' : 'bad');
    },
  });
}
