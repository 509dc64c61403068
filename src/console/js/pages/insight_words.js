// How a batch stands against its deadline, as a word, a colour and a mark.

import { t } from '../i18n.js';
import { h, icon } from '../ui.js';

const LOOKS = {
  late: ['st-failed', 'warning'],
  failed: ['st-failed', 'close'],
  will_be_late: ['st-warning', 'clock'],
  at_risk: ['st-warning', 'clock'],
  missed: ['st-late', 'clock'],
  unknown: ['st-pending', 'info'],
  on_time: ['st-running', 'clock'],
  met: ['st-success', 'check'],
  no_deadline: ['st-skipped', 'info'],
};

export function standingBadge(standing) {
  const [look, mark] = LOOKS[standing] ?? LOOKS.unknown;
  return h(
    `span.badge.${look}`,
    { 'data-standing': standing, title: t(`standing.${standing}_about`) },
    icon(mark, 13),
    h('span', t(`standing.${standing}`)),
  );
}
