// What the whole console knows: who is logged in and may what, and how the reader likes it.

import { isLoaded, loadLang, setLang, t } from './i18n.js';

const KEY = 'procession.prefs';
const listeners = new Map();

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') ?? {};
  } catch {
    return {};
  }
}

const guess = () =>
  ((navigator.languages ?? [navigator.language]).find((l) => /^(zh|en)/i.test(l)) ?? 'en').slice(0, 2).toLowerCase();

export const store = {
  /** As GET /session answers; null while nobody is logged in. */
  session: null,
  /** As GET /session/options answers. */
  options: null,
  prefs: { theme: 'auto', zone: 'local', density: 'dense', rail: 'wide', ...read() },

  on(what, fn) {
    if (!listeners.has(what)) listeners.set(what, new Set());
    listeners.get(what).add(fn);
    return () => listeners.get(what).delete(fn);
  },

  tell(what, value) {
    for (const fn of listeners.get(what) ?? []) fn(value);
  },

  enter(session) {
    store.session = session;
    store.tell('session', session);
  },

  set(changes) {
    Object.assign(store.prefs, changes);
    try {
      localStorage.setItem(KEY, JSON.stringify(store.prefs));
    } catch {
      // A browser that keeps nothing: it holds until the page is closed.
    }
    const apply = () => {
      store.dress();
      store.tell('prefs', store.prefs);
    };
    // Another language is shown once its words are there; without them the page stays as it is.
    if (isLoaded(store.lang())) apply();
    else loadLang(store.lang()).then(apply, () => store.tell('reach', false));
  },

  /** The language that the reader chose, that of the account, or that of the browser. */
  lang: () => store.prefs.lang ?? store.session?.user?.lang ?? guess(),

  /** Theme, language and width of the page as the reader likes them. */
  dress() {
    const { theme } = store.prefs;
    setLang(store.lang());
    const root = document.documentElement;
    if (theme === 'auto') root.removeAttribute('data-theme');
    else root.setAttribute('data-theme', theme);
    root.dataset.rail = store.prefs.rail;
  },

  /** Whether something may be done in a group; without a group: in at least one. */
  may(permission, group) {
    const held = store.session?.permissions;
    if (!held) return false;
    if (held.everywhere?.includes(permission)) return true;
    if (group !== undefined) return held.groups?.[group]?.includes(permission) ?? false;
    return Object.values(held.groups ?? {}).some((rights) => rights.includes(permission));
  },

  mayEverywhere(permission) {
    return store.session?.permissions?.everywhere?.includes(permission) ?? false;
  },

  /** Null, or the sentence that says why something cannot be done. */
  why(permission, group) {
    if (store.may(permission, group)) return null;
    return t(group ? 'may.not_in_group' : 'may.not', { permission: t(`permission.${permission}`), group });
  },

  whyEverywhere(permission) {
    return store.mayEverywhere(permission)
      ? null
      : t('may.not_everywhere', { permission: t(`permission.${permission}`) });
  },
};
