// The console's words: English and Chinese have the same keys and the same placeholders, every key that a page
// asks for is there, and the files of the console load nothing from elsewhere. `node tests/node/console_words.mjs`.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../src/console');
const faults = [];
const words = async (name) =>
  (
    await import(
      'data:text/javascript,' + encodeURIComponent(readFileSync(join(root, 'js/words', `${name}.js`), 'utf8'))
    )
  ).default;
const all = {};
for (const lang of ['en', 'zh'])
  all[lang] = { ...(await words(lang)), ...(await words(`${lang}_design`)), ...(await words(`${lang}_insight`)) };

const forms = (value) => (typeof value === 'object' ? Object.values(value) : [value]);
const holes = (value) =>
  [...new Set(forms(value).flatMap((v) => [...v.matchAll(/\{(\w+)\}/g)].map((m) => m[1])))].sort().join();
for (const key of new Set([...Object.keys(all.en), ...Object.keys(all.zh)])) {
  if (!(key in all.en)) faults.push(`en has no '${key}'`);
  else if (!(key in all.zh)) faults.push(`zh has no '${key}'`);
  else if (holes(all.en[key]) !== holes(all.zh[key]))
    faults.push(`'${key}': en has {${holes(all.en[key])}}, zh has {${holes(all.zh[key])}}`);
  else if (forms(all.zh[key]).some((v) => !v.trim())) faults.push(`'${key}' is empty in zh`);
}

const files = readdirSync(root, { recursive: true }).filter(
  (f) => /\.(js|css|html)$/.test(f) && !f.startsWith('vendor'),
);
for (const file of files) {
  const text = readFileSync(join(root, file), 'utf8');
  const at = (what) => faults.push(`${file}: ${what}`);
  if (
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/.test(text.replace(/\/\/.*$/gm, ''))
  )
    at('makes markup or code of text');
  for (const [, url] of text.matchAll(/["'(](https?:\/\/[^"')\s]+)/g))
    if (!url.startsWith('http://www.w3.org/')) at(`names ${url}`);
  if (file.endsWith('.html') && (/<script(?![^>]*\ssrc=)/.test(text) || /\sstyle=|\son\w+=/.test(text)))
    at('has something inline');
  if (!file.endsWith('.js') || file.includes('words/')) continue;
  if (!/^(?:const|let|function) t\b/m.test(text))
    for (const [, key] of text.matchAll(/\bt\(\s*'([\w.-]+)'/g))
      if (!(key in all.en)) at(`asks for the word '${key}', which is not there`);
  for (const [, from] of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
    try {
      readFileSync(fileURLToPath(new URL(from, pathToFileURL(join(root, file)))));
    } catch {
      at(`imports ${from}, which is not there`);
    }
  }
}

if (faults.length) {
  console.error(faults.join('\n'));
  process.exit(1);
}
console.log(`${Object.keys(all.en).length} words in 2 languages, ${files.length} files`);
