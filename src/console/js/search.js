// The search box: `/` goes there, arrows walk what is found, Enter opens it.

import { api, say } from './api.js';
import { t } from './i18n.js';
import { go, to } from './router.js';
import { badge, h, icon, put, settled, uid } from './ui.js';

const KINDS = [
  ['jobs', 'nav.jobs', 'job', (x) => [to`/jobs/${`${x.group}.${x.code}`}`, x.code, x.name, x.group]],
  ['groups', 'nav.groups', 'groups', (x) => [to`/groups/${x.code}`, x.code, x.name, '']],
  [
    'batches',
    'nav.batches',
    'batches',
    (x) => [to`/batches/${x.group}/${x.batch_no}`, x.batch_no, null, x.group, x.status],
  ],
  [
    'schedules',
    'nav.schedules',
    'clock',
    (x) => [to`/schedules/${x.code}`, x.code, x.name, (x.groups ?? []).join(', ')],
  ],
];

export function searchBox() {
  const id = uid('found');
  const box = h('input.input', {
    type: 'search',
    placeholder: t('search.placeholder'),
    'aria-label': t('search.label'),
    role: 'combobox',
    'aria-expanded': 'false',
    'aria-controls': id,
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    spellcheck: 'false',
    'data-test': 'search',
  });
  const list = h('div.search-found', { id, role: 'listbox', 'aria-label': t('search.found'), hidden: true });
  const el = h('div.search', { role: 'search' }, icon('search'), box, h('kbd', { 'aria-hidden': 'true' }, '/'), list);
  let at = -1;
  let turn = 0;
  const options = () => [...list.querySelectorAll('[role=option]')];
  const close = () => {
    list.hidden = true;
    at = -1;
    box.setAttribute('aria-expanded', 'false');
    box.removeAttribute('aria-activedescendant');
  };
  const choose = (i) => {
    const all = options();
    if (!all.length) return;
    at = (i + all.length) % all.length;
    all.forEach((o, n) => o.setAttribute('aria-selected', String(n === at)));
    box.setAttribute('aria-activedescendant', all[at].id);
    all[at].scrollIntoView({ block: 'nearest' });
  };
  const look = settled(180, async () => {
    const q = box.value.trim();
    const mine = ++turn;
    if (!q) return close();
    try {
      const found = await api.get('/search', { q });
      if (mine !== turn) return undefined;
      const parts = KINDS.map(([kind, words, mark, read]) => {
        const items = (found[kind] ?? []).slice(0, 8);
        return (
          items.length > 0 &&
          h(
            'div',
            { role: 'group', 'aria-label': t(words) },
            h('h3', { 'aria-hidden': 'true' }, t(words)),
            items.map((x) => {
              const [href, code, name, side, status] = read(x);
              return h(
                'div',
                {
                  role: 'option',
                  id: uid('opt'),
                  'aria-selected': 'false',
                  'data-href': href,
                  onclick: () => {
                    close();
                    box.value = '';
                    go(href);
                  },
                },
                icon(mark),
                h('span', h('b', code), name ? ` ${name}` : ''),
                h('span.muted', status ? [badge(status), ' '] : null, side ?? ''),
              );
            }),
          )
        );
      });
      put(list, parts.some(Boolean) ? parts : h('p.state', { role: 'status' }, t('search.nothing', { q })));
    } catch (error) {
      put(list, h('p.state', { role: 'alert' }, say(error)));
    }
    list.hidden = false;
    box.setAttribute('aria-expanded', 'true');
    at = -1;
    choose(0);
    return undefined;
  });
  box.addEventListener('input', look);
  box.addEventListener('focus', () => box.value.trim() && look());
  box.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(at + 1);
    else if (event.key === 'ArrowUp') choose(at - 1);
    else if (event.key === 'Enter') options()[at]?.click();
    else if (event.key === 'Escape') {
      if (list.hidden) box.blur();
      close();
    } else return;
    event.preventDefault();
  });
  el.addEventListener('focusout', (event) => !el.contains(event.relatedTarget) && setTimeout(close, 150));
  return { el, focus: () => box.focus() };
}
