// The whole picture, small, with a frame around what is in view. Dragging the frame moves the view.

const WIDE = 190,
  HIGH = 130;

export class Minimap {
  constructor(view) {
    this.view = view;
    this.el = document.createElement('div');
    this.el.className = 'dg-mini';
    this.el.hidden = true;
    this.el.setAttribute('aria-hidden', 'true');
    this.canvas = document.createElement('canvas');
    this.box = document.createElement('div');
    this.box.className = 'dg-mini-box';
    this.el.append(this.canvas, this.box);
    const go = (e) => {
      const at = this.canvas.getBoundingClientRect();
      view.x = (e.clientX - at.left) / this.by - view.w / 2 / view.scale;
      view.y = (e.clientY - at.top) / this.by - view.h / 2 / view.scale;
      view.touched = true;
      view.bound();
      view.draw();
    };
    this.el.addEventListener('pointerdown', (e) => {
      e.stopPropagation();
      this.el.setPointerCapture(e.pointerId);
      go(e);
    });
    this.el.addEventListener('pointermove', (e) => {
      if (this.el.hasPointerCapture(e.pointerId)) go(e);
    });
    this.el.addEventListener('dblclick', (e) => e.stopPropagation());
  }

  show(model) {
    this.model = model;
    this.by = Math.min(WIDE / model.width, HIGH / model.height);
    this.w = Math.max(8, Math.round(model.width * this.by));
    this.h = Math.max(8, Math.round(model.height * this.by));
    const dpr = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = this.w * dpr;
    this.canvas.height = this.h * dpr;
    this.canvas.style.width = `${this.w}px`;
    this.canvas.style.height = `${this.h}px`;
    this.dpr = dpr;
    this.redraw();
  }

  redraw() {
    if (!this.model || this.wanted) return;
    // States come in swarms; the small picture may lag a little.
    this.wanted = setTimeout(() => {
      this.wanted = 0;
      const g = this.canvas.getContext('2d');
      const { box, states } = this.model;
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.clearRect(0, 0, this.canvas.width, this.canvas.height);
      g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
      const { state, line } = this.view.colours;
      for (let i = 0; i < states.length; i++) {
        g.fillStyle = state[states[i]] || line;
        g.fillRect(
          box[i * 4] * this.by,
          box[i * 4 + 1] * this.by,
          Math.max(1, box[i * 4 + 2] * this.by),
          Math.max(1, box[i * 4 + 3] * this.by),
        );
      }
    }, 60);
  }

  /** Follows the view; hidden while everything is in it anyway. */
  frame() {
    const { view } = this;
    if (!this.model) return;
    const w = view.w / view.scale,
      h = view.h / view.scale;
    // Above a picture that is far away there is room for the names of its parts.
    const all = view.x <= 0 && view.y <= 0 && view.x + w >= this.model.width && view.y + h >= this.model.height;
    if (this.el.hidden !== all) this.el.hidden = all;
    if (all) return;
    const x0 = Math.max(0, view.x * this.by),
      y0 = Math.max(0, view.y * this.by);
    const x1 = Math.min(this.w, (view.x + w) * this.by),
      y1 = Math.min(this.h, (view.y + h) * this.by);
    const { style } = this.box;
    style.transform = `translate(${x0}px, ${y0}px)`;
    style.width = `${Math.max(4, x1 - x0)}px`;
    style.height = `${Math.max(4, y1 - y0)}px`;
  }

  destroy() {
    clearTimeout(this.wanted);
    this.el.remove();
  }
}
