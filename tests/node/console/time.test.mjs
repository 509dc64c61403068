// Times and lengths as people read them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { setLang } = await import('../../../src/console/js/i18n.js');
const { store } = await import('../../../src/console/js/store.js');
const { agoText, bytes, dayStart, duration, sentence, timeText } = await import('../../../src/console/js/ui/time.js');

test('lengths change their unit and carry', () => {
  const words = [
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1.0 s'],
    [9949, '9.9 s'],
    [9950, '10 s'],
    [59499, '59 s'],
    [59500, '1 min 00 s'],
    [3599499, '59 min 59 s'],
    [3599500, '1 h 00 min'],
    [86400000, '1 d 0 h'],
    [-1500, '−1.5 s'],
    [null, '–'],
  ];
  for (const [ms, text] of words) assert.equal(duration(ms), text, String(ms));
});

test('lengths have Chinese units', () => {
  setLang('zh');
  assert.equal(duration(61000), '1 分 01 秒');
  setLang('en');
});

test('a time is shown in UTC when the reader wants that', () => {
  store.prefs.zone = 'utc';
  assert.equal(timeText('2024-07-31T02:00:05.120Z', { date: true }), '2024-07-31 02:00');
  assert.equal(timeText('2024-07-31T02:00:05.120Z', { date: true, millis: true }), '2024-07-31 02:00:05.120');
  assert.equal(timeText('no time'), '');
});

test('a day begins in the zone that is shown, over the end of a month', () => {
  store.prefs.zone = 'utc';
  assert.equal(dayStart('2024-02-28'), '2024-02-28T00:00:00.000Z');
  assert.equal(dayStart('2024-02-29', 1), '2024-03-01T00:00:00.000Z');
});

test('how long ago', () => {
  const now = Date.parse('2024-07-31T12:00:00Z');
  assert.match(agoText('2024-07-31T11:57:00Z', now), /3 min/);
  assert.match(agoText('2024-07-31T14:00:00Z', now), /in 2 hr/);
  assert.equal(agoText('no time', now), '');
});

test('sizes', () => {
  assert.equal(bytes(1023), '1023 B');
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(bytes(NaN), '–');
});

test('moments in a sentence are in the zone of the reader', () => {
  store.prefs.zone = 'utc';
  const parts = sentence('failed 2 times; next try at 2024-07-31T18:00:05.000Z (in 5 min)');
  assert.equal(parts.length, 3);
  assert.equal(parts[1].textContent, '2024-07-31 18:00:05');
  assert.equal(parts[1].getAttribute('datetime'), '2024-07-31T18:00:05.000Z');
  assert.deepEqual(sentence('it waits for nothing'), ['it waits for nothing']);
});
