// The DAG of a group as it is defined, without a batch.

import { api } from '../api.js';
import { go } from '../router.js';
import { mountDag } from '../dag/panel.js';

export function mount(el, ctx) {
  const group = ctx.group ?? ctx.params?.group;
  const panel = mountDag(el, {
    at: api.path`/groups/${group}/dag`,
    live: false,
    name: group,
    query: ctx.query,
    setQuery: ctx.setQuery,
    open: (code) => (ctx.openJob ? ctx.openJob(code) : go(`/jobs/${encodeURIComponent(`${group}.${code}`)}`)),
  });
  return { panel, update() {}, destroy: () => panel.destroy() };
}
