// Decides about a job that waits for an approval.

import { api } from './api.js';
import { t } from './i18n.js';
import { button, confirmReason, toast } from './ui.js';

/** Asks for a comment and sends the decision. `verdict`: approve or reject. */
export async function decide({ group, no, job, verdict, question, onDone }) {
  const done = await confirmReason({
    title: t(`approval.${verdict}_title`, { job, no }),
    lead: question || t(`approval.${verdict}_lead`),
    verb: t(`approval.${verdict}`),
    kind: verdict === 'reject' ? 'danger' : 'primary',
    label: t('approval.comment'),
    hint: t(verdict === 'reject' ? 'approval.comment_needed' : 'approval.comment_hint'),
    optional: verdict === 'approve',
    run: async (comment) => {
      await api.post(api.path`/groups/${group}/batches/${no}/jobs/${job}/${verdict}`, { comment: comment || null });
      toast(t('common.done'), 'good');
    },
  });
  if (done !== null) onDone?.();
}

/** The two buttons of an approval. `why` says why the reader may not decide. */
export const decideButtons = ({ group, no, job, question, why, onDone }) =>
  ['approve', 'reject'].map((verdict) =>
    button(t(`approval.${verdict}`), {
      icon: verdict === 'approve' ? 'check' : 'close',
      small: true,
      kind: verdict === 'approve' ? 'primary' : undefined,
      disabled: why ?? null,
      test: `approval-${verdict}`,
      onclick: () => {
        decide({ group, no, job, verdict, question, onDone });
      },
    }),
  );
