// States of jobs and batches: a word, a colour and a mark each, so that no state is told by colour alone.

import { t, has } from './i18n.js';
import { h, s } from './ui/dom.js';

// What a mark is: an outline or a filled shape, and lines or a fill on it.
const RING = 'M8 1.6a6.4 6.4 0 1 0 0 12.8A6.4 6.4 0 0 0 8 1.6';
const BOX =
  'M3 1.8h10a1.2 1.2 0 0 1 1.2 1.2v10a1.2 1.2 0 0 1-1.2 1.2H3A1.200 1.200 0 0 1 1.800 13V3A1.200 1.200 0 0 1 3 1.800';
const OCTAGON = 'M5 1.400h6L14.600 5v6L11 14.600H5L1.400 11V5z';
const DIAMOND = 'M8 1 15 8l-7 7-7-7z';
const TRIANGLE = 'M8 1.400 15.200 14.200H.8z';

/**
 * Mark by state. `rank`: the worst first, as lists sort them; `solid`: the shape is filled. `letter` is for where
 * only a letter fits.
 */
export const GLYPHS = {
  FAILED: {
    rank: 0,
    shape: OCTAGON,
    solid: true,
    lines: 'M5.400 5.400l5.200 5.200M10.600 5.400l-5.200 5.200',
    letter: 'F',
  },
  TIMEOUT: { rank: 1, shape: OCTAGON, solid: true, lines: 'M8 4.500V8.300l2.500 1.500', letter: 'T' },
  UNKNOWN: {
    rank: 2,
    shape: DIAMOND,
    solid: true,
    lines: 'M6.300 6.300a1.800 1.800 0 1 1 2.400 1.700c-.5.2-.7.5-.7 1M8 11.200v.01',
    letter: '?',
  },
  KILLED: { rank: 3, shape: BOX, solid: true, lines: 'M5.500 5.500h5v5h-5z', letter: 'K' },
  KILLING: { rank: 4, shape: BOX, solid: false, lines: 'M5.500 5.500h5v5h-5z', letter: 'K' },
  UPSTREAM_FAILED: {
    rank: 5,
    shape: OCTAGON,
    solid: false,
    lines: 'M8 11.500V5M5.300 7.500 8 4.800l2.700 2.700',
    letter: 'U',
  },
  HELD: { rank: 6, shape: BOX, solid: true, lines: 'M6 5v6M10 5v6', letter: 'H' },
  RETRY_WAIT: {
    rank: 7,
    shape: RING,
    solid: false,
    lines: 'M10.800 8A2.900 2.900 0 1 1 9.900 5.900M10.200 4v2.200H8',
    letter: 'R',
  },
  RUNNING: { rank: 8, shape: RING, solid: true, lines: 'M6.300 4.800v6.400l5-3.200z', fill: true, letter: '▶' },
  QUEUED: { rank: 9, shape: RING, solid: false, lines: 'M5 8h.01M8 8h.01M11 8h.01', letter: 'Q' },
  PENDING: { rank: 10, shape: RING, solid: false, lines: '', letter: '·' },
  WARNING: { rank: 11, shape: TRIANGLE, solid: true, lines: 'M8 6v4M8 12v.01', letter: '!' },
  FORCED: {
    rank: 12,
    shape: BOX,
    solid: true,
    lines: 'M3.300 8.300 5.500 10.500 9.500 6M7.300 9.700l.9.8L12.500 6',
    letter: 'S',
  },
  SKIPPED: {
    rank: 13,
    shape: RING,
    solid: false,
    lines: 'M4.800 5.500 7.500 8l-2.700 2.500M8.300 5.500 11 8l-2.700 2.500',
    letter: '»',
  },
  SKIPPED_BRANCH: { rank: 14, shape: RING, solid: false, lines: 'M5 11 11 5', letter: '/' },
  SUCCESS: { rank: 15, shape: RING, solid: true, lines: 'M4.800 8.300 7 10.500l4.300-4.800', letter: '✓' },
  // Of batches, schedules and what else has a state.
  PAUSED: { rank: 6, shape: BOX, solid: true, lines: 'M6 5v6M10 5v6', letter: 'P' },
};

/** All states of a job, the worst first. */
export const STATUSES = Object.keys(GLYPHS).filter((k) => k !== 'PAUSED');
export const BATCH_STATUSES = ['RUNNING', 'KILLING', 'FAILED', 'KILLED', 'WARNING', 'SUCCESS'];
const WAITING = new Set(['PENDING', 'HELD', 'QUEUED', 'RETRY_WAIT']);
const ACTIVE = new Set(['RUNNING', 'KILLING']);
const BAD = new Set(['FAILED', 'TIMEOUT', 'UNKNOWN', 'KILLED', 'UPSTREAM_FAILED']);
const GOOD = new Set(['SUCCESS', 'WARNING', 'FORCED', 'SKIPPED', 'SKIPPED_BRANCH']);

export const isWaiting = (status) => WAITING.has(status);
export const isActive = (status) => ACTIVE.has(status);
export const isBad = (status) => BAD.has(status);
/** What failed by itself: who looks for the cause looks here, and not at what it kept from running. */
export const isFailure = (status) => BAD.has(status) && status !== 'UPSTREAM_FAILED';
export const isGood = (status) => GOOD.has(status);
export const isFinal = (status) => BAD.has(status) || GOOD.has(status);
export const rank = (status) => GLYPHS[status]?.rank ?? 50;
export const statusWord = (status) => (has(`status.${status}`) ? t(`status.${status}`) : String(status ?? ''));
/** The class that sets --st (mark, text) and --st-bg (ground) of a state. */
export const statusClass = (status) =>
  `st-${String(status ?? '')
    .toLowerCase()
    .replaceAll('_', '-')}`;

/** The mark alone. */
export function glyph(status, size = 14) {
  const mark = GLYPHS[status] ?? { shape: RING, solid: false, lines: '' };
  return s(
    `svg.glyph.${statusClass(status)}`,
    {
      viewBox: '0 0 16 16',
      width: size,
      height: size,
      'aria-hidden': 'true',
      focusable: 'false',
      class: mark.solid ? 'solid' : 'hollow',
    },
    s('path.shape', { d: mark.shape }),
    mark.lines && s('path.lines', { d: mark.lines, class: mark.fill ? 'filled' : null }),
  );
}

/** Mark and word. */
export function badge(status, { paused, mode, title } = {}) {
  const words = [statusWord(status)];
  if (mode) words.push(t(`mode.${mode}`));
  if (paused) words.push(t('status.PAUSED'));
  return h(
    `span.badge.${statusClass(status)}`,
    { 'data-status': status, title },
    glyph(status),
    h('span', words.join(' · ')),
  );
}

/** Counts by state as one bar of segments with its words: {SUCCESS: 20, FAILED: 1}. */
export function progress(byState, { compact } = {}) {
  const all = Object.entries(byState ?? {})
    .filter(([, n]) => n > 0)
    .sort(([a], [b]) => barOrder(a) - barOrder(b));
  const total = all.reduce((sum, [, n]) => sum + n, 0);
  // What failed has ended and is not done: "70/70" on a batch that failed would look like success.
  const done = all.filter(([k]) => isGood(k)).reduce((sum, [, n]) => sum + n, 0);
  const words = all.map(([k, n]) => `${statusWord(k)} ${n}`).join(', ');
  const bar = h(
    'span.bar',
    { role: 'img', 'aria-label': `${t('batch.done_of', { done, total })}: ${words}`, title: words },
    all.map(([k, n]) => h(`span.seg.${statusClass(k)}`, { css: { flexGrow: String(n) } })),
  );
  return h('span.progress', { class: compact ? 'compact' : null }, bar, h('span.progress-n', `${done}/${total}`));
}

// From the left: done well, done badly, running, waiting.
const barOrder = (status) =>
  (isGood(status) ? 0 : isBad(status) ? 1 : isActive(status) ? 2 : 3) * 100 +
  (isGood(status) ? 50 - rank(status) : rank(status));

/** Chips of counts, the worst first. */
export function counts(of, { onPick } = {}) {
  const all = Object.entries(of ?? {})
    .filter(([, n]) => n > 0)
    .sort(([a], [b]) => rank(a) - rank(b));
  return h(
    'span.chips',
    all.map(([k, n]) => {
      const inside = [glyph(k), h('span', statusWord(k)), h('b', String(n))];
      return onPick
        ? h(
            `button.chip.${statusClass(k)}`,
            { type: 'button', onclick: () => onPick(k), 'data-test': `count-${k}` },
            inside,
          )
        : h(`span.chip.${statusClass(k)}`, inside);
    }),
  );
}
