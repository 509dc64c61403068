// The lines that a job printed: followed while it runs, searched, taken away as a file. Colours of terminals are
// cut out.

import { api, say } from './api.js';
import { t } from './i18n.js';
import { check, h, input, linkButton, poll, put, select, settled, timeText } from './ui.js';

const MOST = 5000;
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

/** A line without the colours of terminals and without signs that turn text round. */
export const clean = (text) =>
  String(text ?? '')
    .replace(ESCAPES, '')
    .replace(CONTROLS, '·');

/** `attempts`: the tries there are; `running()` says whether more may come. */
export function logView({ at, attempts, running }) {
  let all = attempts;
  let attempt = all.at(-1)?.attempt;
  let after;
  let follow = true;
  let ended = false;
  let find = '';
  let count = 0;
  let busy = false;
  let over = false;
  const lines = h('div.log', {
    role: 'log',
    'aria-label': t('panel.log'),
    'aria-live': 'off',
    tabindex: '0',
    'data-test': 'log',
  });
  const says = h('span.muted', { role: 'status' });
  const follower = check({
    label: t('log.follow'),
    checked: true,
    test: 'log-follow',
    onchange: (v) => {
      follow = v;
      if (v) lines.scrollTop = lines.scrollHeight;
    },
  });
  const file = h('span');
  const which = h('span');
  const el = h(
    'div.log-view',
    h(
      'div.filters',
      which,
      input({
        type: 'search',
        label: t('log.find'),
        placeholder: t('log.find'),
        test: 'log-find',
        oninput: settled(120, (q) => {
          find = q.toLowerCase();
          for (const line of lines.querySelectorAll('.log-line')) mark(line);
          lines.querySelector('.log-hit')?.scrollIntoView({ block: 'center' });
        }),
      }),
      follower,
      says,
      h('span.spacer'),
      file,
    ),
    lines,
  );

  const mark = (line) => {
    const hit = find !== '' && line.textContent.toLowerCase().includes(find);
    line.classList.toggle('log-hit', hit);
    line.classList.toggle('log-miss', find !== '' && !hit);
  };

  function draw(items) {
    for (const one of items) {
      const text = clean(one.text);
      const line = h(
        'div.log-line',
        {
          class: ['stderr', 'err', 'error'].includes(one.stream)
            ? 'log-err'
            : one.stream && one.stream !== 'stdout' && one.stream !== 'out'
              ? 'log-side'
              : null,
        },
        h('span.log-at', { title: one.at }, one.at ? timeText(one.at, { seconds: true, date: false }) : ''),
        h('span.log-from', one.stream ?? ''),
        h('span.log-text', text),
      );
      if (find) mark(line);
      lines.append(line);
    }
    count += items.length;
    while (lines.childElementCount > MOST) lines.firstElementChild.remove();
    says.textContent = count > MOST ? t('log.last_n', { n: MOST, all: count }) : t('log.n', { n: count });
    if (follow && items.length) lines.scrollTop = lines.scrollHeight;
  }

  async function read() {
    if (busy || ended || attempt === undefined) return;
    busy = true;
    const mine = attempt;
    try {
      for (let turn = 0; turn < 40; turn += 1) {
        const page = await api.get(`${at}/log`, { attempt, after, limit: 500 });
        if (ended || mine !== attempt) return;
        const { items } = page;
        if (items.length) draw(items);
        after = page.next ?? page.last ?? after;
        over = page.is_over && !page.next;
        if (!page.next) break;
      }
      if (count === 0) says.textContent = t(running() ? 'log.none_yet' : 'log.none');
    } catch (error) {
      says.textContent = say(error);
    } finally {
      busy = false;
    }
  }

  function choose(next) {
    attempt = next;
    after = undefined;
    count = 0;
    over = false;
    put(lines);
    put(
      file,
      linkButton(t('log.download'), api.href(`${at}/log.txt`, { attempt }), { icon: 'download', download: '' }),
    );
    drawWhich();
    read();
  }
  function drawWhich() {
    put(
      which,
      all.length > 1
        ? select({
            label: t('job.start_no'),
            value: String(attempt),
            test: 'log-attempt',
            options: all.map((a) => [
              String(a.attempt),
              t('log.attempt', { n: a.attempt, status: t(`status.${a.status}`) }),
            ]),
            onchange: (v) => choose(Number(v)),
          })
        : h('span.muted', attempt === undefined ? t('log.not_started') : t('log.attempt_n', { n: attempt })),
    );
  }
  lines.addEventListener(
    'scroll',
    () => {
      const low = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 24;
      if (!low && follow && running()) {
        follow = false;
        follower.box.checked = false;
      }
    },
    { passive: true },
  );
  if (attempt === undefined) drawWhich();
  else choose(attempt);
  const end = poll(() => (over ? null : read()), 1500);
  return {
    el,
    attempts(next) {
      const last = all.at(-1)?.attempt;
      all = next;
      // Who reads the newest start goes on with the one after it; who reads an old one is left there.
      if (attempt === last && all.at(-1)?.attempt !== last) choose(all.at(-1).attempt);
      else drawWhich();
    },
    destroy() {
      ended = true;
      end();
    },
  };
}
