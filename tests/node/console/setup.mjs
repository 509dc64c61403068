// Lets Node.js load the console's modules as a browser does: as ES modules, with a document. `node --import`.

import { register } from 'node:module';
import { JSDOM } from 'jsdom';

const load = `export const load = (url, context, next) =>
  next(url, url.includes('/src/console/js/') ? { ...context, format: 'module' } : context);`;
register('data:text/javascript,' + encodeURIComponent(load));

const { window } = new JSDOM('<!doctype html><html lang="en"><body></body></html>', { url: 'http://console.test/' });
for (const name of [
  'document',
  'location',
  'history',
  'localStorage',
  'sessionStorage',
  'Node',
  'HTMLElement',
  'Event',
])
  globalThis[name] = window[name];
globalThis.window = window;
globalThis.addEventListener = window.addEventListener.bind(window);
globalThis.matchMedia = window.matchMedia = () => ({ matches: false, addEventListener() {} });
// Pages keep clocks that tick for ever; a test ends when its assertions have.
const timer = globalThis.setInterval;
globalThis.setInterval = (...args) => timer(...args).unref();

// The words of both languages; a browser fetches those of one.
const { loadLang } = await import('../../../src/console/js/i18n.js');
await Promise.all([loadLang('en'), loadLang('zh')]);
