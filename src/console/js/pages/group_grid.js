// Jobs × batches: how each job ended in the last batches, and how long it took against its own rows.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { statusWord, statusClass } from '../status.js';
import { duration, empty, failed, glyph, h, loading, put, select, settled, uid } from '../ui.js';
import { Rows } from '../dag/rows.js';

const ROW = 30;

export function mount(el, ctx) {
  const grid = new JobGrid(el, ctx);
  grid.load();
  return {
    update: (states, changed) => grid.take(states, changed),
    destroy: () => grid.destroy(),
  };
}

class JobGrid {
  constructor(el, ctx) {
    this.ctx = ctx;
    this.id = uid('grid');
    this.batchCount = ctx.query?.get('batches') || '20';
    this.words = ctx.query?.get('q') || '';
    this.only = ctx.query?.get('show') || 'all';
    this.row = 0;
    this.col = 0;
    this.search = h('input.dg-search', {
      type: 'search',
      placeholder: t('grid.search'),
      'aria-label': t('grid.search'),
      value: this.words,
      'data-test': 'grid-search',
      oninput: settled(150, () => {
        this.words = this.search.value;
        ctx.setQuery?.({ q: this.words });
        this.sift();
      }),
    });
    this.note = h('span.muted', { 'aria-live': 'polite' });
    this.host = h('div.gr-host', loading());
    this.el = h(
      'div.gr',
      h(
        'div.dg-tools',
        this.search,
        select({
          label: t('grid.show'),
          value: this.only,
          test: 'grid-show',
          options: [
            ['all', t('grid.all')],
            ['bad', t('grid.bad')],
            ['slow', t('grid.slow')],
            ['changed', t('grid.changed')],
          ],
          onchange: (v) => {
            this.only = v;
            ctx.setQuery?.({ show: v === 'all' ? null : v });
            this.sift();
          },
        }),
        select({
          label: t('grid.batches'),
          value: this.batchCount,
          test: 'grid-batches',
          options: ['10', '20', '40', '60'].map((n) => [n, t('grid.last', { n: Number(n) })]),
          onchange: (v) => {
            this.batchCount = v;
            ctx.setQuery?.({ batches: v });
            this.load();
          },
        }),
        this.note,
      ),
      this.host,
    );
    el.append(this.el);
  }

  async load() {
    put(this.host, loading());
    try {
      const at = api.path`/groups/${this.ctx.group}/grid`;
      let got = await api.get(at, { batches: this.batchCount, limit: 2000 });
      this.batches = got.batches || [];
      let jobs = got.jobs || [];
      while (got.next && !this.ended) {
        got = await api.get(at, { batches: this.batchCount, limit: 2000, cursor: got.next });
        jobs = jobs.concat(got.jobs || []);
      }
      if (this.ended) return;
      this.jobs = jobs.map((job) => ({ ...job, cells: job.cells.map((cell) => (cell ? { ...cell } : cell)) }));
      this.jobs.forEach(measure);
      this.draw();
    } catch (error) {
      if (!this.ended)
        put(
          this.host,
          failed(error, () => this.load()),
        );
    }
  }

  draw() {
    this.rows?.destroy();
    if (!this.jobs.length || !this.batches.length) {
      put(this.host, empty({ title: t('grid.empty'), lead: t('grid.empty_lead') }));
      return;
    }
    const body = h('div.gr-body', { role: 'presentation' });
    const head = h(
      'div.gr-row.gr-head',
      { role: 'row', 'aria-rowindex': 1 },
      h('div.gr-name', { role: 'columnheader' }, t('grid.job')),
      this.batches.map((b) =>
        h(
          `div.gr-cell.${statusClass(b.status)}`,
          {
            role: 'columnheader',
            class: b.batch_no === this.ctx.no ? 'gr-here' : null,
            title: [b.batch_no, statusWord(b.status), b.duration_ms != null ? duration(b.duration_ms) : '']
              .filter(Boolean)
              .join(', '),
          },
          h(
            'a',
            {
              href: `#/batches/${encodeURIComponent(this.ctx.group)}/${encodeURIComponent(b.batch_no)}`,
              tabindex: '-1',
            },
            b.batch_no,
          ),
          glyph(b.status, 13),
        ),
      ),
    );
    this.scroller = h(
      'div.gr-scroll',
      {
        role: 'grid',
        tabindex: '0',
        'aria-label': t('grid.label', { group: this.ctx.group }),
        'aria-rowcount': this.jobs.length + 1,
        'aria-colcount': this.batches.length + 1,
        'data-test': 'grid',
        onkeydown: (e) => this.key(e),
        onclick: (e) => this.click(e),
        onfocus: () => this.mark(),
      },
      head,
      body,
    );
    put(this.host, this.scroller, h('p.gr-legend.muted', t('grid.legend')));
    this.host.style.setProperty('--gr-cols', String(this.batches.length));
    this.rows = new Rows({ scroller: this.scroller, body, height: ROW, draw: (i) => this.line(i) });
    this.tall();
    this.sift();
  }

  tall() {
    const top = this.scroller.getBoundingClientRect().top + window.scrollY;
    this.scroller.style.maxHeight = `${Math.max(320, window.innerHeight * 0.68, window.innerHeight - top - 56)}px`;
  }

  sift() {
    if (!this.rows) return;
    const words = this.words.trim().toLowerCase();
    this.seen = this.jobs.filter((job) => {
      if (words && !`${job.job_code} ${job.job_name || ''} ${(job.tags || []).join(' ')}`.toLowerCase().includes(words))
        return false;
      if (this.only === 'bad')
        return job.cells.some(
          (c) => c && ['FAILED', 'TIMEOUT', 'UNKNOWN', 'KILLED', 'UPSTREAM_FAILED'].includes(c.status),
        );
      if (this.only === 'slow') return job.cells.some((c) => c && c.heat >= 1.5);
      if (this.only === 'changed') return new Set(job.cells.filter(Boolean).map((c) => c.status)).size > 1;
      return true;
    });
    this.row = Math.min(this.row, Math.max(0, this.seen.length - 1));
    this.note.textContent = t('grid.counted', { n: this.seen.length, all: this.jobs.length });
    this.rows.set(this.seen.length);
    this.mark();
  }

  line(i) {
    const job = this.seen[i];
    return h(
      'div.gr-row',
      { role: 'row', 'aria-rowindex': i + 2, 'data-row': i },
      h(
        'div.gr-name',
        { role: 'rowheader', title: job.job_name || job.job_code },
        h('span.gr-code', job.job_code),
        job.job_name && job.job_name !== job.job_code && h('span.muted', job.job_name),
      ),
      this.batches.map((b, c) => this.cell(job, b, i, c)),
    );
  }

  cell(job, b, i, c) {
    const cell = job.cells[c];
    const here = i === this.row && c === this.col ? 'gr-at' : null;
    const id = `${this.id}-${i}-${c}`;
    if (!cell || !cell.status)
      return h(
        'div.gr-cell.gr-none',
        {
          role: 'gridcell',
          id,
          'data-col': c,
          class: here,
          'aria-label': t('grid.none_in', { job: job.job_code, no: b.batch_no }),
        },
        '·',
      );
    const words = [
      job.job_code,
      b.batch_no,
      statusWord(cell.status),
      cell.duration_ms != null ? duration(cell.duration_ms) : '',
      cell.attempt > 1 ? t('dag.attempt', { n: cell.attempt }) : '',
    ]
      .filter(Boolean)
      .join(', ');
    const heat = cell.heat >= 2 ? 'gr-hot' : cell.heat >= 1.5 ? 'gr-warm' : null;
    return h(
      `div.gr-cell.${statusClass(cell.status)}`,
      {
        role: 'gridcell',
        id,
        'data-col': c,
        class: [here, heat].filter(Boolean).join(' ') || null,
        'aria-label': words,
        title: words,
      },
      glyph(cell.status, 14),
      cell.attempt > 1 && h('sup', cell.attempt),
      cell.share > 0 && h('i.gr-bar', { css: { width: `${Math.max(6, Math.round(cell.share * 100))}%` } }),
    );
  }

  mark() {
    this.scroller.querySelectorAll('.gr-at').forEach((x) => x.classList.remove('gr-at'));
    const at = document.getElementById(`${this.id}-${this.row}-${this.col}`);
    at?.classList.add('gr-at');
    if (at) this.scroller.setAttribute('aria-activedescendant', at.id);
    return at;
  }

  key(e) {
    const step = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [15, 0],
      PageUp: [-15, 0],
    }[e.key];
    if (step || e.key === 'Home' || e.key === 'End') {
      e.preventDefault();
      if (step) {
        this.row = Math.max(0, Math.min(this.seen.length - 1, this.row + step[0]));
        this.col = Math.max(0, Math.min(this.batches.length - 1, this.col + step[1]));
      } else if (e.ctrlKey) this.row = e.key === 'Home' ? 0 : this.seen.length - 1;
      else this.col = e.key === 'Home' ? 0 : this.batches.length - 1;
      this.rows.reveal(this.row, 34);
      this.mark()?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
    if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      this.open();
    }
  }

  click(e) {
    const cell = e.target.closest('[data-col]');
    const row = e.target.closest('[data-row]');
    if (!row || e.target.closest('a')) return;
    this.row = Number(row.dataset.row);
    if (!cell) {
      go(`/jobs/${encodeURIComponent(`${this.ctx.group}.${this.seen[this.row].job_code}`)}`);
      return;
    }
    this.col = Number(cell.dataset.col);
    this.mark();
    this.open();
  }

  open() {
    const job = this.seen[this.row],
      batch = this.batches[this.col];
    if (!job?.cells[this.col]?.status) return;
    if (batch.batch_no === this.ctx.no && this.ctx.openJob) this.ctx.openJob(job.job_code);
    else
      go(
        `/batches/${encodeURIComponent(this.ctx.group)}/${encodeURIComponent(batch.batch_no)}?job=${encodeURIComponent(job.job_code)}`,
      );
  }

  /** The column of the batch that is open follows its events. */
  take(states, changed) {
    if (!this.jobs) return;
    const col = this.batches.findIndex((b) => b.batch_no === this.ctx.no);
    if (col < 0) return;
    let any = false;
    for (const job of this.jobs) {
      if (changed && changed.size && !changed.has(job.job_code)) continue;
      const now = states.get(job.job_code);
      if (
        !now ||
        (job.cells[col] && job.cells[col].status === now.status && job.cells[col].duration_ms === now.duration_ms)
      )
        continue;
      job.cells[col] = { ...job.cells[col], status: now.status, duration_ms: now.duration_ms, attempt: now.attempt };
      measure(job);
      any = true;
    }
    if (any && this.rows) {
      this.rows.again();
      this.mark();
    }
  }

  destroy() {
    this.ended = true;
    this.rows?.destroy();
    this.el.remove();
  }
}

/** Share of the longest run of the row, and how many times the row's median each took. */
function measure(job) {
  const took = job.cells
    .filter((c) => c && c.duration_ms > 0)
    .map((c) => c.duration_ms)
    .sort((a, b) => a - b);
  const longest = took[took.length - 1] || 0;
  const median = took[Math.floor((took.length - 1) / 2)] || 0;
  for (const cell of job.cells) {
    if (!cell) continue;
    cell.share = longest && cell.duration_ms > 0 ? cell.duration_ms / longest : 0;
    // Below a second a factor says nothing.
    cell.heat = took.length > 2 && median > 0 && cell.duration_ms > 1000 ? cell.duration_ms / median : 0;
  }
}
