// Dialogs: the browser's own <dialog> keeps the focus inside and gives it back; Esc closes.

import { say } from '../api.js';
import { t } from '../i18n.js';
import { h, put, uid } from './dom.js';
import { icon } from './icons.js';
import { button, field, input, keepToasts, toast } from './parts.js';

/** Closes every dialog without an answer: the page that it belongs to is left. */
export function closeDialogs() {
  for (const el of document.querySelectorAll('dialog[open]')) el.close();
  for (const el of document.querySelectorAll('[popover]:popover-open')) el.hidePopover();
}

/** What cannot be done yet in a dialog is really shut: the dialog itself says what is missing. */
function shut(action, el) {
  el.disabled = !!action.disabled;
  return el;
}

/**
 * Opens a dialog. `actions`: [{label, kind, run(close, button), disabled, test, icon}]; a `run` that fails says why
 * and leaves it open.
 */
export function dialog({ title, body, actions = [], size = 'm', test, lead, side, onClose, closeOutside = false }) {
  const id = uid('dlg');
  const wrong = h('div.dialog-error', { role: 'alert', hidden: true });
  let done;
  const closed = new Promise((resolve) => (done = resolve));
  let answer;
  const close = (value) => {
    answer = value;
    if (el.open) el.close();
  };
  const fail = (error) => {
    wrong.hidden = !error;
    put(wrong, error ? [icon('warning'), h('span', typeof error === 'string' ? error : say(error))] : []);
    if (error) wrong.scrollIntoView({ block: 'nearest' });
  };
  const footer = h('footer.dialog-foot');
  const setActions = (next) =>
    put(
      footer,
      next.map((a) =>
        shut(
          a,
          button(a.label, {
            kind: a.kind,
            icon: a.icon,
            test: a.test,
            disabled: a.disabled,
            type: a.submit ? 'submit' : 'button',
            onclick: a.submit
              ? undefined
              : async (event) => {
                  fail(null);
                  try {
                    await a.run?.(close, event.currentTarget);
                  } catch (error) {
                    if (error?.status === 202) {
                      // It waits for a second person, and this dialog has nothing more to do.
                      close(null);
                      toast(say(error));
                    } else fail(error);
                  }
                },
          }),
        ),
      ),
    );
  setActions(actions);
  const content = h('div.dialog-body', { tabindex: '-1' }, lead && h('p.lead', lead), body);
  const el = h(
    `dialog.dialog.dialog-${size}`,
    {
      class: side ? 'dialog-side' : null,
      'aria-labelledby': id,
      'data-test': test,
      onclose: () => {
        keepToasts(el);
        el.remove();
        onClose?.(answer);
        done(answer);
      },
      onclick: (event) => {
        if (closeOutside && event.target === el) close();
      },
    },
    h(
      'div.dialog-frame',
      h(
        'header.dialog-head',
        h('h2', { id }, title),
        button(t('common.close'), {
          kind: 'quiet',
          icon: 'close',
          iconOnly: true,
          onclick: () => close(),
          test: 'dialog-close',
        }),
      ),
      content,
      wrong,
      footer,
    ),
  );
  document.body.append(el);
  el.showModal();
  (content.querySelector('[autofocus], input, textarea, select') ?? footer.querySelector('button'))?.focus();
  return { el, close, closed, fail, setActions, body: content };
}

/** Asks for a reason; answers it, or null. */
export async function confirmReason({ title, lead, verb, kind = 'primary', body, optional, label, hint, run }) {
  const why = field({
    label: label ?? t('act.reason'),
    hint: hint ?? t('act.reason_hint'),
    wide: true,
    input: input({ rows: 2, test: 'reason', name: 'reason' }),
  });
  const actions = () => [
    { label: t('common.cancel'), test: 'confirm-no', run: (close) => close(null) },
    {
      label: verb ?? title,
      kind,
      test: 'confirm-yes',
      disabled: optional || why.input.value.trim() ? null : t('act.reason_missing'),
      run: async (close) => {
        const reason = why.input.value.trim();
        if (run) await run(reason);
        close(reason);
      },
    },
  ];
  const box = dialog({ title, lead, size: 's', test: 'confirm', body: [body, why], actions: actions() });
  let had = !!optional;
  why.input.addEventListener('input', () => {
    const has = !!optional || why.input.value.trim() !== '';
    if (has !== had) box.setActions(actions());
    had = has;
  });
  why.input.focus();
  return (await box.closed) ?? null;
}

/** A list of things to do, opened by a button. `items`: [{label, icon, run, disabled, kind, test}] or '-'. */
export function menu(label, items, { icon: name = 'down', kind, iconOnly, test, small } = {}) {
  const id = uid('menu');
  const list = h('div.menu', { id, role: 'menu', popover: 'auto', 'aria-label': label });
  const opener = button(label, {
    icon: name,
    kind,
    iconOnly,
    test,
    small,
    expands: false,
    attrs: { 'aria-haspopup': 'menu', 'aria-controls': id },
    onclick: () => list.togglePopover(),
  });
  const draw = () => {
    const all = typeof items === 'function' ? items() : items;
    put(
      list,
      all.filter(Boolean).map((item) =>
        item === '-'
          ? h('hr')
          : h(
              item.href ? 'a.menu-item' : 'button.menu-item',
              {
                type: item.href ? null : 'button',
                href: item.href,
                role: 'menuitem',
                tabindex: '-1',
                'data-test': item.test,
                class: item.kind ? `menu-${item.kind}` : null,
                'aria-disabled': item.disabled ? 'true' : null,
                title: typeof item.disabled === 'string' ? item.disabled : null,
                onclick: (event) => {
                  if (item.disabled) {
                    event.preventDefault();
                    return;
                  }
                  list.hidePopover();
                  item.run?.();
                },
              },
              item.icon ? icon(item.icon) : h('span.icon'),
              h('span', item.label, typeof item.disabled === 'string' && h('span.hint', item.disabled)),
              item.note && h('span.menu-note', item.note),
            ),
      ),
    );
  };
  list.addEventListener('beforetoggle', (event) => {
    const opens = event.newState === 'open';
    opener.setAttribute('aria-expanded', String(opens));
    if (!opens) return;
    draw();
  });
  list.addEventListener('toggle', (event) => {
    if (event.newState !== 'open') return;
    const at = opener.getBoundingClientRect();
    const { offsetWidth: w, offsetHeight: tall } = list;
    const left = Math.max(8, Math.min(at.right - w, innerWidth - w - 8));
    const below = at.bottom + 4 + tall < innerHeight;
    list.style.left = `${at.left + w < innerWidth - 8 ? at.left : left}px`;
    list.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - tall - 4)}px`;
    list.querySelector('.menu-item')?.focus();
  });
  list.addEventListener('keydown', (event) => {
    const all = [...list.querySelectorAll('.menu-item')];
    const i = all.indexOf(document.activeElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) {
      if (event.key === 'Tab') list.hidePopover();
      return;
    }
    event.preventDefault();
    all[(to + all.length) % all.length]?.focus();
  });
  return h('span.menu-host', opener, list);
}

/** Walks a row of tabs by arrows, as a screen reader's user expects. */
export function walkTabs(host) {
  host.addEventListener('keydown', (event) => {
    const all = [...host.querySelectorAll('[role=tab]')];
    const i = all.indexOf(event.target);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (i < 0 || to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length].focus();
  });
  return host;
}

/** Tabs that are links: `tabs({label, items: [[key, words, icon, href]], current})`. */
export function tabs({ label, items, current, test }) {
  return walkTabs(
    h(
      'div.tabs',
      { role: 'tablist', 'aria-label': label, 'data-test': test },
      items.map(([key, words, mark, href]) =>
        h(
          'a.tab',
          { href, role: 'tab', 'aria-selected': String(key === current), 'data-test': `tab-${key}` },
          mark && icon(mark),
          h('span', words),
        ),
      ),
    ),
  );
}
