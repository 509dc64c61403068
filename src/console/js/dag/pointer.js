// Mouse, pen and fingers on a picture: dragging, pinching, turning the wheel, pointing, pressing.

export class Pointer {
  constructor(view, add) {
    this.view = view;
    this.pointers = new Map();
    const { canvas } = view;
    add(canvas, 'pointerdown', (e) => this.down(e));
    add(canvas, 'pointermove', (e) => this.move(e));
    add(canvas, 'pointerup', (e) => this.up(e));
    add(canvas, 'pointercancel', (e) => this.up(e));
    add(canvas, 'pointerleave', () => view.hover(-1, -1, 0, 0));
    add(canvas, 'dblclick', (e) => this.twice(e));
    add(canvas, 'wheel', (e) => this.wheel(e), { passive: false });
  }

  down(e) {
    if (e.button > 1) return;
    this.view.holder.focus({ preventScroll: true });
    this.view.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.drag = { far: 0, x: e.clientX, y: e.clientY };
  }

  move(e) {
    const before = this.pointers.get(e.pointerId);
    if (!before) {
      this.lookUnder(e);
      return;
    }
    const now = { x: e.clientX, y: e.clientY };
    if (this.pointers.size === 2) this.pinch(e.pointerId, now);
    else {
      this.drag.far += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (this.drag.far > 4) {
        this.view.canvas.classList.add('dg-dragging');
        this.view.pan(now.x - before.x, now.y - before.y);
      }
    }
    this.pointers.set(e.pointerId, now);
  }

  pinch(id, now) {
    const [other] = [...this.pointers].filter(([k]) => k !== id).map(([, v]) => v);
    const before = this.pointers.get(id);
    const wide = (a) => Math.hypot(a.x - other.x, a.y - other.y) || 1;
    const box = this.view.canvas.getBoundingClientRect();
    this.drag.far = 99;
    this.view.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    this.view.zoom(wide(now) / wide(before), (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
  }

  up(e) {
    const had = this.pointers.delete(e.pointerId);
    this.view.canvas.classList.remove('dg-dragging');
    if (!had || e.type === 'pointercancel' || this.drag.far > 4 || !this.view.model) return;
    const { x, y } = this.view.at(e);
    const i = this.view.model.nodeAt(x, y);
    this.view.focus(i, false);
    // A second click means the neighbourhood, so a click waits for it a moment.
    clearTimeout(this.clicked);
    if (i >= 0) this.clicked = setTimeout(() => this.view.on.open(i), 240);
  }

  twice(e) {
    clearTimeout(this.clicked);
    if (!this.view.model) return;
    const { x, y, px, py } = this.view.at(e);
    const i = this.view.model.nodeAt(x, y);
    if (i >= 0) this.view.on.neighbourhood(i);
    else this.view.zoom(1.6, px, py);
  }

  lookUnder(e) {
    if (!this.view.model || this.looking) return;
    this.looking = true;
    requestAnimationFrame(() => {
      this.looking = false;
      if (!this.view.model || this.pointers.size) return;
      const { x, y, px, py } = this.view.at(e);
      const i = this.view.model.nodeAt(x, y);
      this.view.hover(i, i < 0 ? this.view.model.edgeAt(x, y, 5 / this.view.scale) : -1, px, py);
    });
  }

  wheel(e) {
    e.preventDefault();
    const { px, py } = this.view.at(e);
    const step = e.deltaMode === 1 ? 18 : 1;
    if (e.ctrlKey || e.metaKey) this.view.zoom(Math.exp(-e.deltaY * step * 0.006), px, py);
    else if (e.shiftKey && !e.deltaX) this.view.pan(-e.deltaY * step, 0);
    else this.view.pan(-e.deltaX * step, -e.deltaY * step);
  }
}
