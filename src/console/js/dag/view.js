// The canvas of a DAG: tiles that are painted once per zoom and kept, so that panning only copies
// pictures; above them what follows the pointer and the keyboard.

import { colours } from './marks.js';
import { MANY } from './clusters.js';
import { CARDS, drawClusters, drawFailures } from './overlay.js';
import { isFar, paint, round } from './paint.js';
import { Pointer } from './pointer.js';

const TILE = 512;
const KEEP = 160;
const LEAST = 0.02,
  MOST = 2.5;

export class DagView {
  /**
   * @param holder the focusable element that is filled with the canvas.
   * @param on what is called: {open(i), neighbourhood(i), focus(i), hover(i, edge, x, y), moved(), menu(i)}
   */
  constructor(holder, on) {
    this.holder = holder;
    this.on = on;
    this.canvas = document.createElement('canvas');
    this.canvas.className = 'dg-canvas';
    this.canvas.setAttribute('aria-hidden', 'true');
    holder.append(this.canvas);
    this.g = this.canvas.getContext('2d');
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.tiles = new Map();
    this.old = null;
    this.focused = -1;
    this.hovered = -1;
    this.hoveredEdge = -1;
    this.found = [];
    this.foundAt = -1;
    this.look = { critical: false, dim: null, label: null, slow: null };
    this.frames = [];
    this.wanted = 0;
    this.stops = [];
    this.colours = colours();
    this.listen();
    this.size();
  }

  listen() {
    const add = (target, name, fn, options) => {
      target.addEventListener(name, fn, options);
      this.stops.push(() => target.removeEventListener(name, fn, options));
    };
    this.pointer = new Pointer(this, add);
    this.watch = new ResizeObserver(() => this.size());
    this.watch.observe(this.holder);
    const media = matchMedia('(prefers-color-scheme: dark)');
    add(media, 'change', () => this.recolour());
    this.theme = new MutationObserver(() => this.recolour());
    this.theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  }

  destroy() {
    this.stops.forEach((stop) => stop());
    this.watch.disconnect();
    this.theme.disconnect();
    cancelAnimationFrame(this.wanted);
    clearTimeout(this.settle);
    this.tiles.clear();
    this.canvas.remove();
  }

  recolour() {
    this.colours = colours();
    this.dirty();
    if (this.on.recoloured) this.on.recoloured();
  }

  size() {
    const { clientWidth: w, clientHeight: h } = this.holder;
    this.dpr = Math.min(window.devicePixelRatio || 1, 2.5);
    if (!w || !h) return;
    this.w = w;
    this.h = h;
    this.canvas.width = Math.round(w * this.dpr);
    this.canvas.height = Math.round(h * this.dpr);
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${h}px`;
    if (this.model && this.focused >= 0) {
      // The panel that opens beside the picture must not cover the job that it is about, nor move the others about.
      if (this.fitScale() >= this.scale * 0.75) this.fit();
      else this.reveal(this.focused, false);
      this.dirty();
      return;
    }
    if (this.model && !this.touched) this.fit();
    this.dirty();
    if (this.model && !this.touched) this.on.resized?.();
  }

  /** Takes a new picture. `keep` leaves place and zoom as they are. */
  show(model, keep) {
    this.model = model;
    this.focused = -1;
    this.hovered = -1;
    this.hoveredEdge = -1;
    this.found = [];
    if (!keep) this.touched = false;
    if (!keep && this.w) this.fit();
    this.dirty();
  }

  /** The zoom at which all is seen. */
  fitScale() {
    const { width, height } = this.model;
    return Math.min((this.w - 24) / Math.max(1, width), (this.h - 24) / Math.max(1, height), 1);
  }

  // ---- place and zoom

  fit() {
    if (!this.model || !this.w) return;
    const { width, height } = this.model;
    this.fitTo(0, 0, width, height, 1);
    if (this.model.nodes.length > MANY && isFar(this.model, this.scale)) {
      // Room for the names of the parts: above, or at the left of a picture from top to bottom.
      const isDown = this.model.direction === 'TB';
      this.fitTo(0, 0, width, height, 1, isDown ? { left: 132 } : { top: CARDS });
    }
    this.touched = false;
  }

  fitTo(x0, y0, x1, y1, most = 1, { top = 0, left = 0 } = {}) {
    const margin = 12;
    const scale = Math.min(
      (this.w - left - margin * 2) / Math.max(1, x1 - x0),
      (this.h - top - margin * 2) / Math.max(1, y1 - y0),
      most,
    );
    this.touched = true;
    this.scale = Math.max(LEAST, scale);
    this.x = (x0 + x1) / 2 - (this.w + left) / 2 / this.scale;
    // A low picture stands near the top: the middle of the canvas may be below the fold.
    const above = top + Math.min(48, (this.h - top - (y1 - y0) * this.scale) / 2);
    this.y = y0 - above / this.scale;
    this.dirty();
  }

  /** Zooms so that what is at px, py stays there. */
  zoom(by, px = this.w / 2, py = this.h / 2) {
    const scale = Math.max(LEAST, Math.min(MOST, this.scale * by));
    if (scale === this.scale) return;
    this.keepOld();
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.touched = true;
    // While one zooms on, the old tiles are stretched; new ones are painted when it rests.
    this.tiles.clear();
    this.zooming = true;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => {
      this.zooming = false;
      this.draw();
    }, 90);
    this.bound();
    this.draw();
  }

  /** The frame as it is, to be stretched until the tiles of the new zoom are there. */
  keepOld() {
    if (this.zooming && this.old) return;
    const copy = document.createElement('canvas');
    copy.width = this.canvas.width;
    copy.height = this.canvas.height;
    copy.getContext('2d').drawImage(this.canvas, 0, 0);
    this.old = { copy, x: this.x, y: this.y, scale: this.scale };
  }

  one() {
    this.zoom(1 / this.scale);
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.touched = true;
    this.bound();
    this.draw();
  }

  /** Something of the picture stays in view. */
  bound() {
    if (!this.model) return;
    const mx = Math.min(120, this.w / 3) / this.scale,
      my = Math.min(120, this.h / 3) / this.scale;
    this.x = Math.max(mx - this.w / this.scale, Math.min(this.model.width - mx, this.x));
    this.y = Math.max(my - this.h / this.scale, Math.min(this.model.height - my, this.y));
  }

  /** Brings a node into view, near enough to be read. */
  reveal(i, centre) {
    const b = this.model.box.subarray(i * 4, i * 4 + 4);
    if (centre && this.scale < 0.6) {
      this.scale = 0.8;
      this.tiles.clear();
      this.old = null;
    }
    if (centre) {
      this.x = b[0] + b[2] / 2 - this.w / 2 / this.scale;
      this.y = b[1] + b[3] / 2 - this.h / 2 / this.scale;
    } else {
      // No further than needed: a picture that jumps with every key cannot be followed.
      const mx = Math.min(60, this.w / 4) / this.scale,
        my = Math.min(50, this.h / 4) / this.scale;
      this.x = Math.min(Math.max(this.x, b[0] + b[2] + mx - this.w / this.scale), b[0] - mx);
      this.y = Math.min(Math.max(this.y, b[1] + b[3] + my - this.h / this.scale), b[1] - my);
    }
    this.touched = true;
    this.draw();
  }

  at(e) {
    const box = this.canvas.getBoundingClientRect();
    const px = e.clientX - box.left,
      py = e.clientY - box.top;
    return { px, py, x: this.x + px / this.scale, y: this.y + py / this.scale };
  }

  hover(i, edge, px, py) {
    if (i === this.hovered && edge === this.hoveredEdge) return;
    this.hovered = i;
    this.hoveredEdge = edge;
    this.canvas.classList.toggle('dg-on-node', i >= 0);
    this.on.hover(i, edge, px, py);
    this.draw();
  }

  // ---- focus

  focus(i, reveal) {
    this.focused = i;
    if (i >= 0 && reveal) this.reveal(i, this.scale < 0.3);
    this.on.focus(i);
    this.draw();
  }

  /** The node to which an arrow key leads from the focused one: along an edge, or beside it. */
  neighbour(key) {
    const m = this.model;
    const along = m.direction === 'TB' ? { ArrowDown: 1, ArrowUp: -1 } : { ArrowRight: 1, ArrowLeft: -1 };
    const [cx, cy] = m.middle(this.focused);
    const near = (list) =>
      list.sort((a, b) => {
        const [ax, ay] = m.middle(a),
          [bx, by] = m.middle(b);
        return Math.hypot(ax - cx, ay - cy) - Math.hypot(bx - cx, by - cy);
      })[0] ?? -1;
    if (along[key] === 1) return near(m.children[this.focused].map((e) => m.ends[e * 2 + 1]));
    if (along[key] === -1) return near(m.parents[this.focused].map((e) => m.ends[e * 2]));
    const level = m.nodes[this.focused].level;
    const back = key === 'ArrowUp' || key === 'ArrowLeft';
    const side = [];
    m.nodes.forEach((node, i) => {
      if (i === this.focused || node.level !== level) return;
      const [x, y] = m.middle(i);
      const ahead = m.direction === 'TB' ? x - cx : y - cy;
      if (back ? ahead < 0 : ahead > 0) side.push(i);
    });
    return near(side);
  }

  // ---- drawing

  /** All tiles are painted anew. */
  dirty() {
    this.tiles.clear();
    this.old = null;
    this.draw();
  }

  /** Tiles on which these nodes stand are painted anew. */
  dirtyNodes(list) {
    if (list.length > 400) return this.dirty();
    const side = TILE / this.scale;
    const pad = 8 / this.scale + 8;
    for (const i of list) {
      const b = i * 4;
      for (
        let tx = Math.floor((this.model.box[b] - pad) / side);
        tx <= Math.floor((this.model.box[b] + this.model.box[b + 2] + pad) / side);
        tx++
      ) {
        for (
          let ty = Math.floor((this.model.box[b + 1] - pad) / side);
          ty <= Math.floor((this.model.box[b + 1] + this.model.box[b + 3] + pad) / side);
          ty++
        ) {
          this.tiles.delete(`${tx},${ty}`);
        }
      }
    }
    return this.draw();
  }

  draw() {
    if (this.wanted) return;
    this.wanted = requestAnimationFrame((now) => {
      this.wanted = 0;
      this.frame(now);
    });
  }

  frame(now) {
    if (!this.w || !this.model) return;
    const began = performance.now();
    const { g, dpr } = this;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = this.colours.paper;
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.zooming && this.old) this.stretch();
    else this.tile(began);
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    this.overlay();
    this.on.moved();
    this.frames.push([now, performance.now() - began]);
    if (this.frames.length > 240) this.frames.shift();
    if (!this.drawn) {
      this.drawn = true;
      this.on.drawn();
    }
  }

  stretch() {
    const { copy, x, y, scale } = this.old;
    const by = this.scale / scale;
    this.g.setTransform(by, 0, 0, by, (x - this.x) * this.scale * this.dpr, (y - this.y) * this.scale * this.dpr);
    this.g.drawImage(copy, 0, 0);
  }

  tile(began) {
    const side = TILE / this.scale;
    // Whole pixels, or the seams of the tiles show.
    const ox = Math.round(this.x * this.scale * this.dpr),
      oy = Math.round(this.y * this.scale * this.dpr);
    const step = TILE * this.dpr;
    const tx0 = Math.floor(ox / step),
      ty0 = Math.floor(oy / step);
    const tx1 = Math.floor((ox + this.canvas.width - 1) / step),
      ty1 = Math.floor((oy + this.canvas.height - 1) / step);
    let painted = 0,
      late = false;
    for (let tx = tx0; tx <= tx1; tx++) {
      for (let ty = ty0; ty <= ty1; ty++) {
        const key = `${tx},${ty}`;
        let tile = this.tiles.get(key);
        // What does not fit into this frame comes with the next one.
        if (!tile && painted && performance.now() - began > 14 && this.drawn) {
          late = true;
          continue;
        }
        if (!tile) {
          tile = this.paintTile(tx * side, ty * side, side);
          painted += 1;
        } else {
          this.tiles.delete(key);
        }
        this.tiles.set(key, tile);
        this.g.drawImage(tile, Math.round(tx * step) - ox, Math.round(ty * step) - oy);
      }
    }
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= KEEP) break;
      this.tiles.delete(key);
    }
    if (late) this.draw();
    else this.old = null;
  }

  paintTile(x, y, side) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = Math.ceil(TILE * this.dpr);
    const g = tile.getContext('2d');
    g.fillStyle = this.colours.paper;
    g.fillRect(0, 0, tile.width, tile.height);
    const s = this.scale * this.dpr;
    g.setTransform(s, 0, 0, s, -x * s, -y * s);
    paint(g, this.model, { x, y, w: side, h: side }, { ...this.look, scale: this.scale, colours: this.colours });
    return tile;
  }

  overlay() {
    const { g, model: m } = this;
    g.save();
    g.translate(-this.x * this.scale, -this.y * this.scale);
    g.scale(this.scale, this.scale);
    const px = 1 / this.scale;
    const frame = (i, colour, wide, grow) => {
      const b = i * 4;
      g.strokeStyle = colour;
      g.lineWidth = wide * px;
      round(
        g,
        m.box[b] - grow * px,
        m.box[b + 1] - grow * px,
        m.box[b + 2] + grow * 2 * px,
        m.box[b + 3] + grow * 2 * px,
        6 + grow * px,
      );
      g.stroke();
    };
    const at = this.hovered >= 0 ? this.hovered : this.focused;
    if (at >= 0) this.edgesOf(at, px);
    if (this.hoveredEdge >= 0) this.line(this.hoveredEdge, this.colours.accent, 3 * px);
    // From afar a broad frame would hide the box that it is around.
    const [wide, grow] = m.usual[1] * this.scale < 12 ? [1.5, 1] : [4, 3];
    for (const i of this.found) if (this.inView(i)) frame(i, this.colours.found, wide, grow);
    if (this.foundAt >= 0 && this.found.length) frame(this.found[this.foundAt], this.colours.select, 2, 7);
    if (this.hovered >= 0) frame(this.hovered, this.colours.accent, 2, 2);
    if (this.focused >= 0) {
      frame(this.focused, this.colours.select, 2.5, 4);
      frame(this.focused, this.colours.accent, 2, 6.5);
    }
    g.restore();
    drawFailures(this);
    drawClusters(this);
  }

  inView(i) {
    const b = i * 4,
      m = this.model;
    return (
      m.box[b] + m.box[b + 2] >= this.x &&
      m.box[b] <= this.x + this.w / this.scale &&
      m.box[b + 1] + m.box[b + 3] >= this.y &&
      m.box[b + 1] <= this.y + this.h / this.scale
    );
  }

  /** Whether all of a node is seen. */
  isWhole(i) {
    const [x, y, w, h] = this.model.box.subarray(i * 4, i * 4 + 4);
    return x >= this.x && y >= this.y && x + w <= this.x + this.w / this.scale && y + h <= this.y + this.h / this.scale;
  }

  edgesOf(i, px) {
    for (const e of this.model.parents[i]) this.line(e, this.colours.accent, 2 * px);
    for (const e of this.model.children[i]) this.line(e, this.colours.accent, 2 * px);
  }

  line(e, colour, wide) {
    const { g } = this;
    g.strokeStyle = colour;
    g.lineWidth = Math.max(wide, 1.6);
    g.beginPath();
    const pts = this.model.edges[e].points;
    g.moveTo(pts[0][0], pts[0][1]);
    for (let p = 1; p < pts.length; p++) g.lineTo(pts[p][0], pts[p][1]);
    g.stroke();
  }

  /** The whole picture as a canvas, as large as browsers allow. */
  whole(most = 2) {
    const m = this.model;
    const limit = Math.min(most, 16000 / m.width, 16000 / m.height, Math.sqrt(3.5e7 / (m.width * m.height)));
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil((m.width + 40) * limit);
    canvas.height = Math.ceil((m.height + 40) * limit);
    const g = canvas.getContext('2d');
    g.fillStyle = this.colours.paper;
    g.fillRect(0, 0, canvas.width, canvas.height);
    g.setTransform(limit, 0, 0, limit, 20 * limit, 20 * limit);
    paint(
      g,
      m,
      { x: -20, y: -20, w: m.width + 40, h: m.height + 40 },
      { ...this.look, scale: limit, colours: this.colours },
    );
    return canvas;
  }
}
