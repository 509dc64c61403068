// The page around the canvas: what is shown, search, legend, minimap, keys, and what is said aloud.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { store } from '../store.js';
import { h, put, settled } from '../ui/dom.js';
import { addIcons, failed, loading, empty, toast } from '../ui.js';
import { arrange } from './arrange.js';
import { Model, titleOf } from './model.js';
import { prefixes } from './names.js';
import { measure } from './paint.js';
import { DagView } from './view.js';
import { onKey } from './keys.js';
import { drawLegend } from './legend.js';
import { drawTools } from './tools.js';
import { counted, edgeLines, isSlow, labelOf, nodeLines, spoken } from './words.js';
import { Minimap } from './minimap.js';
import { save } from './save.js';

addIcons({ 'dag-minus': 'M2.5 8h11', 'dag-full': 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10' });

/**
 * @param with_ {at: path of the DAG, first?: the picture, on its way already, live: bool, etaAt?, name, listHref?,
 *   open(code), query, setQuery, facts?()}
 */
export function mountDag(el, with_) {
  const panel = new Panel(el, with_);
  panel.load();
  return panel;
}

/** What of the picture is wanted, by the address of the page. */
const wishOf = (q) => ({
  focus: q.get('focus') || '',
  up: q.get('up') ?? '2',
  down: q.get('down') ?? '2',
  collapse: q.get('collapse') || '',
  direction: q.get('dir') || store.prefs.dagDirection || 'auto',
  reduce: q.get('reduce') || '',
});

/** The question to the server for that. */
const queryOf = ({ focus, up, down, collapse, reduce }) => ({
  format: 'native',
  layout: 'layered',
  // The order within the layers is the server's; which way they run is decided here, by the window.
  direction: 'LR',
  collapse,
  reduce,
  focus,
  up: focus ? up : '',
  down: focus ? down : '',
});

/** Asks for the picture that a page with this address shows, before the page is there. */
export const fetchPicture = (path, query) => api.get(path, queryOf(wishOf(query)));

class Panel {
  constructor(el, with_) {
    this.with = with_;
    const q = with_.query || new URLSearchParams();
    this.wish = wishOf(q);
    this.hidden = new Set((q.get('only') || '').split(',').filter(Boolean));
    this.critical = q.get('critical') === '1';
    this.eta = new Map();
    this.build(el);
  }

  build(el) {
    this.stage = h('div.dg-stage', {
      tabindex: '0',
      role: 'application',
      'aria-roledescription': t('dag.role'),
      'aria-label': t('dag.label', { name: this.with.name }),
      'aria-describedby': 'dg-help',
      'data-test': 'dag',
      onkeydown: (e) => this.key(e),
      onfocus: () => this.view.draw(),
    });
    this.view = new DagView(this.stage, {
      open: (i) => this.open(i),
      neighbourhood: (i) => this.neighbourhood(i),
      focus: (i) => this.say(i),
      hover: (i, edge, x, y) => this.tip(i, edge, x, y),
      moved: () => this.moved(),
      drawn: () => this.firstDrawn(),
      // What somebody has moved or chosen stays where it is.
      resized: settled(250, () => !this.view.touched && this.view.focused < 0 && this.reshape()),
      recoloured: () => {
        this.mini.redraw();
        if (this.model) drawLegend(this);
      },
    });
    this.mini = new Minimap(this.view);
    this.tipEl = h('div.dg-tip', { hidden: true, 'aria-hidden': 'true' });
    this.zoomEl = h('span.dg-zoom', { 'aria-hidden': 'true' });
    this.over = h('div.dg-over', { hidden: true });
    this.stage.append(this.mini.el, this.tipEl, this.over, h('p.dg-sr', { id: 'dg-help' }, t('dag.keys')));
    this.live = h('div.dg-sr', { 'aria-live': 'polite', 'data-test': 'dag-live' });
    this.legend = h('div.dg-legend', { role: 'group', 'aria-label': t('dag.legend') });
    this.crumb = h('div.dg-crumb');
    this.tools = h('div.dg-tools');
    this.el = h('div.dg', this.tools, this.crumb, this.stage, this.legend, this.live);
    el.append(this.el);
    drawTools(this);
    // As high as the window leaves room for, wherever the page puts it.
    this.tall = () => {
      const top = this.el.getBoundingClientRect().top + window.scrollY;
      this.el.style.height = `${Math.max(window.innerWidth < 720 ? 760 : 560, window.innerHeight - top - 18)}px`;
    };
    this.tall();
    addEventListener('resize', this.tall);
  }

  // ---- data

  query(more) {
    return { ...queryOf(this.wish), ...more };
  }

  change(wish) {
    Object.assign(this.wish, wish);
    const { focus, up, down, collapse, direction, reduce } = this.wish;
    this.with.setQuery?.({ focus, up: focus ? up : null, down: focus ? down : null, collapse, dir: direction, reduce });
    if (wish.direction) store.set({ dagDirection: direction });
    drawTools(this);
    return this.load();
  }

  async load() {
    const turn = (this.turn = (this.turn || 0) + 1);
    this.cover(loading());
    try {
      const { first } = this.with;
      this.with.first = null;
      const picture = await (first ?? api.get(this.with.at, this.query()));
      if (turn !== this.turn || this.ended) return;
      this.show(picture);
      if (this.with.etaAt) this.loadEta();
    } catch (error) {
      if (turn === this.turn && !this.ended) this.cover(failed(error, () => this.load()));
    }
  }

  show(picture) {
    this.cover(null);
    this.picture = picture;
    // Legend and buttons take their room first: what they leave is the window that the picture is arranged for.
    this.model = new Model(picture);
    drawLegend(this);
    this.view.size();
    this.model = new Model(this.arranged(picture));
    if (this.with.facts) this.model.take(this.with.facts());
    this.stage.dataset.nodes = String(this.model.nodes.length);
    this.stage.dataset.edges = String(this.model.edges.length);
    if (!this.model.nodes.length) {
      this.cover(empty({ title: t('dag.empty'), lead: t('dag.empty_lead') }));
      this.firstDrawn();
    }
    this.view.look.label = (i, isShort) => labelOf(this.model.nodes[i], this.model.states[i], isShort);
    this.view.look.slow = (i) => isSlow(this.model.nodes[i], this.model.states[i]);
    this.tick();
    this.view.look.critical = this.critical;
    this.dimming();
    this.view.show(this.model);
    this.mini.show(this.model);
    drawLegend(this);
    if (this.words) this.search(this.words);
    this.lookAtFocus();
    if (this.expandTo) this.zoomToExpanded();
    // From afar no text is drawn; this is when the picture can be read.
    this.live.textContent = counted('dag.shown', this.model.nodes.length, this.model.edges.length);
  }

  /** The picture with its boxes where they are read best in this window. */
  arranged(picture) {
    const titles = picture.nodes.map(titleOf);
    const before = prefixes(titles);
    const short = titles.map((title, i) => measure((before[i] ? '…' : '') + title.slice(before[i].length)));
    const full = titles.map((title) => measure(title));
    const { w = 1100, h: high = 520 } = this.view;
    this.shape = w / high;
    const made = arrange(picture, short, full, { w, h: high, direction: this.wish.direction });
    this.stage.dataset.direction = made.layout?.direction ?? '';
    return made;
  }

  /** All of the picture in view, arranged anew if the window has become another. */
  fit() {
    if (!this.reshape()) this.view.fit();
  }

  /** Arranges the picture anew where the window is much wider or higher than the one it was made for. */
  reshape() {
    if (!this.model || this.ended || !this.view.h) return false;
    const shape = this.view.w / this.view.h;
    if (Math.abs(Math.log(shape / this.shape)) < 0.2) return false;
    const chosen = this.view.focused;
    this.show({
      ...this.picture,
      nodes: this.picture.nodes.map((node, i) => ({ ...this.model.nodes[i], ...at(node) })),
    });
    if (chosen >= 0) this.view.focus(chosen, false);
    return true;
  }

  /** What runs is compared with what is usual as long as it runs. */
  tick() {
    clearInterval(this.ticking);
    this.ticking = setInterval(() => {
      if (!this.model || document.hidden) return;
      const running = [];
      this.model.states.forEach((state, i) => state === 'RUNNING' && running.push(i));
      if (running.length && running.length <= 200) this.view.dirtyNodes(running);
    }, 1000);
  }

  /** A neighbourhood is looked at near enough to be read, its job in the middle. */
  lookAtFocus() {
    const i = this.model.index.get(this.wish.focus);
    if (i === undefined) return;
    if (this.view.scale < 0.5) {
      this.view.scale = 0.62;
      this.view.dirty();
      this.view.reveal(i, true);
    }
    this.view.focus(i, false);
  }

  async loadEta() {
    try {
      const eta = await api.get(this.with.etaAt);
      this.eta = new Map((eta?.expected?.jobs || []).map((job) => [job.job_code, job]));
      if (!this.model) return;
      const changed = this.model.take(
        [...this.eta].map(([id, job]) => ({
          id,
          critical: Boolean(job.critical),
          slack_sec: job.slack_ms === null || job.slack_ms === undefined ? undefined : job.slack_ms / 1000,
          est_sec: job.p50_ms ? job.p50_ms / 1000 : undefined,
          est_assumed: job.basis === 'assumed',
          eta_end: job.end,
          eta_start: job.start,
        })),
      );
      for (const edge of this.model.edges) {
        edge.critical =
          this.model.nodes[this.model.index.get(edge.source)].critical &&
          this.model.nodes[this.model.index.get(edge.target)].critical;
      }
      if (changed.length) this.view.dirty();
    } catch {
      // Without a forecast there is a picture all the same.
    }
  }

  /** States that have changed: `facts` as nodes have them, with `id`. */
  take(facts) {
    if (!this.model) return;
    if (this.wish.collapse) {
      // What a node that stands for several shows is the server's to say.
      this.again ??= settled(1500, () => this.refresh());
      this.again();
      return;
    }
    const changed = this.model.take(facts);
    if (!changed.length) return;
    this.view.dirtyNodes(changed);
    this.mini.redraw();
    drawLegend(this);
    if (this.view.focused >= 0 && changed.includes(this.view.focused)) this.say(this.view.focused);
    if (this.with.etaAt) {
      this.etaAgain ??= settled(4000, () => this.loadEta());
      this.etaAgain();
    }
  }

  /** The states of all nodes anew, where they stand. */
  async refresh() {
    if (!this.model || this.ended) return;
    try {
      const picture = await api.get(this.with.at, this.query({ layout: 'none' }));
      const changed = this.model.take(picture.nodes);
      if (changed.length) {
        this.view.dirtyNodes(changed);
        this.mini.redraw();
        drawLegend(this);
      }
    } catch {
      // The next event asks again.
    }
  }

  /** The picture over the whole window, and back. */
  full() {
    this.isFull = !this.isFull;
    this.el.classList.toggle('dg-full', this.isFull);
    this.fullButton.setAttribute('aria-pressed', String(this.isFull));
    this.stage.focus();
  }

  dimming() {
    const only = this.hidden;
    this.view.look.dim = only.size
      ? (i) => {
          const several = this.model.nodes[i].statuses;
          return several ? !Object.keys(several).some((k) => only.has(k)) : !only.has(this.model.states[i]);
        }
      : null;
  }

  toggleCritical() {
    this.critical = !this.critical;
    this.view.look.critical = this.critical;
    this.with.setQuery?.({ critical: this.critical ? '1' : null });
    drawTools(this);
    drawLegend(this);
    this.view.dirty();
    const n = this.model ? this.model.nodes.filter((node) => node.critical).length : 0;
    if (this.critical) this.live.textContent = n ? t('dag.critical_n', { n }) : t('dag.critical_none');
    if (this.critical && !n) toast(t('dag.critical_none'), 'info');
  }

  // ---- search

  search(words) {
    this.words = words;
    if (!this.model) return;
    const hits = this.model.search(words);
    this.view.found = hits;
    this.view.foundAt = -1;
    this.hitsEl.hidden = hits.length === 0;
    this.foundEl.textContent = words.trim() ? (hits.length ? t('dag.hits', { n: hits.length }) : t('dag.no_hits')) : '';
    this.view.draw();
  }

  jump(by) {
    const { found } = this.view;
    if (!found.length) return;
    this.view.foundAt = (this.view.foundAt + by + found.length) % found.length;
    const i = found[this.view.foundAt];
    this.foundEl.textContent = `${this.view.foundAt + 1}/${found.length}`;
    this.view.reveal(i, true);
    this.view.focus(i, false);
  }

  // ---- what one does with a node

  open(i) {
    const node = this.model.nodes[i];
    if (node.kind === 'group' || node.kind === 'tag') return this.expand(node);
    if (node.kind === 'external') return toast(t('dag.external', { job: node.code || node.id }), 'info');
    return this.with.open(node.code || node.id);
  }

  neighbourhood(i) {
    const node = this.model.nodes[i];
    if (node.kind === 'group' || node.kind === 'tag') return this.expand(node);
    return this.change({ focus: node.code || node.id, collapse: '' });
  }

  /** Everything unfolded, with what the node stood for in view. */
  expand(node) {
    this.words = '';
    this.expandTo = { kind: node.kind, word: node.name || node.label || node.code, id: node.id, group: node.group };
    return this.change({ collapse: '' });
  }

  zoomToExpanded() {
    const { kind, word, id, group } = this.expandTo;
    this.expandTo = null;
    const tag = id
      .split('/')
      .pop()
      .replace(/ \(\d+\)$/, '');
    const hits = [];
    this.model.nodes.forEach((node, i) => {
      const fits =
        kind === 'group'
          ? node.group === (group || tag)
          : (node.tags || [])[0] === tag || (node.tags || [])[0] === word;
      if (fits) hits.push(i);
    });
    if (!hits.length) return;
    const box = this.model.box;
    const edge = (at, fn, plus) =>
      hits.reduce(
        (m, i) => fn(m, box[i * 4 + at] + (plus ? box[i * 4 + plus] : 0)),
        fn === Math.min ? Infinity : -Infinity,
      );
    this.view.fitTo(edge(0, Math.min), edge(1, Math.min), edge(0, Math.max, 2), edge(1, Math.max, 3));
    this.view.found = hits;
    this.hitsEl.hidden = false;
    this.foundEl.textContent = t('dag.hits', { n: hits.length });
  }

  key(e) {
    if (e.target === this.stage && this.model) onKey(this, e);
  }

  first() {
    return this.view.found[0] ?? 0;
  }

  say(i) {
    this.focusedCode = i >= 0 ? this.model.nodes[i].id : null;
    if (i < 0) {
      this.live.textContent = '';
      return;
    }
    this.stage.dataset.focus = this.focusedCode;
    this.live.textContent = spoken(this.model, i);
  }

  tip(i, edge, x, y) {
    if (i < 0 && edge < 0) {
      this.tipEl.hidden = true;
      return;
    }
    put(this.tipEl, i >= 0 ? nodeLines(this.model, i) : edgeLines(this.model.edges[edge]));
    this.tipEl.hidden = false;
    const wide = this.tipEl.offsetWidth,
      high = this.tipEl.offsetHeight;
    this.tipEl.style.left = `${Math.max(4, Math.min(x + 14, this.view.w - wide - 6))}px`;
    this.tipEl.style.top = `${y + 18 + high > this.view.h ? Math.max(4, y - high - 10) : y + 18}px`;
  }

  moved() {
    const percent = `${Math.round(this.view.scale * 100)}%`;
    if (this.zoomEl.textContent !== percent) this.zoomEl.textContent = percent;
    // How large letters are, and whether the job that is looked at is seen: told to who cannot see a canvas, as tests.
    const { dataset } = this.stage;
    dataset.letters = (12 * this.view.scale).toFixed(1);
    if (this.view.focused < 0) delete dataset.chosen;
    else dataset.chosen = this.view.isWhole(this.view.focused) ? 'seen' : 'hidden';
    this.mini.frame();
  }

  firstDrawn() {
    if (this.stage.dataset.drawn) return;
    this.stage.dataset.drawn = 'true';
    performance.mark('dag-first-picture');
    this.with.drawn?.();
  }

  cover(what) {
    this.over.hidden = !what;
    put(this.over, what);
  }

  async save(kind) {
    if (!this.model) return;
    if (kind === 'png' && this.model.nodes.length > 500) toast(t('dag.making'), 'info');
    try {
      const direction = this.model.direction;
      await save(kind, this.view, `${this.with.name}.${kind}`, () =>
        api.text(this.with.at, this.query({ format: 'svg', direction }), 'image/svg+xml'),
      );
    } catch (error) {
      toast(error.detail || error.message, 'bad');
    }
  }

  destroy() {
    this.ended = true;
    clearInterval(this.ticking);
    removeEventListener('resize', this.tall);
    this.view.destroy();
    this.mini.destroy();
    this.el.remove();
  }
}

/** Where the server has put a node. */
const at = ({ x, y, w, h: high }) => ({ x, y, w, h: high });
