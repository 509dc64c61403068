// The picture of a draft: the canvas of every DAG, on which dependencies are drawn from box to box and chosen.

import { arrange } from '../../dag/arrange.js';
import { Model, titleOf } from '../../dag/model.js';
import { prefixes } from '../../dag/names.js';
import { measure } from '../../dag/paint.js';
import { DagView } from '../../dag/view.js';
import { t } from '../../i18n.js';
import { h } from '../../ui/dom.js';
import { layered } from './graph.js';

/** So many pixels a press may move and still be a click. */
const STILL = 4;

/**
 * @param on {choose(code), chooseEdge(edge), connect(parent, code), key(event), open()}
 * @returns {el, show(graph), choose(code), fit(), destroy()}
 */
export function mountCanvas(on) {
  const help = h('p.dg-sr', { id: 'ed-help' }, t('ed.canvas_keys'));
  const stage = h(
    'div.dg-stage.ed-stage',
    {
      tabindex: '0',
      role: 'application',
      'aria-roledescription': t('dag.role'),
      'aria-label': t('ed.canvas'),
      'aria-describedby': 'ed-help',
      'data-test': 'ed-canvas',
    },
    help,
  );
  const nothing = h('p.ed-empty', t('ed.nothing'));
  stage.append(nothing);
  let graph = { nodes: [], edges: [] };
  let edge = null;
  let drawing = null;
  const code = (i) => view.model?.nodes[i]?.id ?? null;
  const view = new DagView(stage, {
    open: () => on.open(),
    neighbourhood: (i) => view.reveal(i, true),
    focus(i) {
      stage.dataset.focus = code(i) ?? '';
      // A press on an arrow is one beside every box; what is chosen is the arrow.
      if (!isShowing && !(i < 0 && edge)) on.choose(code(i));
    },
    hover() {},
    moved() {
      tellPlace();
      drawOver();
    },
    drawn() {
      stage.dataset.drawn = 'true';
    },
    resized: () => !view.touched && draw(),
  });
  let isShowing = false;

  function draw() {
    const picture = layered(graph);
    const titles = picture.nodes.map(titleOf);
    const before = prefixes(titles);
    const short = titles.map((title, i) => measure((before[i] ? '…' : '') + title.slice(before[i].length)));
    const full = titles.map((title) => measure(title));
    const { w = 900, h: high = 500 } = view;
    const chosen = code(view.focused);
    const model = new Model(arrange(picture, short, full, { w, h: high, direction: 'auto' }));
    stage.dataset.nodes = String(model.nodes.length);
    stage.dataset.edges = String(model.edges.length);
    nothing.hidden = model.nodes.length > 0;
    isShowing = true;
    view.show(model);
    const i = model.index.get(chosen);
    if (i !== undefined) view.focus(i, false);
    isShowing = false;
  }

  /** Where the chosen box is, from the corner of the canvas: for tools that look at the page from outside. */
  function tellPlace() {
    const { model, focused, scale } = view;
    if (!model || focused < 0) {
      delete stage.dataset.placed;
      return;
    }
    const [x, y] = model.middle(focused);
    stage.dataset.placed = code(focused);
    stage.dataset.view = [view.x, view.y, scale].join(' ');
    stage.dataset.at = [x - view.x, y - view.y].map((part) => Math.round(part * scale)).join(' ');
  }

  /** The arrow that is chosen, and the one that is being drawn. */
  function drawOver() {
    const { g, model } = view;
    if (!model || (!edge && !drawing)) return;
    g.save();
    g.scale(view.scale, view.scale);
    g.translate(-view.x, -view.y);
    if (edge) {
      const i = model.edges.findIndex((one) => one.source === edge.source && one.target === edge.target);
      if (i >= 0) view.line(i, view.colours.accent, 4 / view.scale);
    }
    if (drawing?.isFar) {
      const [x, y] = model.middle(drawing.from);
      g.strokeStyle = view.colours.accent;
      g.lineWidth = 2 / view.scale;
      g.setLineDash([6 / view.scale, 4 / view.scale]);
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(drawing.x, drawing.y);
      g.stroke();
    }
    g.restore();
  }

  // Before the canvas hears of it: a press on a box draws a dependency, one beside it moves the picture.
  const down = (e) => {
    if (!view.model || e.button !== 0) return;
    stage.focus({ preventScroll: true });
    const { x, y } = view.at(e);
    const i = view.model.nodeAt(x, y);
    if (i < 0) {
      const near = view.model.edgeAt(x, y, 6 / view.scale);
      const hit = near >= 0 ? view.model.edges[near] : null;
      edge = hit ? { source: hit.source, target: hit.target } : null;
      if (edge) on.chooseEdge(edge);
      return;
    }
    e.stopPropagation();
    edge = null;
    drawing = { from: i, x, y, px: e.clientX, py: e.clientY, isFar: false };
    view.canvas.setPointerCapture?.(e.pointerId);
  };
  const move = (e) => {
    if (!drawing) return;
    e.stopPropagation();
    const { x, y, px, py } = view.at(e);
    drawing.isFar ||= Math.hypot(e.clientX - drawing.px, e.clientY - drawing.py) > STILL;
    Object.assign(drawing, { x, y });
    view.hover(view.model.nodeAt(x, y), -1, px, py);
    view.draw();
  };
  const up = (e) => {
    if (!drawing) return;
    e.stopPropagation();
    const { from, isFar } = drawing;
    drawing = null;
    const { x, y } = view.at(e);
    const to = view.model.nodeAt(x, y);
    view.draw();
    if (!isFar) view.focus(from, false);
    else if (to >= 0 && to !== from) on.connect(code(from), code(to));
  };
  stage.addEventListener('pointerdown', down, true);
  stage.addEventListener('pointermove', move, true);
  stage.addEventListener('pointerup', up, true);
  stage.addEventListener('pointercancel', () => (drawing = null), true);

  const arrows = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'];
  stage.addEventListener('keydown', (e) => {
    if (!view.model?.nodes.length || e.ctrlKey || e.metaKey || e.altKey) return on.key(e);
    if (arrows.includes(e.key)) {
      const next = view.focused < 0 ? 0 : view.neighbour(e.key);
      if (next >= 0) view.focus(next, true);
    } else if (e.key === 'Home') view.focus(0, true);
    else if (e.key === 'End') view.focus(view.model.nodes.length - 1, true);
    else if (e.key === '+' || e.key === '=') view.zoom(1.3);
    else if (e.key === '-') view.zoom(1 / 1.3);
    else if (e.key === '0') view.fit();
    else return on.key(e);
    e.preventDefault();
    return undefined;
  });

  return {
    el: stage,
    show(next) {
      graph = next;
      if (edge && !graph.edges.some((one) => one.source === edge.source && one.target === edge.target)) edge = null;
      draw();
    },
    choose(wanted) {
      edge = null;
      const i = view.model?.index.get(wanted) ?? -1;
      if (i === view.focused) return;
      isShowing = true;
      view.focus(i, true);
      isShowing = false;
    },
    clearEdge() {
      edge = null;
      view.draw();
    },
    fit: () => draw(),
    size: () => view.size(),
    destroy: () => view.destroy(),
  };
}
