// The frame: rail, top bar, search, messages, shortcuts.

import { api } from './api.js';
import { LANGUAGES, lang, t } from './i18n.js';
import { go, link } from './router.js';
import { searchBox } from './search.js';
import { store } from './store.js';
import { dialog, h, icon, menu, poll, put, s, settled, toast, zoneName, button } from './ui.js';

/** The mark of the product, drawn. */
export const mark = () =>
  s(
    'svg',
    { viewBox: '0 0 32 32', 'aria-hidden': 'true' },
    s('rect', { width: 32, height: 32, rx: 7, fill: '#12507f' }),
    s(
      'g',
      { fill: 'none', stroke: '#fff', 'stroke-width': 2.6, 'stroke-linecap': 'round' },
      s('path', { d: 'M9 16h6M17.500 14.500 22 10M17.500 17.500 22 22' }),
    ),
    s(
      'g',
      { fill: '#fff' },
      [
        [7.5, 16],
        [24, 9],
        [24, 23],
        [16, 16],
      ].map(([cx, cy]) => s('circle', { cx, cy, r: 3.2 })),
    ),
  );

const NAV = [
  [
    'nav.operate',
    [
      ['/', 'dashboard', 'dashboard'],
      ['/batches', 'batches', 'batches'],
      ['/runs', 'runs', 'list'],
      ['/inbox', 'inbox', 'warning'],
      ['/approvals', 'approvals', 'check'],
      ['/calendar', 'calendar', 'calendar'],
      ['/backfills', 'backfills', 'backfill'],
      ['/insights', 'insights', 'gantt'],
    ],
  ],
  [
    'nav.define',
    [
      ['/groups', 'groups', 'groups'],
      ['/jobs', 'jobs', 'job'],
      ['/schedules', 'schedules', 'clock'],
      ['/calendars', 'calendars', 'pin'],
      ['/definition', 'definition', 'file', 'edit'],
    ],
  ],
  [
    'nav.watch',
    [
      ['/nodes', 'nodes', 'node'],
      ['/executors', 'executors', 'external', 'everywhere'],
      ['/secrets', 'secrets', 'key', 'everywhere'],
      ['/outbox', 'outbox', 'outbox'],
      ['/audit', 'audit', 'audit'],
      ['/users', 'users', 'users', 'admin'],
      ['/settings', 'settings', 'settings', 'everywhere'],
    ],
  ],
];

const SHORTCUTS = [
  ['/', 'keys.search'],
  ['?', 'keys.help'],
  ['g d', 'nav.dashboard'],
  ['g b', 'nav.batches'],
  ['g g', 'nav.groups'],
  ['g j', 'nav.jobs'],
  ['g s', 'nav.schedules'],
  ['g c', 'nav.calendar'],
  ['g r', 'nav.runs'],
  ['g f', 'nav.inbox'],
  ['g i', 'nav.insights'],
  ['g n', 'nav.nodes'],
  ['g o', 'nav.outbox'],
  ['g a', 'nav.audit'],
  ['t', 'keys.theme'],
  ['[', 'keys.rail'],
  ['↑ ↓ Home End', 'keys.rows'],
  ['Enter', 'keys.open'],
  ['Space', 'keys.select'],
  ['Esc', 'keys.close'],
];
const GO = {
  d: '/',
  b: '/batches',
  g: '/groups',
  j: '/jobs',
  s: '/schedules',
  c: '/calendar',
  r: '/runs',
  f: '/inbox',
  i: '/insights',
  n: '/nodes',
  o: '/outbox',
  a: '/audit',
};

export function showShortcuts() {
  dialog({
    title: t('keys.title'),
    size: 's',
    test: 'shortcuts',
    closeOutside: true,
    body: h(
      'dl.keys',
      SHORTCUTS.map(([keys, words]) =>
        h(
          'div',
          h(
            'dt',
            keys.split(' ').map((k) => h('kbd', k)),
          ),
          h('dd', t(words)),
        ),
      ),
    ),
  });
}

export function nextTheme() {
  const order = ['auto', 'light', 'dark'];
  const next = order[(order.indexOf(store.prefs.theme) + 1) % 3];
  store.set({ theme: next });
  toast(t('prefs.theme_is', { theme: t(`prefs.theme_${next}`) }));
}

export const themeMenu = () =>
  menu(
    t('prefs.theme'),
    () =>
      ['auto', 'light', 'dark'].map((v) => ({
        label: t(`prefs.theme_${v}`),
        icon: store.prefs.theme === v ? 'check' : undefined,
        test: `theme-${v}`,
        run: () => store.set({ theme: v }),
      })),
    { icon: 'sun', iconOnly: true, kind: 'quiet', test: 'theme' },
  );

/** The other language, by its own name. */
export function languageMenu() {
  const [next, words] = LANGUAGES.find(([v]) => v !== lang());
  const el = button(words, { icon: 'globe', kind: 'quiet', test: 'lang', onclick: () => store.set({ lang: next }) });
  el.setAttribute('lang', next);
  return el;
}

async function logout() {
  try {
    await api.del('/session');
  } finally {
    store.tell('left');
  }
}

export function makeShell() {
  const user = store.session.user;
  const bad = h('span.count', { hidden: true, 'data-test': 'nav-failures' });
  const waiting = h('span.count', { hidden: true, 'data-test': 'nav-waiting' });
  const links = [];
  const item = ([at, key, mark_, needs]) => {
    if (needs === 'everywhere' ? !store.mayEverywhere('admin') : needs && !store.may(needs)) return null;
    const el = h(
      'a',
      {
        href: link(at),
        'data-nav': at,
        'data-test': `nav-${key}`,
        title: store.prefs.rail === 'thin' ? t(`nav.${key}`) : null,
      },
      icon(mark_),
      h('span', t(`nav.${key}`)),
      key === 'inbox' && bad,
      key === 'approvals' && waiting,
    );
    links.push(el);
    return el;
  };
  const rail = h(
    'nav.rail',
    { 'data-test': 'nav', 'aria-label': t('nav.label'), id: 'rail' },
    NAV.map(([words, items]) => [h('h2', t(words)), items.map(item)]),
    h('p.rail-foot', `Procession ${store.options?.version ?? ''}`, h('br'), zoneName()),
  );
  const main = h('main.main', { id: 'main', tabindex: '-1' });
  const live = h(
    'span.live',
    { title: t('shell.live'), hidden: true, 'data-test': 'live' },
    h('i'),
    h('span', t('shell.live')),
  );
  const banner = h('div.banner', { role: 'alert', hidden: true }, icon('warning'), h('span', t('problem.unreachable')));
  const place = store.options?.public_name;
  const toggle = button(t('nav.toggle'), {
    icon: 'menu',
    iconOnly: true,
    kind: 'quiet',
    test: 'nav-toggle',
    attrs: { 'aria-controls': 'rail' },
    onclick: () => {
      if (matchMedia('(max-width: 900px)').matches) {
        const opens = el.classList.toggle('nav-open');
        if (opens) links[0]?.focus();
      } else store.set({ rail: store.prefs.rail === 'thin' ? 'wide' : 'thin' });
    },
  });
  const search = searchBox();
  const account = menu(
    user.display_name || user.name,
    () => [
      { label: t('nav.profile'), icon: 'user', href: link('/profile'), test: 'menu-profile' },
      { label: t('keys.title'), icon: 'help', run: showShortcuts, test: 'menu-keys' },
      { label: t('shell.api'), icon: 'external', href: '/api', test: 'menu-api' },
      '-',
      { label: t('login.out'), icon: 'logout', run: logout, test: 'logout' },
    ],
    { icon: 'user', kind: 'quiet', test: 'me' },
  );
  account.querySelector('.btn > span')?.classList.add('hide-tiny');
  const top = h(
    'header.topbar',
    toggle,
    h('a.brand', { href: link('/') }, mark(), h('span.name', 'Procession'), place && h('span.place', place)),
    h('span.spacer'),
    search.el,
    h('span.spacer'),
    live,
    languageMenu(),
    themeMenu(),
    account,
  );
  const scrim = h('div.scrim', { onclick: () => el.classList.remove('nav-open') });
  const el = h(
    'div.shell',
    h(
      'a.skip',
      {
        'data-test': 'skip',
        href: '#main',
        onclick: (e) => {
          e.preventDefault();
          main.focus();
        },
      },
      t('shell.skip'),
    ),
    top,
    rail,
    scrim,
    main,
  );
  main.before(banner);
  banner.style.gridArea = 'main';
  banner.style.alignSelf = 'start';
  banner.style.zIndex = '5';

  // Whoever looks at other tabs sees the number of failures in the name of this one.
  let failures = 0;
  let words = '';
  const title = (next) => {
    words = next;
    document.title = `${failures ? `(${failures}) ` : ''}${words ? `${words} – ` : ''}Procession`;
  };
  const ends = [
    store.on('reach', (is) => (banner.hidden = is)),
    store.on('live', (is) => {
      live.hidden = is === null;
      live.classList.toggle('is-lost', is === 'lost');
      live.lastChild.textContent = t(is === 'lost' ? 'shell.not_live' : 'shell.live');
    }),
    store.on('failures', (n) => {
      bad.hidden = !n;
      bad.textContent = n;
      bad.setAttribute('aria-label', t('nav.failures', { n }));
      failures = n;
      title(words);
    }),
    store.on('prefs', () =>
      links.forEach((a) =>
        store.prefs.rail === 'thin' ? a.setAttribute('title', a.textContent) : a.removeAttribute('title'),
      ),
    ),
  ];

  let lead = null;
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === 'Escape') {
      el.classList.remove('nav-open');
      return;
    }
    // What is typed in a shadow tree comes from its host; the path says where it was typed.
    const [inner] = event.composedPath();
    if (inner.closest?.('input, textarea, select, [contenteditable], dialog') || event.target.closest?.('dialog'))
      return;
    if (lead === 'g') {
      lead = null;
      if (GO[event.key]) {
        event.preventDefault();
        go(GO[event.key]);
      }
      return;
    }
    if (event.key === '/') {
      event.preventDefault();
      search.focus();
    } else if (event.key === '?') showShortcuts();
    else if (event.key === 't') nextTheme();
    else if (event.key === '[') store.set({ rail: store.prefs.rail === 'thin' ? 'wide' : 'thin' });
    else if (event.key === 'g') {
      lead = 'g';
      setTimeout(() => (lead = null), 1200);
    }
  };
  document.addEventListener('keydown', onKey);
  ends.push(() => document.removeEventListener('keydown', onKey));
  // The number of failures that nobody has acknowledged, on every page; a page that sees one come or go says so.
  const look = async () => store.tell('failures', (await api.get('/failures', { limit: 1 })).open);
  look().catch(() => {});
  ends.push(
    store.on(
      'look-failures',
      settled(800, () => look().catch(() => {})),
    ),
  );
  ends.push(poll(look, 60000));
  // What waits for a decision of this reader.
  const count = async () => {
    const lists = await Promise.all(['/approvals', '/change-requests'].map((at) => api.get(at, { limit: 100 })));
    const n = lists.flatMap((list) => list.items).filter((one) => one.may_decide).length;
    waiting.hidden = !n;
    waiting.textContent = n;
    waiting.setAttribute('aria-label', t('nav.waiting', { n }));
  };
  count().catch(() => {});
  ends.push(
    poll(count, 60000),
    store.on('change-decided', () => count().catch(() => {})),
  );

  let first = true;
  return {
    el,
    enter(page, nav, name) {
      main.dataset.page = name;
      main.dataset.ready = 'false';
      el.classList.remove('nav-open');
      put(main, page);
      live.hidden = true;
      for (const a of links) {
        if (a.dataset.nav === nav) a.setAttribute('aria-current', 'page');
        else a.removeAttribute('aria-current');
      }
      scrollTo(0, 0);
    },
    /** The page is there: a screen reader begins at its heading. */
    arrived(page) {
      main.dataset.ready = 'true';
      if (!first && (document.activeElement === document.body || !document.activeElement))
        page.querySelector('h1')?.focus({ preventScroll: true });
      first = false;
    },
    title,
    destroy: () => ends.forEach((fn) => fn()),
  };
}
