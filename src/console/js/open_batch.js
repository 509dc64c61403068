// Opens a batch: which group and number, with which parameters; the plan is shown before anything is written.

import { api, say } from './api.js';
import { t } from './i18n.js';
import { go, to } from './router.js';
import { store } from './store.js';
import {
  check,
  dialog,
  duration,
  field,
  h,
  icon,
  input,
  loading,
  put,
  select,
  settled,
  timeText,
  toast,
} from './ui.js';

/** `group` and `batch_no` may be filled in already. */
export async function openBatch({ group = '', batch_no = '' }) {
  const groups = (await api.all('/groups').catch(() => [])).filter((g) => store.may('run', g.group ?? g.code));
  const code = (g) => g.group ?? g.code;
  const first = group || (groups.length === 1 ? code(groups[0]) : '');
  let turn = 0;
  const soon = settled(350, look);
  const which = field({
    label: t('group.one'),
    input: select({
      value: first,
      test: 'open-group',
      options: [['', t('common.choose')], ...groups.map((g) => [code(g), g.name ? `${code(g)} – ${g.name}` : code(g)])],
      onchange: () => {
        hint();
        soon();
      },
    }),
  });
  const number = field({
    label: t('batch.no'),
    hint: t('open.no_hint'),
    input: input({ value: batch_no, test: 'open-no', mono: true, oninput: soon, placeholder: '202407' }),
  });
  const day = field({
    label: t('batch.business_date'),
    hint: t('open.day_hint'),
    input: input({ type: 'date', test: 'open-day', onchange: soon }),
  });
  const free = check({
    label: t('open.free_text'),
    hint: t('open.free_text_hint'),
    test: 'open-free-text',
    onchange: soon,
  });
  const params = field({
    label: t('batch.params'),
    hint: t('open.params_hint'),
    wide: true,
    input: input({ rows: 2, mono: true, test: 'open-params', oninput: soon, placeholder: 'name=value' }),
  });
  const reason = field({
    label: t('act.reason'),
    hint: t('act.reason_hint'),
    wide: true,
    input: input({ rows: 2, name: 'reason', test: 'reason' }),
  });
  const plan = h('div.preview', { 'aria-live': 'polite' });
  const read = () => ({
    group: which.input.value,
    batch_no: number.input.value.trim(),
    business_date: day.input.value || undefined,
    free_text: free.box.checked,
    params: Object.fromEntries(
      params.input.value
        .split('\n')
        .map((l) => l.trim())
        .filter(Boolean)
        .map((l) => {
          const at = l.indexOf('=');
          return at < 0 ? [l, ''] : [l.slice(0, at).trim(), l.slice(at + 1).trim()];
        }),
    ),
  });
  dialog({
    title: t('batch.open'),
    lead: t('open.lead'),
    size: 'm',
    test: 'open-dialog',
    body: [h('div.form', which, number, day, params, free), plan, reason],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      { label: t('batch.open'), kind: 'primary', icon: 'play', test: 'open-go', run: open },
    ],
  });
  function hint() {
    const g = groups.find((x) => code(x) === which.input.value);
    number.input.placeholder =
      { monthly: '202407', quarterly: '2024Q3', yearly: '2024', daily: '20240731' }[g?.type] ?? '202407';
  }
  hint();

  async function look() {
    const mine = ++turn;
    const order = read();
    if (!order.group || !order.batch_no) return put(plan);
    put(plan, loading(t('open.planning')));
    try {
      const got = await api.post('/batches', { ...order, dry_run: true });
      if (mine === turn) put(plan, drawPlan(got));
    } catch (error) {
      if (mine === turn)
        put(
          plan,
          h('div.note.note-bad', { role: 'alert', 'data-test': 'error' }, icon('warning'), h('span.pre', say(error))),
        );
    }
    return undefined;
  }

  async function open(close) {
    const order = read();
    if (!order.group) {
      which.fail(t('open.no_group'));
      return which.input.focus();
    }
    which.fail(null);
    if (!order.batch_no) {
      number.fail(t('open.no_number'));
      return number.input.focus();
    }
    number.fail(null);
    const why = reason.input.value.trim();
    if (!why) {
      reason.fail(t('act.reason_missing'));
      return reason.input.focus();
    }
    const done = await api.post('/batches', { ...order, reason: why });
    const one = done.batches?.[0] ?? { group: order.group, batch_no: order.batch_no };
    toast(t('open.done', { batch: `${one.group} · ${one.batch_no}` }), 'good');
    close();
    go(to`/batches/${one.group}/${one.batch_no}`);
    return undefined;
  }
  if (first && batch_no) look();
  (first ? number : which).input.focus();
}

function drawPlan(got) {
  const batches = got.batches ?? (Array.isArray(got) ? got : [got]);
  const faults = got.faults ?? got.refused ?? [];
  return [
    faults.length > 0 &&
      h(
        'div.note.note-bad',
        icon('warning'),
        h(
          'ul.plain',
          faults.map((f) => h('li', f.what ?? f.message ?? String(f))),
        ),
      ),
    h(
      'div.note',
      { 'data-test': 'open-plan' },
      icon('info'),
      h(
        'ul.plain',
        batches.map((b) => {
          const jobs = Array.isArray(b.jobs) ? b.jobs.length : (b.jobs ?? b.job_count);
          const left = b.expected?.remaining_ms ?? b.remaining_ms ?? b.forecast?.remaining_ms;
          const end = b.expected?.end ?? b.forecast?.end;
          return h(
            'li',
            h('b', `${b.group ?? ''} · ${b.batch_no ?? ''}`),
            `: ${t('job.n', { n: jobs ?? 0 })}`,
            b.business_date && ` · ${t('batch.business_date')} ${b.business_date}`,
            left ? ` · ${t('open.takes', { span: duration(left) })}` : '',
            end ? ` · ${t('open.ends', { at: timeText(end) })}` : '',
          );
        }),
      ),
    ),
  ];
}
