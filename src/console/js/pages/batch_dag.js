// The DAG of a batch, live.

import { api } from '../api.js';
import { to } from '../router.js';
import { settled } from '../ui.js';
import { fetchPicture, mountDag } from '../dag/panel.js';

/** A job of the batch's document as a node of the picture. */
function fact(job) {
  const one = { id: job.job_code, status: job.status, attempt: job.attempt };
  if (job.skip_kind !== undefined) one.skip_kind = job.skip_kind;
  if (job.start_time !== undefined) one.start = job.start_time;
  if (job.end_time !== undefined) one.end = job.end_time;
  if (job.duration_ms !== undefined) one.duration_sec = job.duration_ms === null ? null : job.duration_ms / 1000;
  return one;
}

/** Asks for the picture of a batch while the batch itself is still on its way. */
export function early(group, no, query) {
  return fetchPicture(`${api.path`/groups/${group}/batches/${no}`}/dag`, query);
}

export function mount(el, ctx) {
  const { group, no } = ctx;
  const at = api.path`/groups/${group}/batches/${no}`;
  const panel = mountDag(el, {
    at: `${at}/dag`,
    first: ctx.takeEarly?.(),
    etaAt: `${at}/eta`,
    live: true,
    name: `${group} ${no}`,
    listHref: to`/batches/${group}/${no}/list`,
    query: ctx.query,
    setQuery: ctx.setQuery,
    open: (code) => ctx.openJob(code),
    facts: () => [...(ctx.states?.values() || [])].map(fact),
  });
  const askAgain = settled(700, async () => {
    try {
      const all = await api.get(`${at}/states`);
      panel.take(
        all.jobs.map((job) => ({
          id: job.job_code,
          status: job.status,
          skip_kind: job.skip_kind,
          attempt: job.attempt,
          start: job.start,
          end: job.end,
        })),
      );
    } catch {
      // The next event asks again.
    }
  });
  return {
    panel,
    update(states, changed) {
      const codes = changed && changed.size ? [...changed] : [...states.keys()];
      const facts = codes
        .map((code) => states.get(code))
        .filter(Boolean)
        .map(fact);
      panel.take(facts);
      // Who left a job out, an operator or its branch, is not in an event.
      if (facts.some((one) => one.status === 'SKIPPED' && one.skip_kind === undefined)) askAgain();
    },
    destroy: () => panel.destroy(),
  };
}
