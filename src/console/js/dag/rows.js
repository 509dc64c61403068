// Many rows of one height, of which only those in sight exist.

import { h, put } from '../ui/dom.js';

const BEYOND = 8;

/**
 * `scroller` scrolls and holds `body`; `draw(i)` makes the row at a place. The rows stand in a box as
 * high as all of them, moved to where they belong.
 */
export class Rows {
  constructor({ scroller, body, height, draw }) {
    Object.assign(this, { scroller, body, height, draw });
    this.count = 0;
    this.from = this.to = -1;
    this.window = h('div.vr-window');
    put(body, this.window);
    this.onScroll = () => this.show();
    scroller.addEventListener('scroll', this.onScroll, { passive: true });
    this.watch = new ResizeObserver(() => this.show());
    this.watch.observe(scroller);
  }

  set(count) {
    this.count = count;
    this.body.style.height = `${count * this.height}px`;
    this.again();
  }

  again() {
    this.from = this.to = -1;
    this.show();
  }

  show() {
    const from = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - BEYOND);
    const to = Math.min(
      this.count,
      Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / this.height) + BEYOND,
    );
    if (from === this.from && to === this.to) return;
    this.from = from;
    this.to = to;
    const rows = [];
    for (let i = from; i < to; i++) rows.push(this.draw(i));
    put(this.window, rows);
    this.window.style.transform = `translateY(${from * this.height}px)`;
  }

  /** Scrolls so that a row is seen; `above` pixels are covered by a head that stays. */
  reveal(i, above = 0) {
    const top = i * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight - above)
      this.scroller.scrollTop = top + this.height - clientHeight + above + 4;
    this.show();
  }

  destroy() {
    this.scroller.removeEventListener('scroll', this.onScroll);
    this.watch.disconnect();
  }
}
