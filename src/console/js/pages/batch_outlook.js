// When a batch is expected to end, and how sure that is.

import { t } from '../i18n.js';
import { h, time } from '../ui.js';

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
