// The wallboard: for a screen that people look at from afar. What needs attention stands first and large; it renews
// itself and needs no pointer.

import { api, live } from '../api.js';
import { t } from '../i18n.js';
import { to } from '../router.js';
import { button, duration, h, icon, num, poll, put, settled, shown, time, timeText, zoneName } from '../ui.js';
import { standingBadge } from './insight_words.js';

/** So many batches are shown; the rest is counted. */
const MOST = 14;
const COUNTED = [
  ['late', 'bad'],
  ['failed', 'bad'],
  ['will_be_late', 'warn'],
  ['at_risk', 'warn'],
  ['on_time', 'good'],
  ['met', 'good'],
];

export async function mount(el, ctx) {
  ctx.title(t('wall.title'));
  document.body.classList.add('is-wall');
  const group = ctx.query?.get('group') ?? '';
  const body = h('div.wall');
  put(el, body);
  const read = () => api.get('/insights/deadlines', { hours: 24, group: group || undefined });
  await shown(body, read, (got) => {
    put(body, board(got));
    return undefined;
  });
  const again = settled(700, async () => {
    const got = await read().catch(() => null);
    // A board that is no longer true says so.
    body.classList.toggle('wall-old', !got);
    if (got) put(body, board(got));
  });
  const ends = [live({}, { batch: again, job: again, gap: again }), poll(again, 30000)];
  return {
    destroy() {
      document.body.classList.remove('is-wall');
      ends.forEach((end) => end());
    },
  };
}

const board = (got) => {
  const items = got.items.filter((one) => one.standing !== 'no_deadline' || one.status === 'RUNNING');
  const rest = got.items.length - Math.min(items.length, MOST);
  return [
    h(
      'header.wall-head',
      h('h1', { tabindex: '-1' }, t('wall.title')),
      h('p.wall-clock', timeText(got.now, { date: true }), ' ', h('span.muted', zoneName())),
      button(t('wall.full'), {
        kind: 'quiet',
        icon: 'external',
        test: 'wall-full',
        onclick: () =>
          document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen(),
      }),
      h('a.btn', { href: '#/insights', 'data-test': 'wall-leave' }, t('wall.leave')),
    ),
    h(
      'ul.wall-counts',
      { 'data-test': 'wall-counts' },
      COUNTED.map(([standing, kind]) => {
        const n = got.counts[standing] ?? 0;
        return h(
          'li',
          { class: n ? `wall-${kind}` : 'wall-none', 'data-standing': standing },
          h('strong', num(n)),
          h('span', t(`standing.${standing}`)),
        );
      }),
    ),
    items.length
      ? h('ol.wall-list', { 'data-test': 'wall-list' }, items.slice(0, MOST).map(row))
      : h('p.wall-quiet', icon('check', 28), t('wall.quiet')),
    rest > 0 ? h('p.muted', t('wall.rest', { n: rest })) : null,
  ];
};

const row = (one) =>
  h(
    'li',
    { class: `wall-row wall-row-${one.standing}` },
    standingBadge(one.standing),
    h(
      'a.strong',
      { href: one.batch_no ? to`/batches/${one.group}/${one.batch_no}` : to`/groups/${one.group}` },
      one.name,
    ),
    h('span', one.batch_no ?? t('wall.planned', { at: timeText(one.start) })),
    h('span', one.due ? [t('in.due'), ' ', time(one.due)] : ''),
    h(
      'span',
      one.late_by_ms !== null
        ? t('wall.late_by', { by: duration(one.late_by_ms) })
        : one.expected_end
          ? ['≈ ', time(one.expected_end)]
          : '',
    ),
  );
