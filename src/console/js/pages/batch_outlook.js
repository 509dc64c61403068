// When a batch is expected to end, how sure that is, and why it is late.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { duration, h, icon, put, time } from '../ui.js';

/** The expected end of a batch that runs; `eta` as the API has it. */
export function expectedEnd(eta) {
  const expected = eta?.expected;
  const unknown = !expected || expected.certainty === 'unknown';
  return h(
    'span',
    { 'data-test': 'expected-end' },
    unknown ? t('sure.unknown') : time(expected.end, { seconds: true }),
    expected &&
      (unknown
        ? h('span.muted', ' (', t('batch.at_a_guess'), ' ', time(expected.end), ')')
        : h('span.muted', { title: t('batch.p90_hint') }, ' (p90 ', time(expected.end_p90), ')')),
    h('span.muted', { 'data-test': 'certainty' }, ` · ${certainty(expected)}`),
  );
}

function certainty(expected) {
  if (!expected) return t('sure.no_past');
  const reason = expected.certainty_reason;
  if (!reason) return t(`sure.${expected.certainty}`);
  const [first, ...more] = expected.certainty_jobs ?? [];
  const job = more.length ? `${first} ${t('common.and_n_more', { n: more.length })}` : first;
  const why = t(`sure.${reason}`, { job });
  return expected.certainty === 'unknown' ? why : `${t(`sure.${expected.certainty}`)}: ${why}`;
}

// More causes than this are in the command `batch eta`.
const CAUSES = 8;
// How often a batch that goes on is asked anew.
const ASK_MS = 10_000;

/** Why a batch is late: nothing while it is in time. `update` is told how the batch stands. */
export function latePanel(at, openJob) {
  const el = h('div');
  let asked = 0;
  let state = '';
  const update = async (batch) => {
    const late = batch.is_late || batch.eta?.expected?.is_late;
    if (!late) {
      state = '';
      return put(el);
    }
    if (state === batch.status && Date.now() - asked < ASK_MS) return null;
    asked = Date.now();
    state = batch.status;
    const found = await api.get(`${at}/why-late`);
    const held = document.activeElement?.closest?.('[data-focus]')?.dataset.focus;
    put(el, whyLate(found, openJob));
    if (held) el.querySelector(`[data-focus="${CSS.escape(held)}"]`)?.focus();
    return null;
  };
  return { el, update: (batch) => update(batch).catch(() => {}) };
}

function whyLate(found, openJob) {
  const by = duration(found.late_by_ms ?? found.expected_late_by_ms);
  const job = (code, key) =>
    h('button.link', { type: 'button', 'data-focus': `late-${key}-${code}`, onclick: () => openJob(code) }, code);
  // The sentence of a cause begins with the job, which is a button here.
  const rest = (cause) =>
    cause.message.startsWith(cause.job) ? cause.message.slice(cause.job.length) : ` ${cause.message}`;
  const more = found.causes.length - CAUSES;
  return h(
    'section.note.note-warning',
    { 'aria-label': t('late.why'), 'data-test': 'why-late' },
    icon('warning'),
    h(
      'div.fails',
      h('p.strong', t(found.late_by_ms ? 'late.is' : 'late.will_be', { by })),
      found.causes.length
        ? h(
            'ul',
            found.causes
              .slice(0, CAUSES)
              .map((cause) => h('li', { 'data-kind': cause.kind }, h('span', job(cause.job, cause.kind), rest(cause)))),
            more > 0 && h('li', t('common.and_n_more', { n: more })),
          )
        : h('p', found.message),
      h('p.muted', `${t('late.chain')}: ${found.chain.map((link) => link.job).join(' → ')}`),
    ),
  );
}
