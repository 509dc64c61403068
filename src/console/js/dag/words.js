// What is said of a node or an arrow: beside it, when it is pointed at, and aloud.

import { has, t } from '../i18n.js';
import { glyph, statusClass, statusWord } from '../status.js';
import { duration, h, timeText } from '../ui.js';

const clock = (at) => timeText(at, { date: false, seconds: false });
const isSet = (x) => x !== undefined && x !== null;
const WAITS = new Set(['PENDING', 'QUEUED', 'RETRY_WAIT', 'HELD']);
const RUNS = new Set(['RUNNING', 'KILLING']);

/** The short word in the corner of a box: how long it took, or when it is expected. */
export function labelOf(node, state) {
  if (node.jobs > 1) return t('dag.n_jobs', { n: node.jobs });
  if (isSet(node.duration_sec) && !WAITS.has(state)) return duration(node.duration_sec * 1000);
  if (WAITS.has(state) && node.eta_start) return `→ ${clock(node.eta_start)}`;
  if (RUNS.has(state) && node.eta_end) return `⇥ ${clock(node.eta_end)}`;
  if (node.est_sec && (!node.status || WAITS.has(state) || RUNS.has(state))) return `~${duration(node.est_sec * 1000)}`;
  return node.status ? '' : node.type || '';
}

/** A node as a sentence for screen readers. */
export function spoken(model, i) {
  const node = model.nodes[i];
  return [
    node.code || node.id,
    node.name !== node.code ? node.name : '',
    node.status ? statusWord(model.states[i]) : '',
    labelOf(node, model.states[i]),
    t('dag.degree', { before: model.parents[i].length, after: model.children[i].length }),
    node.critical ? t('dag.critical') : '',
  ]
    .filter(Boolean)
    .join(', ');
}

/** What is shown beside the pointer on a node; from afar this alone says what one points at. */
export function nodeLines(node, state) {
  const facts = [
    node.start && `${t('dag.started')} ${clock(node.start)}`,
    isSet(node.duration_sec) && duration(node.duration_sec * 1000),
    node.est_sec && `${t('dag.usual')} ${duration(node.est_sec * 1000)}`,
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
