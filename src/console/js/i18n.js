// Words: every word that people read comes from words/*.js, in English and Chinese with the same keys.

/** By language, once it is loaded: nobody reads two at a time. */
const WORDS = {};
export const LANGUAGES = [
  ['en', 'English'],
  ['zh', '中文'],
];

let current = 'en';

export const lang = () => current;
/** The tag for Intl and for the html element. */
export const locale = () => (current === 'zh' ? 'zh-CN' : 'en-GB');

const known = (name) => (LANGUAGES.some(([lang_]) => lang_ === name) ? name : 'en');

export const isLoaded = (name) => known(name) in WORDS;

/** Fetches the words of a language, unless they are there. */
export async function loadLang(name) {
  if (isLoaded(name)) return;
  const next = known(name);
  const parts = await Promise.all([
    import(`./words/${next}.js`),
    import(`./words/${next}_design.js`),
    import(`./words/${next}_insight.js`),
  ]);
  WORDS[next] = Object.assign({}, ...parts.map((part) => part.default));
}

export function setLang(next) {
  current = known(next);
  document.documentElement.lang = current;
}

export const has = (key) => key in (WORDS[current] ?? {});

/** The words of a key; `{name}` is replaced, `n` chooses between one and other. */
export function t(key, values = {}) {
  let words = WORDS[current]?.[key];
  if (words === undefined) return key;
  if (typeof words === 'object') {
    const form = new Intl.PluralRules(locale()).select(Number(values.n ?? 0));
    words = words[form] ?? words.other;
  }
  return words.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined || value === null) return whole;
    return typeof value === 'number' && name === 'n' ? value.toLocaleString(locale()) : String(value);
  });
}
