// What operators do to jobs of a batch: one dialog that shows to the row what will change, asks why, and does
// exactly that.

import { api, ApiError, say } from './api.js';
import { t } from './i18n.js';
import {
  badge,
  button,
  check,
  dialog,
  field,
  h,
  icon,
  input,
  loading,
  put,
  settled,
  table,
  toast,
  announce,
  segmented,
} from './ui.js';
import { store } from './store.js';

const waiting = ['PENDING', 'QUEUED', 'RETRY_WAIT'];
const ended = [
  'SUCCESS',
  'WARNING',
  'FAILED',
  'TIMEOUT',
  'KILLED',
  'SKIPPED',
  'SKIPPED_BRANCH',
  'UPSTREAM_FAILED',
  'FORCED',
  'UNKNOWN',
];
const bad = ['FAILED', 'TIMEOUT', 'KILLED', 'UPSTREAM_FAILED', 'UNKNOWN'];

/** All actions: the permission they take, the states they are for; `whole` is for the batch and names no job. */
export const ACTIONS = [
  {
    name: 'rerun-from-failure',
    api: 'rerun',
    options: { from_failure: true },
    permission: 'run',
    icon: 'rerun',
    from: [],
    whole: true,
  },
  { name: 'rerun', permission: 'run', icon: 'rerun', from: ended },
  { name: 'hold', permission: 'run', icon: 'hold', from: waiting },
  { name: 'release', permission: 'run', icon: 'release', from: ['HELD'] },
  { name: 'start-now', permission: 'run', icon: 'start', from: [...waiting, 'UPSTREAM_FAILED'] },
  { name: 'priority', permission: 'run', icon: 'priority', from: [...waiting, 'HELD'] },
  { name: 'skip', permission: 'force', icon: 'skip', from: [...waiting, 'HELD', ...bad] },
  { name: 'force-success', permission: 'force', icon: 'force', from: bad },
  { name: 'force-failure', permission: 'force', icon: 'fail', from: [...waiting, 'HELD', 'UNKNOWN'], danger: true },
  { name: 'ice', permission: 'force', icon: 'ice', from: [...waiting, 'HELD', ...bad] },
  { name: 'thaw', permission: 'force', icon: 'ice', from: ['SKIPPED'] },
  { name: 'no-exec', permission: 'force', icon: 'noexec', from: [...waiting, 'HELD'] },
  { name: 'normal', permission: 'force', icon: 'check', from: [...waiting, 'HELD', 'SKIPPED'] },
  {
    name: 'kill',
    permission: 'run',
    icon: 'stop',
    from: [...waiting, 'HELD', 'RUNNING', 'KILLING', 'UNKNOWN'],
    danger: true,
  },
];
export const actionOf = (name) => ACTIONS.find((a) => a.name === name);

/** Null, or why an action cannot be done to a job in this state. */
export function whyNot(action, group, job) {
  const why = store.why(action.permission, group);
  if (why) return why;
  if (job && !action.whole && !action.from.includes(job.status))
    return t('act.not_in_state', { status: t(`status.${job.status}`) });
  const mode = String(job?.run_mode ?? '').toUpperCase();
  if (job && action.name === 'thaw' && mode !== 'ICE') return t('act.not_iced');
  if (job && action.name === 'normal' && !mode) return t('act.no_mode');
  return null;
}

const choices = (action) =>
  ({
    rerun: ['alone', 'downstream', 'upstream'].map((v) => [v, t(`act.scope_${v}`)]),
  })[action.name];

/**
 * Shows what an action changes and does it once it is confirmed. `jobs`: their codes; or `filter`: {status, q, tag}.
 * Answers what was done, or undefined.
 */
export async function act({ group, no, action: name, jobs, filter, onDone }) {
  const action = actionOf(name);
  const why = store.why(action.permission, group);
  if (why) {
    toast(why, 'info');
    return undefined;
  }
  const wish = { options: { ...action.options } };
  let seen = null;
  let turn = 0;
  const list = h('div.preview', { 'aria-live': 'polite' });
  const reason = field({
    label: t('act.reason'),
    hint: t('act.reason_hint'),
    wide: true,
    input: input({ rows: 2, name: 'reason', test: 'reason', oninput: () => arm() }),
  });
  const body = () => ({
    action: action.api ?? action.name,
    ...(action.whole ? {} : jobs ? { jobs } : { filter }),
    options: wish.options,
  });

  const options = [];
  if (action.name === 'rerun') {
    options.push(
      segmented({
        label: t('act.scope'),
        options: choices(action),
        value: 'alone',
        test: 'scope',
        onchange: (v) => {
          wish.options.downstream = v === 'downstream';
          wish.options.upstream = v === 'upstream';
          look();
        },
      }),
    );
  }
  if (['rerun', 'rerun-from-failure'].includes(action.name)) {
    options.push(
      check({
        label: t('act.latest'),
        hint: t('act.latest_hint'),
        test: 'opt-latest',
        onchange: (v) => {
          wish.options.latest = v;
          look();
        },
      }),
      check({
        label: t('act.rerun_unknown'),
        hint: t('act.rerun_unknown_hint'),
        test: 'opt-unknown',
        onchange: (v) => {
          wish.options.rerun_unknown = v;
          look();
        },
      }),
    );
  }
  if (action.name === 'priority') {
    wish.options.to = 10;
    options.push(
      field({
        label: t('act.priority_to'),
        hint: t('act.priority_hint'),
        input: input({
          type: 'number',
          value: '10',
          test: 'opt-priority',
          oninput: settled(300, (v) => {
            wish.options.to = Number.parseInt(v, 10) || 0;
            look();
          }),
        }),
      }),
    );
  }
  if (action.name === 'start-now') {
    options.push(
      check({
        label: t('act.ignore_dependencies'),
        hint: t('act.ignore_dependencies_hint'),
        test: 'opt-ignore',
        disabled: store.why('force', group),
        onchange: (v) => {
          wish.options.ignore_dependencies = v;
          look();
        },
      }),
    );
  }

  const box = dialog({
    title: t('act.title', { action: t(`action.${name}`), batch: `${group} · ${no}` }),
    lead: t(`action.${name}_what`),
    size: 'm',
    test: 'confirm',
    body: [options.length > 0 && h('div.options', options), list, reason],
    actions: foot(null),
  });

  function foot(preview) {
    const count = preview?.count ?? preview?.lines?.length ?? 0;
    const blocked = !preview
      ? t('common.loading')
      : count === 0
        ? t('act.nothing')
        : !reason.input.value.trim()
          ? t('act.reason_missing')
          : null;
    return [
      { label: t('common.cancel'), test: 'confirm-no', run: (close) => close() },
      {
        label: preview && count ? t('act.do_n', { action: t(`action.${name}`), n: count }) : t(`action.${name}`),
        icon: action.icon,
        kind: action.danger ? 'danger' : 'primary',
        test: 'confirm-yes',
        disabled: blocked,
        run: doIt,
      },
    ];
  }
  function arm() {
    reason.fail(null);
    const yes = box.el.querySelector('[data-test=confirm-yes]');
    const [, next] = foot(seen);
    if (!yes) return;
    if (!!next.disabled !== yes.disabled) box.setActions(foot(seen));
  }

  function draw(preview, moved) {
    const lines = preview.lines ?? [];
    const asked = lines.filter((l) => l.asked !== false).length;
    put(
      list,
      moved &&
        h('p.note.note-warning', { role: 'alert', 'data-test': 'moved' }, icon('warning'), h('span', t('act.moved'))),
      preview.reopens && h('p.note.note-warning', icon('info'), h('span', t('act.reopens'))),
      preview.definition_changes?.length > 0 &&
        h(
          'details.note',
          { open: true },
          h('summary', t('act.definition_changes', { n: preview.definition_changes.length })),
          h(
            'ul.plain',
            preview.definition_changes.map((d) => h('li.mono', typeof d === 'string' ? d : JSON.stringify(d))),
          ),
        ),
      h(
        'p.strong',
        { 'data-test': 'confirm-count' },
        lines.length ? t('act.will_change', { n: lines.length }) : t('act.nothing'),
        lines.length > asked && h('span.muted', ` ${t('act.asked_follow', { asked, follow: lines.length - asked })}`),
      ),
      lines.length > 0 && lineTable(lines),
    );
  }

  async function look() {
    const mine = ++turn;
    seen = null;
    box.setActions(foot(null));
    put(list, loading(t('act.looking')));
    try {
      const preview = await api.post(api.path`/groups/${group}/batches/${no}/actions`, body());
      if (mine !== turn) return;
      seen = preview;
      draw(preview);
      box.fail(null);
    } catch (error) {
      if (mine !== turn) return;
      put(
        list,
        h('div.note.note-bad', { role: 'alert', 'data-test': 'error' }, icon('warning'), h('span.pre', say(error))),
      );
    }
    box.setActions(foot(seen));
    if (mine === 1) reason.input.focus();
  }

  async function doIt(close) {
    const text = reason.input.value.trim();
    if (!text) {
      reason.fail(t('act.reason_missing'));
      reason.input.focus();
      return;
    }
    try {
      const done = await api.post(api.path`/groups/${group}/batches/${no}/actions`, {
        ...body(),
        reason: text,
        seen: seen.seen,
      });
      toast(t('act.done_n', { action: t(`action.${name}`), n: done.count ?? done.lines?.length ?? 0 }), 'good');
      announce(t('act.done_n', { action: t(`action.${name}`), n: done.count ?? 0 }));
      onDone?.(done);
      close(done);
    } catch (error) {
      if (!(error instanceof ApiError) || !['moved', 'refused'].includes(error.kind)) throw error;
      if (error.kind === 'refused') {
        // What was shown is not so any more: the same question is asked again, and says why not.
        await look();
        if (seen) throw error;
        return;
      }
      // The batch went on meanwhile: what would change now is shown, and asked about again.
      const now = error.more?.preview ?? (error.more?.lines ? error.more : null);
      if (now?.seen) {
        seen = now;
        draw(now, true);
        box.setActions(foot(now));
      } else {
        await look();
        if (seen) draw(seen, true);
      }
      list.scrollIntoView({ block: 'start' });
    }
  }

  look();
  return box.closed;
}

/** The rows that change. */
export function lineTable(lines) {
  const list = table({
    caption: t('act.lines'),
    rows: lines,
    rowKey: (l) => l.job_code ?? l.job,
    locked: true,
    test: 'confirm-lines',
    columns: [
      {
        key: 'job',
        label: t('job.one'),
        cell: (l) => h('span', { 'data-test': 'confirm-line', 'data-job': l.job_code ?? l.job }, l.job_code ?? l.job),
      },
      { key: 'from', label: t('act.now'), cell: (l) => badge(l.from) },
      { key: 'to', label: t('act.then'), cell: (l) => [badge(l.to), then(l)] },
      {
        key: 'cause',
        label: t('act.because'),
        hide: 'narrow',
        cell: (l) => h('span.muted', t((l.asked ?? l.cause === 'asked') ? 'act.asked' : 'act.follows')),
      },
    ],
  });
  list.el.classList.add('table-short');
  return list.el;
}

// What is said of the state afterwards beyond its word: `PENDING (no-exec), priority 10`.
function then(line) {
  const rest = String(line.then ?? '')
    .replace(line.to, '')
    .replace(/^[,\s]+/, '')
    .trim();
  return rest ? h('span.muted', ` ${rest}`) : null;
}

/** The buttons of a job or a selection; those that cannot be done say why. */
export function actionButtons({ group, no, job, codes, onDone, small = true }) {
  const fits = ACTIONS.filter((a) => !a.whole && (!job || a.from.includes(job.status)));
  return fits
    .filter((a) => !job || !(['thaw', 'normal'].includes(a.name) && whyNot(a, group, job)))
    .map((a) =>
      button(t(`action.${a.name}`), {
        icon: a.icon,
        small,
        disabled: whyNot(a, group, job),
        attrs: { 'data-action': a.name },
        onclick: () => {
          act({ group, no, action: a.name, jobs: codes ?? [job.job_code], onDone });
        },
      }),
    );
}
