// Words: every word that people read comes from words/*.js, in English and Chinese with the same keys.

import en from './words/en.js';
import zh from './words/zh.js';
import enDesign from './words/en_design.js';
import zhDesign from './words/zh_design.js';

const WORDS = { en: { ...en, ...enDesign }, zh: { ...zh, ...zhDesign } };
export const LANGUAGES = [
  ['en', 'English'],
  ['zh', '中文'],
];

let current = 'en';

export const lang = () => current;
/** The tag for Intl and for the html element. */
export const locale = () => (current === 'zh' ? 'zh-CN' : 'en-GB');

export function setLang(next) {
  current = WORDS[next] ? next : 'en';
  document.documentElement.lang = current;
}

export const has = (key) => key in WORDS[current] || key in WORDS.en;

/** The words of a key; `{name}` is replaced, `n` chooses between one and other. */
export function t(key, values = {}) {
  let words = WORDS[current][key] ?? WORDS.en[key];
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
