// When each job ran, and when it was expected to.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { statusWord, statusClass } from '../status.js';
import {
  addIcons,
  button,
  duration,
  empty,
  failed,
  glyph,
  h,
  loading,
  poll,
  put,
  select,
  settled,
  timeText,
  uid,
} from '../ui.js';
import { Rows } from '../dag/rows.js';

addIcons({ 'dag-minus': 'M2.5 8h11' });
const ROW = 26;
const NAME = innerWidth < 700 ? 128 : 230;
const STEPS = [1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 216e5, 432e5, 864e5];

export function mount(el, ctx) {
  const gantt = new Gantt(el, ctx);
  gantt.load();
  return { update: (states, changed) => gantt.take(states, changed), destroy: () => gantt.destroy() };
}

class Gantt {
  constructor(el, ctx) {
    this.ctx = ctx;
    this.id = uid('gantt');
    this.zoom = 1;
    this.row = 0;
    this.order = ctx.query?.get('order') || 'start';
    this.critical = false;
    this.words = '';
    this.search = h('input.dg-search', {
      type: 'search',
      placeholder: t('grid.search'),
      'aria-label': t('grid.search'),
      'data-test': 'gantt-search',
      oninput: settled(150, () => {
        this.words = this.search.value;
        this.sift();
      }),
    });
    this.only = button(t('dag.critical'), {
      kind: 'quiet',
      pressed: false,
      test: 'gantt-critical',
      title: t('gantt.critical_title'),
      onclick: () => {
        this.critical = !this.critical;
        this.only.setAttribute('aria-pressed', String(this.critical));
        this.sift();
      },
    });
    this.note = h('span.muted', { 'aria-live': 'polite' });
    this.host = h('div.gt-host', loading());
    this.el = h(
      'div.gt',
      h(
        'div.dg-tools',
        this.search,
        select({
          label: t('gantt.order'),
          value: this.order,
          test: 'gantt-order',
          options: [
            ['start', t('gantt.by_start')],
            ['late', t('gantt.by_late')],
            ['long', t('gantt.by_long')],
            ['code', t('gantt.by_code')],
          ],
          onchange: (v) => {
            this.order = v;
            ctx.setQuery?.({ order: v === 'start' ? null : v });
            this.sift();
          },
        }),
        this.only,
        h(
          'div.dg-bar',
          button(t('dag.zoom_out'), {
            kind: 'quiet',
            icon: 'dag-minus',
            iconOnly: true,
            test: 'gantt-out',
            onclick: () => this.scale(this.zoom / 1.5),
          }),
          button(t('dag.zoom_in'), {
            kind: 'quiet',
            icon: 'plus',
            iconOnly: true,
            test: 'gantt-in',
            onclick: () => this.scale(this.zoom * 1.5),
          }),
          button(t('dag.fit'), { kind: 'quiet', test: 'gantt-fit', onclick: () => this.scale(1) }),
          button(t('gantt.now'), { kind: 'quiet', test: 'gantt-now', onclick: () => this.toNow() }),
        ),
        this.note,
      ),
      this.host,
    );
    el.append(this.el);
  }

  async load() {
    try {
      const got = await api.get(api.path`/groups/${this.ctx.group}/batches/${this.ctx.no}/gantt`);
      if (this.ended) return;
      this.read(got);
      this.draw();
      this.beat ??= poll(() => this.tick(), 5000);
    } catch (error) {
      if (!this.ended)
        put(
          this.host,
          failed(error, () => this.load()),
        );
    }
  }

  read(got) {
    this.items = (got.items || []).map(read);
    this.due = ms(got.due);
    this.opened = ms(got.opened);
  }

  draw() {
    this.rows?.destroy();
    if (!this.items.some((i) => i.start || i.plannedStart || i.expectedStart)) {
      put(this.host, empty({ title: t('gantt.empty'), lead: t('gantt.empty_lead') }));
      this.rows = null;
      return;
    }
    this.axis = h('div.gt-axis', { 'aria-hidden': 'true' });
    this.nowEl = h('div.gt-now', { 'aria-hidden': 'true' });
    const body = h('div.gt-body', { role: 'presentation' });
    this.dueEl = h('div.gt-due-line', { 'aria-hidden': 'true', title: t('gantt.due') });
    this.canvas = h('div.gt-canvas', { role: 'presentation' }, body, this.dueEl, this.nowEl);
    this.scroller = h(
      'div.gt-scroll',
      {
        role: 'listbox',
        tabindex: '0',
        'aria-label': t('gantt.label'),
        'data-test': 'gantt',
        onkeydown: (e) => this.key(e),
        onclick: (e) => {
          const row = e.target.closest('[data-row]');
          if (row) {
            this.row = Number(row.dataset.row);
            this.mark();
            this.ctx.openJob?.(this.seen[this.row].job);
          }
        },
        onwheel: (e) => {
          if (e.ctrlKey || e.metaKey) {
            e.preventDefault();
            this.scale(this.zoom * Math.exp(-e.deltaY * 0.003), e.clientX);
          }
        },
      },
      h('div.gt-head', { role: 'presentation' }, h('div.gt-name', t('grid.job')), this.axis),
      this.canvas,
    );
    this.host.style.setProperty('--gt-name', `${NAME}px`);
    put(
      this.host,
      this.scroller,
      h(
        'div.gt-legend',
        h('span', h('i.gt-l-planned'), t('gantt.planned')),
        h('span', h('i.gt-l-actual'), t('gantt.actual')),
        h('span', h('i.gt-l-critical'), t('dag.critical')),
        h('span', h('i.gt-l-expected'), t('gantt.expected')),
        h('span', h('i.gt-l-now'), t('gantt.now_line')),
        this.due && h('span', h('i.gt-l-due'), t('gantt.due')),
        h('span.dg-hint', t('gantt.hint')),
      ),
    );
    this.rows = new Rows({ scroller: this.scroller, body, height: ROW, draw: (i) => this.line(i) });
    const top = this.scroller.getBoundingClientRect().top + window.scrollY;
    this.scroller.style.maxHeight = `${Math.max(300, window.innerHeight * 0.68, window.innerHeight - top - 60)}px`;
    this.watch?.disconnect();
    let was = 0;
    this.watch = new ResizeObserver(() => {
      if (this.scroller.clientWidth !== was) {
        was = this.scroller.clientWidth;
        this.layout();
      }
    });
    this.watch.observe(this.scroller);
    this.sift();
  }

  sift() {
    if (!this.rows) return;
    const words = this.words.trim().toLowerCase();
    this.seen = this.items.filter(
      (i) => (!this.critical || i.critical) && (!words || `${i.job} ${i.name || ''}`.toLowerCase().includes(words)),
    );
    const first = (i) => i.start ?? i.expectedStart ?? i.plannedStart ?? Infinity;
    const by = {
      start: (a, b) => first(a) - first(b) || a.job.localeCompare(b.job),
      late: (a, b) => late(b) - late(a),
      code: (a, b) => a.job.localeCompare(b.job, undefined, { numeric: true }),
      long: (a, b) => long(b) - long(a),
    };
    this.seen.sort(by[this.order] || by.start);
    this.row = Math.min(this.row, Math.max(0, this.seen.length - 1));
    this.note.textContent = t('grid.counted', { n: this.seen.length, all: this.items.length });
    this.layout();
  }

  /** From when to when, and how wide. */
  layout() {
    if (!this.rows || !this.seen) return;
    const now = Date.now();
    let from = Infinity,
      to = -Infinity;
    for (const i of this.items) {
      for (const at of [i.start, i.plannedStart, i.expectedStart, i.attempts[0]?.start])
        if (at) from = Math.min(from, at);
      for (const at of [i.end, i.plannedEnd, i.expectedEnd, i.start && !i.end ? now : null])
        if (at) to = Math.max(to, at);
    }
    if (!(to > from)) to = from + 1000;
    if (this.due && this.due > from && this.due < to + (to - from)) to = Math.max(to, this.due);
    this.from = from - (to - from) * 0.01;
    this.to = to + (to - from) * 0.02;
    const room = Math.max(200, this.scroller.clientWidth - NAME - 4);
    this.px = (room * this.zoom) / (this.to - this.from);
    this.canvas.style.width = this.axis.parentElement.style.width = `${NAME + room * this.zoom}px`;
    this.ticks();
    this.nowAt();
    this.rows.set(this.seen.length);
    this.mark();
  }

  ticks() {
    const step = STEPS.find((s) => s * this.px >= 90) || 864e5;
    const ticks = [];
    const zone = new Date(this.from).getTimezoneOffset() * 6e4;
    let at = Math.ceil((this.from - zone) / step) * step + zone;
    for (; at < this.to && ticks.length < 3000; at += step) {
      ticks.push(
        h(
          'span.gt-tick',
          { css: { left: `${(at - this.from) * this.px}px` } },
          timeText(at, { seconds: step < 6e4, date: step >= 864e5 }),
        ),
      );
    }
    put(this.axis, ticks);
    this.canvas.style.setProperty('--gt-step', `${step * this.px}px`);
    this.canvas.style.setProperty('--gt-off', `${NAME + (ticks.length ? parseFloat(ticks[0].style.left) : 0)}px`);
  }

  nowAt() {
    const now = Date.now();
    this.nowEl.hidden = now < this.from || now > this.to;
    this.dueEl.hidden = !this.due || this.due > this.to;
    if (this.due) this.dueEl.style.left = `${NAME + (this.due - this.from) * this.px}px`;
    this.nowEl.style.left = `${NAME + (now - this.from) * this.px}px`;
  }

  line(i) {
    const item = this.seen[i];
    const bar = (cls, from, to, attrs) =>
      from &&
      h(`i.gt-bar.${cls}`, {
        ...attrs,
        css: { left: `${(from - this.from) * this.px}px`, width: `${Math.max(3, ((to ?? from) - from) * this.px)}px` },
      });
    const end = item.end ?? (item.start ? Date.now() : null);
    const words = [
      item.job,
      item.name,
      statusWord(item.status),
      item.start
        ? t('gantt.ran', {
            from: timeText(item.start, { seconds: true }),
            to: item.end ? timeText(item.end, { seconds: true }) : t('gantt.still'),
            length: duration(end - item.start),
          })
        : '',
      item.plannedStart
        ? t('gantt.was_planned', {
            from: timeText(item.plannedStart, { seconds: true }),
            to: timeText(item.plannedEnd, { seconds: true }),
            length: duration(item.plannedEnd - item.plannedStart),
          })
        : '',
      !item.start && item.expectedStart
        ? t('gantt.is_expected', { from: timeText(item.expectedStart), to: timeText(item.expectedEnd) })
        : '',
      item.due ? t('gantt.is_due', { at: timeText(item.due) }) : '',
      item.attempts.length > 1 ? t('gantt.tries', { n: item.attempts.length }) : '',
      item.critical ? t('dag.critical') : '',
    ]
      .filter(Boolean)
      .join(', ');
    return h(
      'div.gt-row',
      {
        role: 'option',
        id: `${this.id}-${i}`,
        'data-row': i,
        'aria-label': words,
        'aria-selected': i === this.row ? 'true' : 'false',
        'aria-posinset': i + 1,
        'aria-setsize': this.seen.length,
        title: words,
        class: [item.critical && 'gt-critical', i === this.row && 'gt-at'].filter(Boolean).join(' ') || null,
      },
      h('div.gt-name', glyph(item.status, 13), h('span', item.job)),
      h(
        'div.gt-line',
        bar('gt-planned', item.plannedStart, item.plannedEnd),
        !item.end && bar('gt-expected', item.start ? null : item.expectedStart, item.expectedEnd),
        item.attempts
          .filter((one) => one.start !== item.start)
          .map((one) => bar(`gt-try.${statusClass(one.status)}`, one.start, one.end)),
        bar(`gt-actual.${statusClass(item.status)}`, item.start, end),
        item.due &&
          h('i.gt-due', {
            css: { left: `${(item.due - this.from) * this.px}px` },
            class: (item.end ?? Date.now()) > item.due ? 'gt-late' : null,
          }),
        item.start &&
          h('span.gt-took', {
            'data-took': duration(end - item.start),
            css: { left: `${(Math.max(end, item.plannedEnd || 0) - this.from) * this.px + 6}px` },
          }),
      ),
    );
  }

  mark() {
    this.scroller.querySelectorAll('.gt-at').forEach((x) => {
      x.classList.remove('gt-at');
      x.setAttribute('aria-selected', 'false');
    });
    const at = document.getElementById(`${this.id}-${this.row}`);
    if (!at) return;
    at.classList.add('gt-at');
    at.setAttribute('aria-selected', 'true');
    this.scroller.setAttribute('aria-activedescendant', at.id);
  }

  key(e) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[e.key];
    const last = this.seen.length - 1;
    const go = (row) => {
      e.preventDefault();
      this.row = Math.max(0, Math.min(last, row));
      this.rows.reveal(this.row, 34);
      this.mark();
    };
    if (step) go(this.row + step);
    else if (e.key === 'Home') go(0);
    else if (e.key === 'End') go(last);
    else if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') {
      e.preventDefault();
      this.scroller.scrollLeft += e.key === 'ArrowLeft' ? -120 : 120;
    } else if (e.key === '+' || e.key === '=') this.scale(this.zoom * 1.5);
    else if (e.key === '-') this.scale(this.zoom / 1.5);
    else if (e.key === '0') this.scale(1);
    else if (e.key === 'Enter' && this.seen[this.row]) {
      e.preventDefault();
      this.ctx.openJob?.(this.seen[this.row].job);
    }
  }

  scale(zoom, clientX) {
    if (!this.rows) return;
    const next = Math.max(1, Math.min(400, zoom));
    const box = this.scroller.getBoundingClientRect();
    const x = clientX === undefined ? (this.scroller.clientWidth - NAME) / 2 : clientX - box.left - NAME;
    const at = (this.scroller.scrollLeft + x) / this.px;
    this.zoom = next;
    this.layout();
    this.scroller.scrollLeft = at * this.px - x;
  }

  toNow() {
    if (!this.rows) return;
    this.scroller.scrollLeft =
      (Math.min(Date.now(), this.to) - this.from) * this.px - (this.scroller.clientWidth - NAME) * 0.7;
  }

  tick() {
    if (!this.rows || !this.items.some((i) => i.start && !i.end)) return;
    if (Date.now() > this.to) this.layout();
    else {
      this.nowAt();
      this.rows.again();
      this.mark();
    }
  }

  take(states, changed) {
    if (!this.items) return;
    let begun = false;
    const all = new Map(this.items.map((i) => [i.job, i]));
    for (const code of changed && changed.size ? changed : states.keys()) {
      const item = all.get(code),
        now = states.get(code);
      if (!item || !now) continue;
      if (now.status) item.status = now.status;
      if (now.start_time !== undefined) item.start = ms(now.start_time);
      if (now.end_time !== undefined) item.end = ms(now.end_time);
      begun = true;
    }
    if (!begun) return;
    // What is planned changes with every end; the server knows.
    this.again ??= settled(3000, () => this.load0());
    this.again();
    if (this.rows) this.sift();
    else this.draw();
  }

  async load0() {
    try {
      const got = await api.get(api.path`/groups/${this.ctx.group}/batches/${this.ctx.no}/gantt`);
      if (this.ended) return;
      this.read(got);
      if (this.rows) this.sift();
      else this.draw();
    } catch {
      // The next event asks again.
    }
  }

  destroy() {
    this.ended = true;
    this.beat?.();
    this.watch?.disconnect();
    this.rows?.destroy();
    this.el.remove();
  }
}

const ms = (at) => (at ? Date.parse(at) : null);
const long = (i) => (i.start ? (i.end ?? Date.now()) - i.start : 0);
const late = (i) => (i.plannedEnd && i.start ? (i.end ?? Date.now()) - i.plannedEnd : -Infinity);

function read(item) {
  return {
    job: item.job ?? item.job_code,
    name: item.job_name ?? item.name,
    status: item.status,
    critical: Boolean(item.critical),
    start: ms(item.start),
    end: ms(item.end),
    plannedStart: ms(item.planned_start),
    plannedEnd: ms(item.planned_end),
    expectedStart: ms(item.expected_start),
    expectedEnd: ms(item.expected_end),
    due: ms(item.due),
    attempts: (item.attempts ?? []).map((one) => ({ start: ms(one.start), end: ms(one.end), status: one.status })),
  };
}
