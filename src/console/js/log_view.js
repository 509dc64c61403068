// The lines that a job printed: from the end, followed while it runs, earlier ones on demand; searched, from error to
// error, with a link to each line, taken away as a file.

import { api, say } from './api.js';
import { t } from './i18n.js';
import { clean, levelOf } from './log_lines.js';
import { here } from './router.js';
import { button, check, h, input, linkButton, poll, put, select, settled, timeText } from './ui.js';

/** So many lines are shown at once; earlier ones make room for later ones. */
const MOST = 20000;
const PAGE = 1000;
const EARLIER = 5000;
const LAST = 999_999_999;

/**
 * `attempts`: the tries there are; `running()` says whether more may come; `line`: `2:117`, the attempt and the line
 * that is shown first.
 */
export function logView(with_) {
  const view = new LogView(with_);
  return {
    el: view.el,
    attempts: (next) => view.setAttempts(next),
    destroy: () => view.destroy(),
  };
}

class LogView {
  constructor({ at, attempts, running, line }) {
    this.at = at;
    this.all = attempts;
    this.running = running;
    const [attempt, number] = (line ?? '').split(':').map(Number);
    this.wanted = number > 0 && attempts.some((one) => one.attempt === attempt) ? number : null;
    this.attempt = this.wanted ? attempt : attempts.at(-1)?.attempt;
    this.follow = this.wanted === null;
    this.find = '';
    this.clear();
    this.build();
    if (this.attempt === undefined) this.drawWhich();
    else this.choose(this.attempt);
    this.end = poll(() => (this.over ? null : this.read()), 1500);
  }

  clear() {
    /** Numbers of the first and the last line that are shown. */
    this.first = null;
    this.last = null;
    this.isBegun = false;
    this.over = false;
    this.current = null;
  }

  build() {
    this.lines = h('div.log', {
      role: 'log',
      'aria-label': t('panel.log'),
      'aria-live': 'off',
      tabindex: '0',
      'data-test': 'log',
    });
    this.says = h('span.muted', { role: 'status', 'data-test': 'log-says' });
    this.file = h('span');
    this.which = h('span');
    const mark = (key, icon, step) =>
      button(t(`log.${key}`), { small: true, icon, test: `log-${key}`, onclick: () => this.toError(step) });
    this.errorCount = h('span');
    this.errors = h(
      'span.log-errors',
      { hidden: true },
      mark('prev_error', 'up', -1),
      mark('next_error', 'down', 1),
      this.errorCount,
    );
    this.before = h(
      'div.log-before',
      { hidden: true },
      button(t('log.earlier'), { small: true, icon: 'up', test: 'log-earlier', onclick: () => this.readEarlier() }),
    );
    this.follower = check({
      label: t('log.follow'),
      checked: this.follow,
      test: 'log-follow',
      onchange: (is) => {
        this.follow = is;
        if (is) this.toEnd();
      },
    });
    this.el = h(
      'div.log-view',
      h('div.filters', this.which, this.finder(), this.follower, this.wrapper(), h('span.spacer'), this.file),
      h('div.filters.log-marks', this.errors, this.says),
      this.lines,
    );
    this.lines.append(this.before);
    this.lines.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  finder() {
    return input({
      type: 'search',
      label: t('log.find'),
      placeholder: t('log.find'),
      test: 'log-find',
      oninput: settled(120, (words) => {
        this.find = words.toLowerCase();
        for (const line of this.shown()) this.mark(line);
        this.lines.querySelector('.log-hit')?.scrollIntoView({ block: 'center' });
        this.count();
      }),
    });
  }

  wrapper() {
    return check({
      label: t('log.wrap'),
      checked: true,
      test: 'log-wrap',
      onchange: (is) => this.lines.classList.toggle('log-nowrap', !is),
    });
  }

  shown() {
    return [...this.lines.querySelectorAll('.log-line')];
  }

  toEnd() {
    this.lines.scrollTop = this.lines.scrollHeight;
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.lines;
    if (scrollTop + clientHeight > scrollHeight - 24 || !this.follow || !this.running()) return;
    this.follow = false;
    this.follower.box.checked = false;
  }

  mark(line) {
    const hit = this.find !== '' && line.textContent.toLowerCase().includes(this.find);
    line.classList.toggle('log-hit', hit);
    line.classList.toggle('log-miss', this.find !== '' && !hit);
  }

  make(one) {
    const level = levelOf(one);
    const isSide = one.stream && !['stdout', 'out', 'stderr', 'err', 'error'].includes(one.stream);
    const line = h(
      'div.log-line',
      {
        class: level ? `log-${level}` : isSide ? 'log-side' : null,
        'data-line': String(one.line_no),
      },
      h(
        'a.log-no',
        { href: this.linkOf(one), title: t('log.link'), onclick: (e) => this.chooseLine(e, one) },
        one.line_no,
      ),
      h('span.log-at', { title: one.at }, one.at ? timeText(one.at, { seconds: true, date: false }) : ''),
      h('span.log-from', one.stream ?? ''),
      h('span.log-text', clean(one.text)),
    );
    if (this.find) this.mark(line);
    return line;
  }

  linkOf({ attempt, line_no: number }) {
    const { path, query } = here();
    query.set('line', `${attempt}:${number}`);
    return `#${path}?${query}`;
  }

  /** The address names the line; the page stays as it is. */
  chooseLine(event, one) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(null, '', this.linkOf(one));
    this.goTo(event.currentTarget.closest('.log-line'), false);
  }

  goTo(line, isScrolled = true) {
    this.current?.classList.remove('log-current');
    this.current = line;
    line.classList.add('log-current');
    this.follow = false;
    this.follower.box.checked = false;
    if (isScrolled) line.scrollIntoView({ block: 'center' });
  }

  /** Lines behind those that are shown; the first of them are dropped when there are too many. */
  append(items) {
    if (!items.length) return;
    this.lines.append(...items.map((one) => this.make(one)));
    this.first ??= items[0].line_no;
    this.last = items.at(-1).line_no;
    const all = this.lines.childElementCount - 1;
    if (all > MOST) {
      const gone = this.shown().slice(0, all - MOST);
      gone.forEach((line) => line.remove());
      this.first = Number(this.shown()[0].dataset.line);
      this.isBegun = false;
    }
    this.count();
    if (this.follow) this.toEnd();
  }

  /** Lines before those that are shown; what is read stays where it is. */
  prepend(items) {
    if (items.length < EARLIER) this.isBegun = true;
    if (items.length) {
      const height = this.lines.scrollHeight;
      this.before.after(...items.map((one) => this.make(one)));
      this.first = items[0].line_no;
      this.lines.scrollTop += this.lines.scrollHeight - height;
    }
    this.count();
  }

  count() {
    const n = this.lines.childElementCount - 1;
    const hits = this.find ? this.lines.querySelectorAll('.log-hit').length : null;
    const words = [t('log.n', { n })];
    if (!this.isBegun && n) words.push(t('log.from_line', { line: this.first }));
    if (hits !== null) words.push(t('log.hits', { n: hits }));
    this.says.textContent = n ? words.join(' · ') : t(this.running() ? 'log.none_yet' : 'log.none');
    this.before.hidden = this.isBegun || !n || n >= MOST;
    const errors = this.lines.querySelectorAll('.log-error').length;
    const isSure = this.isBegun || !n;
    this.errors.hidden = !errors && isSure;
    this.errorCount.className = errors ? 'late' : 'muted';
    this.errorCount.textContent = t(isSure ? 'log.errors' : 'log.errors_shown', { n: errors });
  }

  /** The next error behind or before the current line; earlier lines are fetched as long as there is none. */
  async toError(step) {
    for (;;) {
      const found = [...this.lines.querySelectorAll('.log-error')];
      const at = this.current ? Number(this.current.dataset.line) : step > 0 ? 0 : Infinity;
      const number = (line) => Number(line.dataset.line);
      const next = step > 0 ? found.find((line) => number(line) > at) : found.findLast((line) => number(line) < at);
      if (next) {
        this.goTo(next);
        return;
      }
      const isFull = this.lines.childElementCount > MOST;
      if (step > 0 || this.isBegun || isFull) {
        this.says.textContent = t('log.no_error');
        return;
      }
      await this.readEarlier();
    }
  }

  async readEarlier() {
    const mine = this.attempt;
    const page = await api.get(`${this.at}/log`, {
      attempt: mine,
      before: `${mine}:${this.first}`,
      limit: EARLIER,
    });
    if (!this.isEnded && mine === this.attempt) this.prepend(page.items);
  }

  /** Fetches the last lines first, then what comes behind them. */
  async read() {
    if (this.busy || this.isEnded || this.attempt === undefined) return;
    this.busy = true;
    const mine = this.attempt;
    const isOld = () => this.isEnded || mine !== this.attempt;
    try {
      if (this.last === null) {
        const from = this.wanted === null ? LAST : this.wanted + PAGE / 2;
        const page = await api.get(`${this.at}/log`, { attempt: mine, before: `${mine}:${from}`, limit: PAGE });
        if (isOld()) return;
        this.isBegun = page.items.length < PAGE;
        this.append(page.items);
        this.showWanted();
      }
      for (let turn = 0; turn < 40; turn += 1) {
        const after = this.last === null ? undefined : `${mine}:${this.last}`;
        const page = await api.get(`${this.at}/log`, { attempt: mine, after, limit: PAGE });
        if (isOld()) return;
        this.append(page.items);
        this.over = page.is_over && !page.next;
        if (!page.next) break;
      }
      if (this.last === null) this.count();
    } catch (error) {
      this.says.textContent = say(error);
    } finally {
      this.busy = false;
    }
  }

  showWanted() {
    if (this.wanted === null) return;
    const line = this.lines.querySelector(`[data-line="${this.wanted}"]`);
    this.wanted = null;
    if (line) this.goTo(line);
  }

  choose(next) {
    this.attempt = next;
    this.clear();
    put(this.lines, this.before);
    this.count();
    this.says.textContent = t('common.loading');
    put(
      this.file,
      linkButton(t('log.download'), api.href(`${this.at}/log.txt`, { attempt: next }), {
        icon: 'download',
        download: '',
      }),
    );
    this.drawWhich();
    this.busy = false;
    this.read();
  }

  drawWhich() {
    const { all, attempt } = this;
    put(
      this.which,
      all.length > 1
        ? select({
            label: t('job.start_no'),
            value: String(attempt),
            test: 'log-attempt',
            options: all.map((one) => [
              String(one.attempt),
              t('log.attempt', { n: one.attempt, status: t(`status.${one.status}`) }),
            ]),
            onchange: (chosen) => this.choose(Number(chosen)),
          })
        : h('span.muted', attempt === undefined ? t('log.not_started') : t('log.attempt_n', { n: attempt })),
    );
  }

  setAttempts(next) {
    const last = this.all.at(-1)?.attempt;
    this.all = next;
    // Who reads the newest start goes on with the one after it; who reads an old one is left there.
    if (this.attempt === last && next.at(-1)?.attempt !== last) this.choose(next.at(-1).attempt);
    else this.drawWhich();
  }

  destroy() {
    this.isEnded = true;
    this.end();
  }
}
