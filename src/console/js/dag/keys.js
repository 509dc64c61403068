// The keyboard on a picture: arrows move it, or follow the dependencies once a job has the focus.

import { t } from '../i18n.js';
import { isFailure } from '../status.js';

const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export function onKey(panel, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const act = ARROWS[e.key] ? () => arrow(panel, e) : keys(panel)[e.key];
  if (!act) return;
  e.preventDefault();
  e.stopPropagation();
  act();
}

function arrow(panel, e) {
  const { view } = panel;
  const [x, y] = ARROWS[e.key];
  if (view.focused < 0 || e.shiftKey) {
    view.pan(x * 80, y * 80);
    return;
  }
  const next = view.neighbour(e.key);
  if (next >= 0) view.focus(next, true);
  else panel.live.textContent = t('dag.no_further');
}

function keys(panel) {
  const { view } = panel;
  const go = () => (view.focused < 0 ? view.focus(panel.first(), true) : panel.open(view.focused));
  return {
    '+': () => view.zoom(1.3),
    '=': () => view.zoom(1.3),
    '-': () => view.zoom(1 / 1.3),
    0: () => panel.fit(),
    1: () => view.one(),
    Home: () => view.focus(panel.first(), true),
    End: () => view.focus(panel.model.nodes.length - 1, true),
    Enter: go,
    ' ': go,
    n: () => view.focused >= 0 && panel.neighbourhood(view.focused),
    f: () => nextFailure(panel),
    '/': () => panel.searchEl.focus(),
    Escape: () => {
      if (view.focused >= 0) view.focus(-1);
      else if (panel.isFull) panel.full();
      else if (panel.wish.focus) panel.change({ focus: '' });
    },
  };
}

/** Shows the next job that failed. */
export function nextFailure(panel) {
  const { model, view } = panel;
  const n = model.nodes.length;
  for (let k = 1; k <= n; k++) {
    const i = (Math.max(view.focused, -1) + k + n) % n;
    if (isFailure(model.states[i])) {
      view.reveal(i, true);
      view.focus(i, false);
      return;
    }
  }
  panel.live.textContent = t('dag.none_failed');
}
