// What is said of a node or an arrow: beside it, when it is pointed at, and aloud.

import { has, t } from '../i18n.js';
import { glyph, isFailure, isFinal, statusClass, statusWord } from '../status.js';
import { duration, h, timeText } from '../ui.js';

const clock = (at) => timeText(at, { date: false, seconds: false });
const isSet = (x) => x !== undefined && x !== null;
const WAITS = new Set(['PENDING', 'QUEUED', 'RETRY_WAIT', 'HELD']);
const RUNS = new Set(['RUNNING', 'KILLING']);

/** How long it has taken so far, or took, in milliseconds; null for what has not begun. */
function tookOf(node, state) {
  if (RUNS.has(state) && node.start) return Math.max(0, Date.now() - Date.parse(node.start));
  return isSet(node.duration_sec) && !WAITS.has(state) ? node.duration_sec * 1000 : null;
}

/** How long it usually takes; 0 without a history of its own, for what others take says nothing about it. */
const usualOf = (node) => (node.est_assumed ? 0 : (node.est_sec ?? 0) * 1000);

/** Whether it takes, or took, more than twice as long as usual; a second more is no matter. */
export function isSlow(node, state) {
  const took = tookOf(node, state);
  if (took === null || !usualOf(node)) return false;
  const usual = usualOf(node);
  return took > 2 * usual && took - usual > 1000;
}

/** The short word in the corner of a box: how long it took and is usual, or when it is expected. `isShort`:
 * for a box without room for both. */
export function labelOf(node, state, isShort = false) {
  if (node.jobs > 1) return t('dag.n_jobs', { n: node.jobs });
  const took = tookOf(node, state);
  const usual = usualOf(node) ? duration(usualOf(node)) : '';
  if (took !== null && isShort) return `${isSlow(node, state) ? '▲ ' : ''}${duration(took)}`;
  if (took !== null && isSlow(node, state)) return t('dag.slow', { took: duration(took), usual });
  if (took !== null && RUNS.has(state) && usual) return t('dag.so_far', { took: duration(took), usual });
  if (took !== null) return duration(took);
  if (WAITS.has(state) && node.eta_start) return `→ ${clock(node.eta_start)}`;
  if (node.est_sec && (!node.status || WAITS.has(state) || RUNS.has(state))) return `~${duration(node.est_sec * 1000)}`;
  return node.status ? '' : node.type || '';
}

/** Why it does not run: what it waits for, or what failed above it; '' for what runs or has ended by itself. */
export function causeOf(model, i) {
  const state = model.states[i];
  const names = (list) => list.slice(0, 3).join(', ') + (list.length > 3 ? ` +${list.length - 3}` : '');
  const above = (at) => model.parents[at].map((e) => model.ends[e * 2]);
  const codeOf = (at) => model.nodes[at].code || model.nodes[at].id;
  if (state === 'PENDING') {
    const open = above(i).filter((p) => !isFinal(model.states[p]));
    return open.length ? t('dag.waits_for', { jobs: names(open.map(codeOf)) }) : '';
  }
  if (state !== 'UPSTREAM_FAILED') return '';
  const seen = new Set([i]);
  const causes = [];
  const open = [i];
  while (open.length) {
    for (const p of above(open.pop())) {
      if (seen.has(p)) continue;
      seen.add(p);
      if (model.states[p] === 'UPSTREAM_FAILED') open.push(p);
      else if (isFailure(model.states[p])) causes.push(codeOf(p));
    }
  }
  return causes.length ? t('dag.because', { jobs: names(causes) }) : '';
}

/** A node as a sentence for screen readers. */
export function spoken(model, i) {
  const node = model.nodes[i];
  return [
    node.code || node.id,
    node.name !== node.code ? node.name : '',
    node.status ? statusWord(model.states[i]) : '',
    labelOf(node, model.states[i]),
    causeOf(model, i),
    t('dag.degree', { before: model.parents[i].length, after: model.children[i].length }),
    node.critical ? t('dag.critical') : '',
  ]
    .filter(Boolean)
    .join(', ');
}

/** What is shown beside the pointer on a node; from afar this alone says what one points at. */
export function nodeLines(model, i) {
  const [node, state] = [model.nodes[i], model.states[i]];
  const cause = causeOf(model, i);
  const facts = [
    node.start && `${t('dag.started')} ${clock(node.start)}`,
    isSet(node.duration_sec) && duration(node.duration_sec * 1000),
    usualOf(node) > 0 && `${t('dag.usual')} ${duration(usualOf(node))}`,
    node.eta_end && !node.end && `${t('dag.eta')} ${clock(node.eta_end)}`,
    node.slack_sec && `${t('dag.slack')} ${duration(node.slack_sec * 1000)}`,
    node.critical && t('dag.critical'),
  ].filter(Boolean);
  const more = [node.type, node.source, (node.tags || []).join(', ')].filter(Boolean).join(' · ');
  return [
    h('strong', node.code || node.id),
    node.name && node.name !== node.code && h('div', node.name),
    node.status &&
      has(`status.${state}`) &&
      h(
        `div.${statusClass(state)}`,
        glyph(state),
        ' ',
        statusWord(state),
        node.attempt > 1 ? ` · ${t('dag.attempt', { n: node.attempt })}` : '',
      ),
    node.statuses &&
      h(
        'div',
        Object.entries(node.statuses)
          .map(([k, n]) => `${statusWord(k)} ${n}`)
          .join(', '),
      ),
    cause && h('div', cause),
    facts.length > 0 && h('div.dg-faint', facts.join(' · ')),
    more && h('div.dg-faint', more),
  ];
}

/** And on an arrow. */
export function edgeLines(edge) {
  const word = `dag.cond_${edge.condition ?? 'success'}`;
  return [
    h('strong', `${edge.source} → ${edge.target}`),
    h('div', t('dag.on', { condition: has(word) ? t(word) : edge.condition })),
  ];
}

/** How many jobs and dependencies, in the words of a key. */
export const counted = (key, jobs, edges) =>
  t(key, { jobs: t('dag.n_jobs', { n: jobs }), edges: t('dag.n_edges', { n: edges }) });
