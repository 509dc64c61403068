// The DAG of a batch, live.

import { api } from '../api.js';
import { to } from '../router.js';
import { mountDag } from '../dag/panel.js';

/** A job of the batch's document as a node of the picture. */
function fact(job) {
  const one = { id: job.job_code, status: job.status, attempt: job.attempt };
  if (job.skip_kind !== undefined) one.skip_kind = job.skip_kind;
  if (job.start_time !== undefined) one.start = job.start_time;
  if (job.end_time !== undefined) one.end = job.end_time;
  if (job.duration_ms !== undefined) one.duration_sec = job.duration_ms === null ? null : job.duration_ms / 1000;
  return one;
}

export function mount(el, ctx) {
  const { group, no } = ctx;
  const at = api.path`/groups/${group}/batches/${no}`;
  const panel = mountDag(el, {
    at: `${at}/dag`, etaAt: `${at}/eta`, live: true, name: `${group} ${no}`, listHref: to`/batches/${group}/${no}/list`,
    query: ctx.query, setQuery: ctx.setQuery, open: (code) => ctx.openJob(code),
    facts: () => [...(ctx.states?.values() || [])].map(fact),
  });
  return {
    panel,
    update(states, changed) {
      const codes = changed && changed.size ? [...changed] : [...states.keys()];
      panel.take(codes.map((code) => states.get(code)).filter(Boolean).map(fact));
    },
    destroy: () => panel.destroy(),
  };
}
