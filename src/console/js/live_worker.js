// One stream of events for all windows of a browser, which keeps six connections to one server: with one each, the
// seventh window would wait for ever. A window says `in` with its session, `alive` now and then, and `out`; it hears
// {kind, data} of every event, `open`, `lost` and `gap`, and picks what it is about.

const URL_ = '/api/v1/events';
/** A window that was closed without a word is forgotten after so many milliseconds. */
const SILENT = 90_000;

const windows = new Map();
let source = null;
let session = null;
let tries = 0;
let timer = 0;
let wasOpen = false;

const tell = (message) => windows.forEach((_, port) => port.postMessage(message));

function stop() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function start() {
  if (source || !windows.size) return;
  clearTimeout(timer);
  source = new EventSource(URL_);
  const own = source;
  let isFirst = true;
  source.onopen = () => {
    tries = 0;
    tell({ kind: 'open' });
    // A stream that was made anew may have missed something; one that came back by itself says what it had.
    if (wasOpen && isFirst) tell({ kind: 'gap' });
    isFirst = false;
    wasOpen = true;
  };
  for (const kind of ['batch', 'job']) source.addEventListener(kind, (event) => tell({ kind, data: event.data }));
  source.addEventListener('reset', () => tell({ kind: 'gap' }));
  source.onerror = () => {
    if (own !== source) return;
    if (own.readyState !== EventSource.CLOSED) {
      tell({ kind: 'waiting' });
      return;
    }
    stop();
    tell({ kind: 'lost' });
    tries += 1;
    timer = setTimeout(start, Math.min(30_000, 500 * 2 ** tries) * (0.7 + Math.random() * 0.6));
  };
}

function hear(port, message) {
  if (message.type === 'out') windows.delete(port);
  else windows.set(port, Date.now());
  if (message.type === 'in') {
    // Another user sees other events.
    if (message.session !== session) {
      session = message.session;
      stop();
      wasOpen = false;
      tries = 0;
    }
    if (source?.readyState === EventSource.OPEN) port.postMessage({ kind: 'open' });
  }
  if (windows.size) start();
  else stop();
}

setInterval(() => {
  for (const [port, at] of windows) if (Date.now() - at > SILENT) windows.delete(port);
  if (!windows.size) stop();
}, 30_000);

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => hear(port, data);
};
