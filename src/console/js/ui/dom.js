// Elements, made without HTML: what comes from data is text, never markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(el, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) fill(el, child);
    else el.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function dress(el, attrs) {
  for (const [name, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on') && typeof value === 'function') el.addEventListener(name.slice(2), value);
    else if (name === 'css')
      for (const [key, v] of Object.entries(value))
        el.style.setProperty(
          key.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase()),
          v,
        );
    else if (name === 'value' && 'value' in el) el.value = value;
    else if (name === 'checked' || name === 'indeterminate' || name === 'open') el[name] = value;
    else if (name === 'ref') value(el);
    else el.setAttribute(name, value === true ? '' : value);
  }
}

function make(el, classes, attrs, children) {
  if (attrs && (attrs instanceof Node || typeof attrs !== 'object' || Array.isArray(attrs))) {
    children.unshift(attrs);
    attrs = null;
  }
  if (classes.length) el.setAttribute('class', classes.join(' '));
  if (attrs) {
    const { class: more, ...rest } = attrs;
    if (more) el.setAttribute('class', [...classes, more].join(' '));
    // A select takes its value only once it has its options.
    const late = el.tagName === 'SELECT' && 'value' in rest ? rest.value : undefined;
    fill(el, children);
    dress(el, rest);
    if (late !== undefined) el.value = late;
    return el;
  }
  fill(el, children);
  return el;
}

/** An element: `h('div.card.wide', {onclick, 'data-test': 'x'}, 'text', child)`. */
export function h(tag, attrs, ...children) {
  const [name, ...classes] = tag.split('.');
  return make(document.createElement(name), classes, attrs, children);
}

/** The same for SVG. */
export function s(tag, attrs, ...children) {
  const [name, ...classes] = tag.split('.');
  return make(document.createElementNS(SVG, name), classes, attrs, children);
}

/** Replaces what is in an element. */
export function put(el, ...children) {
  el.replaceChildren();
  fill(el, children);
  return el;
}

/** A number that is the same for ever, for ids that labels point to. */
let count = 0;
export const uid = (prefix = 'u') => `${prefix}-${++count}`;

/** Runs when nothing has called it for so long. */
export function settled(ms, fn) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), ms);
  };
}

/** Runs at once and again every `ms` while the page can be seen; answers what ends it. */
export function poll(fn, ms) {
  let ended = false;
  let timer;
  const turn = async () => {
    if (ended) return;
    if (!document.hidden) {
      try {
        await fn();
      } catch {
        // Said where it is shown; the next turn tries again.
      }
    }
    if (!ended) timer = setTimeout(turn, ms);
  };
  const seen = () => {
    if (!document.hidden && !ended) {
      clearTimeout(timer);
      turn();
    }
  };
  document.addEventListener('visibilitychange', seen);
  timer = setTimeout(turn, ms);
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', seen);
  };
}
