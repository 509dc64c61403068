// Small parts of pages: buttons, fields, messages, and the states that every page has.

import { say, ApiError } from '../api.js';
import { t } from '../i18n.js';
import { h, put, uid } from './dom.js';
import { icon } from './icons.js';

/** A button. `disabled` is the sentence that says why: it is shown on hover and read aloud. */
export function button(
  label,
  { kind, icon: name, onclick, disabled, test, pressed, title, type = 'button', small, expands, iconOnly, attrs } = {},
) {
  const why = typeof disabled === 'string' ? disabled : null;
  const el = h(
    'button.btn',
    {
      type,
      'data-test': test,
      class: [kind && `btn-${kind}`, small && 'btn-small', iconOnly && 'btn-icon'].filter(Boolean).join(' ') || null,
      // A disabled button that explains itself can still be reached by keyboard.
      'aria-disabled': disabled ? 'true' : null,
      title: why ?? title ?? (iconOnly ? label : null),
      'aria-pressed': pressed === undefined ? null : String(pressed),
      'aria-label': iconOnly ? (why ? `${label}: ${why}` : label) : why ? `${label}: ${why}` : null,
      'aria-expanded': expands === undefined ? null : String(expands),
      ...attrs,
      onclick: async (event) => {
        if (el.getAttribute('aria-disabled') === 'true') {
          event.preventDefault();
          if (why) toast(why, 'info');
          return;
        }
        const answer = onclick?.(event);
        if (answer instanceof Promise) {
          el.classList.add('busy');
          el.setAttribute('aria-disabled', 'true');
          try {
            await answer;
          } catch (error) {
            toast(say(error), 'bad');
          } finally {
            el.classList.remove('busy');
            if (!disabled) el.removeAttribute('aria-disabled');
          }
        }
      },
    },
    name && icon(name),
    iconOnly ? null : h('span', label),
  );
  return el;
}

/** A link that looks like a button. */
export const linkButton = (label, href, { icon: name, kind, test, download } = {}) =>
  h(
    'a.btn',
    { href, 'data-test': test, class: kind ? `btn-${kind}` : null, download },
    name && icon(name),
    h('span', label),
  );

/** A labelled input; hint and error are tied to it. */
export function field({ label, hint, input: control, wide, error }) {
  const id = control.id || uid('f');
  control.id = id;
  const says = [];
  const parts = [h('label.field-label', { for: id }, label), control];
  if (hint) {
    says.push(`${id}-hint`);
    parts.push(h('p.hint', { id: `${id}-hint` }, hint));
  }
  const wrong = h('p.field-error', { id: `${id}-error`, hidden: !error }, error ?? '');
  says.push(`${id}-error`);
  parts.push(wrong);
  control.setAttribute('aria-describedby', says.join(' '));
  const el = h('div.field', { class: wide ? 'wide' : null }, parts);
  el.fail = (words) => {
    wrong.textContent = words ?? '';
    wrong.hidden = !words;
    if (words) control.setAttribute('aria-invalid', 'true');
    else control.removeAttribute('aria-invalid');
  };
  el.input = control;
  return el;
}

export function input({
  type = 'text',
  value = '',
  oninput,
  onchange,
  placeholder,
  test,
  name,
  autocomplete,
  required,
  list,
  min,
  max,
  step,
  mono,
  spellcheck = 'false',
  label,
  rows,
} = {}) {
  const tag = rows ? 'textarea' : 'input';
  return h(`${tag}.input`, {
    type: rows ? null : type,
    value,
    oninput: oninput && ((e) => oninput(e.target.value, e)),
    onchange: onchange && ((e) => onchange(e.target.value, e)),
    placeholder,
    'data-test': test,
    name,
    autocomplete: autocomplete ?? 'off',
    required,
    list,
    min,
    max,
    step,
    rows,
    spellcheck,
    class: mono ? 'mono' : null,
    'aria-label': label,
  });
}

export function select({ options, value, onchange, test, label }) {
  return h(
    'select.input',
    {
      value: value ?? '',
      'data-test': test,
      'aria-label': label,
      onchange: onchange && ((e) => onchange(e.target.value, e)),
    },
    options.map(([v, words]) => h('option', { value: v }, words)),
  );
}

export function check({ label, checked, onchange, hint, test, disabled }) {
  const box = h('input', {
    type: 'checkbox',
    checked: !!checked,
    'data-test': test,
    disabled: !!disabled,
    title: typeof disabled === 'string' ? disabled : null,
    onchange: onchange && ((e) => onchange(e.target.checked, e)),
  });
  const el = h('label.check', box, h('span', label, hint && h('span.hint', hint)));
  el.box = box;
  return el;
}

/** One of a few, as buttons side by side. */
export function segmented({ label, options, value, onchange, test }) {
  const buttons = options.map(([v, words, mark]) =>
    h(
      'button',
      {
        type: 'button',
        'data-value': v,
        'aria-pressed': String(v === value),
        'data-test': test ? `${test}-${v}` : null,
        onclick: () => {
          buttons.forEach((b) => b.setAttribute('aria-pressed', String(b.dataset.value === String(v))));
          onchange?.(v);
        },
      },
      mark && icon(mark),
      h('span', words),
    ),
  );
  const el = h('div.segmented', { role: 'group', 'aria-label': label, 'data-test': test }, buttons);
  el.choose = (v) => buttons.forEach((b) => b.setAttribute('aria-pressed', String(b.dataset.value === String(v))));
  return el;
}

let toasts;
let aloud;
/** Where toasts and what is read aloud stand; made once by the shell. */
export function regions() {
  toasts = h('div.toasts', { role: 'region', 'aria-label': t('shell.messages') });
  aloud = h('div.visually-hidden', { 'aria-live': 'polite', role: 'status' });
  return [toasts, aloud];
}

/** A short message that goes by itself; a bad one stays until it is closed. */
export function toast(words, kind = 'info', { action } = {}) {
  const host = document.querySelector('dialog[open] .toasts') ?? toasts;
  const el = h(
    `div.toast.toast-${kind}`,
    { role: kind === 'bad' ? 'alert' : 'status', 'data-test': 'toast', 'data-kind': kind },
    icon({ good: 'check', bad: 'warning' }[kind] ?? 'info'),
    h('span', words),
    action,
    h(
      'button.btn.btn-quiet.btn-icon',
      { type: 'button', 'aria-label': t('common.close'), onclick: () => el.remove() },
      icon('close', 12),
    ),
  );
  const top = [...document.querySelectorAll('dialog[open]')].pop();
  (top ? dialogToasts(top) : host)?.append(el);
  if (kind !== 'bad') setTimeout(() => el.remove(), 6000);
  return el;
}

function dialogToasts(dialog) {
  let host = dialog.querySelector(':scope > .toasts');
  if (!host) dialog.append((host = h('div.toasts')));
  return host;
}

/** What was said in a dialog is still said when it has closed. */
export function keepToasts(dialog) {
  const said = dialog.querySelector(':scope > .toasts');
  if (said) toasts?.append(...said.children);
}

const waiting = [];
let speaking;
/** Says something to a screen reader, at most every two seconds, the latest three of what came meanwhile. */
export function announce(words) {
  waiting.push(words);
  if (speaking) return;
  speaking = setTimeout(() => {
    if (aloud)
      aloud.textContent = waiting.slice(-3).join('. ') + (waiting.length > 3 ? ` (+${waiting.length - 3})` : '');
    waiting.length = 0;
    speaking = undefined;
  }, 2000);
}

// --- The states of a page -------------------------------------------------------------------------------

export const loading = (words) =>
  h(
    'div.state',
    { role: 'status', 'data-test': 'loading' },
    h('span.spinner', { 'aria-hidden': 'true' }),
    h('p', words ?? t('common.loading')),
  );

export const empty = ({ title, lead, action, mark = 'info' }) =>
  h('div.state', { 'data-test': 'empty' }, icon(mark, 24), h('p.state-title', title), lead && h('p', lead), action);

export function failed(error, retry) {
  if (error instanceof ApiError && error.status === 403) return forbidden(error);
  const gone = error instanceof ApiError && error.status === 404;
  return h(
    'div.state.state-bad',
    { role: 'alert', 'data-test': 'error' },
    icon(gone ? 'search' : 'warning', 24),
    h('p.state-title', gone ? t('problem.gone_title') : t('problem.title')),
    h('p', say(error)),
    error?.more?.error_id && h('p.mono', error.more.error_id),
    retry && button(t('common.again'), { icon: 'rerun', onclick: retry }),
  );
}

export const forbidden = (error) =>
  h(
    'div.state',
    { role: 'alert', 'data-test': 'forbidden' },
    icon('release', 24),
    h('p.state-title', t('may.title')),
    h('p', say(error)),
  );

/** Shows `loading`, then what `draw` makes of what `load` brought, or why not. */
export async function shown(el, load, draw) {
  put(el, loading());
  const again = () => shown(el, load, draw);
  try {
    const got = await load();
    const drawn = await draw(got);
    if (drawn !== undefined) put(el, drawn);
    return got;
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error);
    put(el, failed(error, again));
    return undefined;
  }
}

/** The head of a page: where it stands, its one h1, what can be done. */
export function pageHead({ title, sub, crumbs = [], actions = [], badge: mark }) {
  return h(
    'header.page-head',
    crumbs.length
      ? h(
          'nav.crumbs',
          { 'aria-label': t('shell.crumbs') },
          h(
            'ol',
            crumbs.map(([words, href]) => h('li', href ? h('a', { href }, words) : words)),
          ),
        )
      : null,
    h('div.page-title', h('h1', { tabindex: '-1' }, title), mark, h('div.page-actions', actions)),
    sub && h('p.sub', sub),
  );
}

/** Name and value, side by side. */
export const facts = (pairs, { wide } = {}) =>
  h(
    'dl.facts',
    { class: wide ? 'facts-wide' : null },
    pairs
      .filter((p) => p && p[1] !== null && p[1] !== undefined && p[1] !== '')
      .map(([k, v]) => h('div', h('dt', k), h('dd', v))),
  );

export const card = (title, ...children) => {
  const {
    actions,
    test,
    cls,
    level = 'h2',
  } = children[0] && children[0].constructor === Object ? children.shift() : {};
  return h(
    'section.card',
    { class: cls, 'data-test': test },
    h('div.card-head', h(level, title), actions && h('div.card-actions', actions)),
    children,
  );
};

/** Copies a text, and says so. */
export const copyButton = (text) =>
  button(t('common.copy'), {
    icon: 'copy',
    kind: 'quiet',
    small: true,
    iconOnly: true,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
        toast(t('common.copied'), 'good');
      } catch {
        toast(t('common.copy_failed'), 'bad');
      }
    },
  });

/** A shell command that does the same, with a button that copies it. */
export const command = (text) => h('div.command', h('code', text), copyButton(text));
