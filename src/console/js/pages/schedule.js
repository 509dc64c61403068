// One schedule: when it fires, what became of its times, and what one does to it.

import { api, say } from '../api.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import {
  button,
  card,
  confirmReason,
  empty,
  facts,
  failed,
  field,
  h,
  input,
  loading,
  menu,
  pageHead,
  pages,
  put,
  shown,
  table,
  time,
  toast,
} from '../ui.js';
import { editSchedule, showNext } from '../edit/schedule_form.js';
import { codeOf, firingMark, scheduleMark, stateOf, targetOf, timingOf } from './schedules.js';

export async function mount(el, ctx) {
  const code = ctx.params.code;
  ctx.title?.(code);
  const at = api.path`/schedules/${code}`;
  let ended = false;

  async function draw() {
    await shown(
      el,
      () => api.get(at),
      (s) => {
        const def = { code, ...s.schedule };
        const group = def.group;
        const why = store.why('run', group) ?? false;
        const edits = store.why('edit', group) ?? false;
        const paused = stateOf(s) === 'PAUSED';
        const next = h('div', loading());
        const past = h('div', loading());
        const reload = () => !ended && draw();
        const ask = (action, kind) =>
          confirmReason({
            title: t(`sch.do_${action}`),
            lead: t(`sch.lead_${action}`, { code, next: s.next_local ?? s.next_time ?? '–' }),
            verb: t(`sch.do_${action}`),
            kind,
            run: async (reason) => {
              await api.post(`${at}/${action}`, { reason });
              toast(t('sch.done', { code }), 'good');
            },
          }).then((reason) => reason && reload());
        const fill = async (host, load) => {
          try {
            const shownNow = await load();
            if (!ended) put(host, shownNow);
          } catch (error) {
            if (!ended)
              put(
                host,
                failed(error, () => fill(host, load)),
              );
          }
        };
        fill(next, async () => showNext(await api.get(`${at}/next`, { n: 10 })));
        fill(past, async () => {
          const list = pages({
            load: (cursor) => api.get(`${at}/firings`, { limit: 50, cursor }),
            make: (rows) => firings(rows, def),
          });
          await list.start();
          return list.el;
        });
        return h(
          'div',
          pageHead({
            title: code,
            sub: def.name,
            crumbs: [[t('sch.title'), '#/schedules'], [code]],
            badge: scheduleMark(s),
            actions: [
              paused
                ? button(t('sch.do_resume'), {
                    icon: 'play',
                    kind: 'primary',
                    disabled: why,
                    test: 'schedule-resume',
                    onclick: () => ask('resume', 'primary'),
                  })
                : button(t('sch.do_pause'), {
                    icon: 'pause',
                    disabled: why,
                    test: 'schedule-pause',
                    onclick: () => ask('pause'),
                  }),
              button(t('sch.do_fire-now'), {
                icon: 'play',
                disabled: why,
                test: 'schedule-fire',
                onclick: () => fireNow(at, def, reload),
              }),
              button(t('sch.do_skip-next'), {
                icon: 'skip',
                disabled: why || (s.next_time ? false : t('sch.no_next')),
                test: 'schedule-skip',
                onclick: () => ask('skip-next'),
              }),
              button(t('sch.edit'), {
                icon: 'edit',
                disabled: edits,
                test: 'schedule-edit',
                onclick: () => editSchedule({ def, revision: s.revision, onDone: reload }),
              }),
              menu(
                t('sch.more'),
                [
                  {
                    label: t('sch.copy'),
                    icon: 'copy',
                    disabled: edits,
                    run: () =>
                      editSchedule({
                        def: { ...def, code: `${code}_2` },
                        isNew: true,
                        onDone: (c) => go(`/schedules/${encodeURIComponent(c)}`),
                      }),
                  },
                  '-',
                  {
                    label: t('sch.do_remove'),
                    icon: 'close',
                    test: 'schedule-remove',
                    kind: 'danger',
                    disabled: edits,
                    run: async () => {
                      const reason = await confirmReason({
                        title: t('sch.do_remove'),
                        lead: t('sch.lead_remove', { code }),
                        verb: t('sch.do_remove'),
                        kind: 'danger',
                        run: (r) => api.del(at, { reason: r }),
                      });
                      if (reason) go('/schedules');
                    },
                  },
                ],
                { kind: 'quiet', test: 'schedule-more' },
              ),
            ],
          }),
          h(
            'div.sch-cols',
            card(
              t('sch.what'),
              facts([
                [t('sf.when'), h('span.mono', timingOf(def))],
                [t('sf.group'), def.group ? h('a', { href: to`/groups/${def.group}` }, def.group) : targetOf(s)],
                [t('sf.batch_no'), def.batch_no && h('code', def.batch_no)],
                [t('sf.zone'), def.time_zone ?? t('sf.of_group')],
                [t('sf.calendar'), def.calendar],
                [t('sf.shift'), def.shift && t(`sf.shift_${def.shift}`)],
                [t('sf.overlap'), t(`sf.overlap_${def.overlap ?? 'queue'}`)],
                [
                  t('sf.misfire'),
                  typeof def.misfire === 'object' && def.misfire
                    ? `${t('sf.misfire_newest')}: ${def.misfire.newest}`
                    : t(`sf.misfire_${def.misfire ?? 'once'}`),
                ],
                [t('sf.start'), def.start],
                [t('sf.end'), def.end],
                [
                  t('sf.blackouts'),
                  def.blackouts?.length
                    ? h(
                        'ul',
                        def.blackouts.map((b) =>
                          h('li', [
                            b.daily ? `${b.daily} ${b.days ?? ''}` : `${b.from} .. ${b.until}`,
                            b.because && ` (${b.because})`,
                          ]),
                        ),
                      )
                    : null,
                ],
                [
                  t('sf.params'),
                  def.params && Object.keys(def.params).length
                    ? h(
                        'ul',
                        Object.entries(def.params).map(([k, v]) => h('li', h('code', `${k}=${v}`))),
                      )
                    : null,
                ],
                [t('sf.notify'), def.notify_email?.join(', ')],
                [t('sch.origin'), s.origin],
                [t('sch.made'), s.create_time && time(s.create_time)],
                [t('sch.why'), s.reason],
              ]),
            ),
            card(t('sf.next'), next),
          ),
          card(t('sch.firings'), past),
        );
      },
    );
  }
  await draw();
  return {
    destroy() {
      ended = true;
    },
  };
}

function firings(rows, def) {
  return table({
    caption: t('sch.firings'),
    rows,
    rowKey: (f) => f.firing_id,
    test: 'firings',
    empty: empty({ title: t('sch.no_firings'), lead: t('sch.no_firings_lead') }),
    locked: true,
    columns: [
      { key: 'planned', label: t('sch.planned'), cell: (f) => h('span.nowrap', f.planned_local ?? time(f.planned_at)) },
      { key: 'status', label: t('sch.became'), cell: firingMark },
      {
        key: 'batch',
        label: t('sf.no'),
        cell: (f) =>
          f.batch_no && def.group
            ? h('a', { href: to`/batches/${def.group}/${f.batch_no}` }, f.batch_no)
            : (f.batch_no ?? '–'),
      },
      { key: 'source', label: t('sch.source'), cell: (f) => f.source, hide: 'narrow' },
      { key: 'fired', label: t('sch.fired'), cell: (f) => (f.fired_at ? time(f.fired_at, { seconds: true }) : '–') },
      { key: 'attempt', label: t('sch.tries'), num: true, cell: (f) => f.attempt ?? '', hide: 'narrow' },
      { key: 'reason', label: t('sch.why'), cell: (f) => h('span', f.reason ?? '') },
    ],
  });
}

/** Fires once by hand, perhaps under another number. */
async function fireNow(at, def, done) {
  const no = field({ label: t('sf.no'), hint: t('sch.fire_no_hint'), input: input({ mono: true, test: 'fire-no' }) });
  const params = field({ label: t('sf.params'), hint: t('sf.params_hint'), input: input({ rows: 2, mono: true }) });
  const reason = await confirmReason({
    title: t('sch.do_fire-now'),
    lead: t('sch.lead_fire-now', { code: codeOf({ schedule: def }), next: '' }),
    verb: t('sch.do_fire-now'),
    body: [no, params],
    run: async (why) => {
      const given = {};
      for (const line of params.input.value.split('\n')) {
        const i = line.indexOf('=');
        if (i > 0) given[line.slice(0, i).trim()] = line.slice(i + 1).trim();
      }
      try {
        await api.post(`${at}/fire-now`, {
          reason: why,
          batch_no: no.input.value.trim() || undefined,
          params: Object.keys(given).length ? given : undefined,
        });
      } catch (error) {
        no.fail(say(error));
        throw error;
      }
      toast(t('sch.fired_now'), 'good');
    },
  });
  if (reason) done();
}
