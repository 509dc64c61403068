// Pages by the part of the address after `#`: nothing that a reader does is lost with a reload.

const routes = [];
let render;
let guard = null;

/** A page: its pattern (`/batches/:group/:no/:tab?`) and the module that draws it. */
export function route(pattern, load, more = {}) {
  const parts = pattern.split('/').filter(Boolean);
  routes.push({ pattern, parts, load, ...more });
}

export const link = (to) => `#${to}`;
/** A link with its parts encoded: to`/batches/${group}/${no}`. */
export const to = (parts, ...values) =>
  '#' + parts.reduce((all, part, i) => all + part + (i < values.length ? encodeURIComponent(values[i] ?? '') : ''), '');

/** Whether the page itself went on: a dialog that it has just opened, with a secret shown once, stays. */
let isOwn = false;

export function go(at) {
  const next = at.startsWith('#') ? at : `#${at}`;
  isOwn = next !== location.hash;
  if (location.hash === next) render?.();
  else location.hash = next;
}

export const here = () => {
  const [at, query = ''] = location.hash.slice(1).split('?');
  return { path: at || '/', query: new URLSearchParams(query) };
};

/** Changes what stands after `?` without drawing the page anew. */
export function setQuery(changes, { push } = {}) {
  const { path, query } = here();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') query.delete(key);
    else query.set(key, value);
  }
  const tail = query.toString();
  const next = `#${path}${tail ? `?${tail}` : ''}`;
  if (next === location.hash) return;
  history[push ? 'pushState' : 'replaceState'](null, '', next);
}

function match(at) {
  const given = at.split('/').filter(Boolean);
  for (const one of routes) {
    const params = {};
    let fits = given.length <= one.parts.length;
    for (let i = 0; fits && i < one.parts.length; i += 1) {
      const part = one.parts[i];
      if (!part.startsWith(':')) fits = part === given[i];
      else if (given[i] !== undefined) {
        try {
          params[part.slice(1).replace('?', '')] = decodeURIComponent(given[i]);
        } catch {
          fits = false;
        }
      } else fits = part.endsWith('?');
    }
    if (fits) return { one, params };
  }
  return null;
}

/** Asks before the page is left; one question at a time, until it is taken back with null. */
export const askBeforeLeaving = (words) => {
  guard = words;
};
addEventListener('beforeunload', (event) => {
  if (guard) event.preventDefault();
});

/** Draws the page of the address, now and whenever it changes; `left` is called when the reader goes to
 * another, by Back or by a link. */
export function begin(draw, left = () => {}) {
  let last = location.hash;
  render = async () => {
    const own = isOwn;
    isOwn = false;
    if (guard && location.hash !== last) {
      if (!confirm(guard)) {
        history.replaceState(null, '', last || '#/');
        return;
      }
      guard = null;
    }
    if (location.hash !== last && !own) left();
    last = location.hash;
    const { path, query } = here();
    const found = match(path);
    await draw(found?.one ?? null, found?.params ?? {}, query, path);
  };
  addEventListener('hashchange', render);
  render();
}

export const redraw = () => render?.();
