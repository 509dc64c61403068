// Below a picture: how many jobs are in which state, and what the lines mean.

import { has, locale, t } from '../i18n.js';
import { glyph, isFailure, rank, statusClass, statusWord } from '../status.js';
import { h, put } from '../ui/dom.js';
import { button } from '../ui.js';
import { nextFailure } from './keys.js';
import { counted } from './words.js';

/** Counts by state, each a button that leaves only its jobs in full; and what the lines mean. */
export function drawLegend(panel) {
  const counts = panel.model.counts();
  const some = Object.keys(counts)
    .filter((k) => has(`status.${k}`))
    .sort((a, b) => rank(a) - rank(b));
  if (!some.length) {
    drawNext(panel, counts);
    put(
      panel.legend,
      h('span.dg-count', counted('dag.counted', panel.model.nodes.length, panel.model.edges.length)),
      h('span.dg-hint', t('dag.hint')),
    );
    return;
  }
  drawNext(panel, counts);
  put(
    panel.legend,
    some.map((state) =>
      h(
        `button.chip.${statusClass(state)}`,
        {
          type: 'button',
          'aria-pressed': panel.hidden.has(state) ? 'true' : 'false',
          'data-test': `legend-${state}`,
          title: t('dag.legend_title'),
          onclick: () => filter(panel, state),
        },
        coloured(state, panel.view.colours),
        h('span', statusWord(state)),
        h('b', counts[state].toLocaleString(locale())),
      ),
    ),
    panel.hidden.size > 0 &&
      button(t('dag.all_states'), { kind: 'quiet', onclick: () => filter(panel, null), test: 'legend-all' }),
    h('span.dg-line', h('i.dg-l-plain'), t('dag.edge_plain')),
    h('span.dg-line', h('i.dg-l-other'), t('dag.edge_other')),
    panel.critical && h('span.dg-line', h('i.dg-l-critical'), t('dag.critical')),
    h('span.dg-hint', t('dag.hint')),
  );
}

/** A button that leads from one failure to the next, while there is one. */
function drawNext(panel, counts) {
  const n = Object.entries(counts).reduce((sum, [state, k]) => sum + (isFailure(state) ? k : 0), 0);
  if (panel.failures === n) return;
  panel.failures = n;
  put(
    panel.nextEl,
    n > 0 &&
      button(t('dag.next_failure', { n }), {
        icon: 'fail',
        kind: 'danger',
        small: true,
        onclick: () => nextFailure(panel),
        test: 'dag-next-failure',
        title: t('dag.next_failure_title'),
      }),
  );
}

/** Shows only these states in full; the others stay, faint, so that the picture keeps its form. */
function filter(panel, state) {
  const at = document.activeElement?.dataset?.test;
  if (state === null) panel.hidden.clear();
  else if (panel.hidden.has(state)) panel.hidden.delete(state);
  else panel.hidden.add(state);
  panel.with.setQuery?.({ only: [...panel.hidden].join(',') });
  panel.dimming();
  panel.view.dirty();
  panel.mini.redraw();
  drawLegend(panel);
  if (at) panel.legend.querySelector(`[data-test="${at}"]`)?.focus();
}

/** A mark in the colour that the canvas has for its state. */
function coloured(state, colours) {
  const mark = glyph(state);
  mark.style.setProperty('--st', colours.state[state]);
  return mark;
}
