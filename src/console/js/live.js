// Events of the server as they happen: over one stream that all windows of the browser share, or over one of the
// window's own where the browser has no shared workers.

import { store } from './store.js';

/** A window that is hidden for a moment keeps its place. */
const ALIVE = 20_000;
/** So long a stream may be away before the reader is told. */
const SLOW = 6000;

const isOurs = (about, event) =>
  (!about.group || event.group === about.group) && (!about.batch_no || event.batch_no === about.batch_no);

/** Calls a listener with what a message says; one that cannot be read is as one that was missed. */
function pass(data, about, fn, gap) {
  try {
    const event = JSON.parse(data);
    if (isOurs(about, event)) fn?.(event);
  } catch {
    gap?.();
  }
}

/** The script of the worker stands beside that of the console, with the same version in its address. */
function workerAddress() {
  const own = document.querySelector('script[type="module"][src*="/console/"]');
  return own && new URL('js/live_worker.js', own.src).href;
}

const canShare = () => typeof SharedWorker === 'function' && workerAddress() !== null;

/** A connection to the stream of all windows. */
function shared(about, { batch, job, open, gap, state }) {
  const { port } = new SharedWorker(workerAddress(), { name: 'procession-events' });
  let slow;
  const is = (kind) => {
    clearTimeout(slow);
    if (kind === 'waiting') slow = setTimeout(() => state?.('lost'), SLOW);
    else state?.(kind === 'open' ? 'live' : 'lost');
  };
  port.onmessage = ({ data: { kind, data } }) => {
    if (kind === 'batch') pass(data, about, batch, gap);
    else if (kind === 'job') pass(data, about, job, gap);
    else if (kind === 'gap') gap?.();
    else is(kind);
    if (kind === 'open') open?.();
  };
  const say = (type) => port.postMessage({ type, session: store.session?.csrf ?? '' });
  const timer = setInterval(() => say('alive'), ALIVE);
  const leave = () => say('out');
  addEventListener('pagehide', leave);
  say('in');
  return {
    stop() {
      clearInterval(timer);
      clearTimeout(slow);
      removeEventListener('pagehide', leave);
      leave();
      port.close();
    },
  };
}

/** A stream of the window's own, which comes back by itself. */
function alone(about, { batch, job, open, gap, state }) {
  let source;
  let tries = 0;
  let timer;
  let slow;
  let made = 0;
  const stop = () => {
    source?.close();
    source = undefined;
    clearTimeout(slow);
    clearTimeout(timer);
  };
  const start = () => {
    const query = new URLSearchParams(Object.entries(about).filter(([, value]) => value)).toString();
    source = new EventSource(`/api/v1/events${query ? `?${query}` : ''}`);
    let isFirst = true;
    made += 1;
    source.onopen = () => {
      tries = 0;
      clearTimeout(slow);
      state?.('live');
      if (isFirst && made > 1) gap?.();
      isFirst = false;
      open?.();
    };
    source.addEventListener('batch', (event) => pass(event.data, about, batch, gap));
    source.addEventListener('job', (event) => pass(event.data, about, job, gap));
    source.addEventListener('reset', () => gap?.());
    source.onerror = () => {
      clearTimeout(slow);
      if (source?.readyState !== EventSource.CLOSED) {
        slow = setTimeout(() => state?.('lost'), SLOW);
        return;
      }
      stop();
      state?.('lost');
      tries += 1;
      timer = setTimeout(start, Math.min(30000, 500 * 2 ** tries) * (0.7 + Math.random() * 0.6));
    };
  };
  start();
  return { stop };
}

/**
 * Events of the server as they happen; `gap` says that some may have been missed. Answers what ends it. The server
 * ends each connection after a while; the browser comes back by itself and says where it was, so that nothing is
 * missed.
 */
export function live(about, on) {
  const listen = canShare() ? shared : alone;
  let stream = null;
  let wasHidden = false;
  // A window that nobody looks at needs nothing; when it is seen again it reads anew.
  const seen = () => {
    if (document.hidden) {
      stream?.stop();
      stream = null;
      wasHidden = true;
      return;
    }
    if (stream) return;
    stream = listen(about, on);
    if (wasHidden) on.gap?.();
  };
  document.addEventListener('visibilitychange', seen);
  seen();
  return () => {
    document.removeEventListener('visibilitychange', seen);
    stream?.stop();
    stream = null;
  };
}
