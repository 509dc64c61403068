// Plain values as YAML, as definitions are written; reading is the server's.

const PLAIN = /^[A-Za-z_\u4e00-\u9fff][\w \u4e00-\u9fff./@+()-]*$/;
const WORD = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

function scalar(v) {
  if (v === null || v === undefined) return 'null';
  if (typeof v !== 'string') return JSON.stringify(v);
  return PLAIN.test(v) && !WORD.test(v) && !/\s$|: | #/.test(v) ? v : JSON.stringify(v);
}

const isSmall = (v) =>
  v === null ||
  typeof v !== 'object' ||
  (JSON.stringify(v).length < 90 &&
    !JSON.stringify(v).includes('\\n') &&
    Object.values(v).every((x) => x === null || typeof x !== 'object'));

function flow(v) {
  if (Array.isArray(v)) return `[${v.map(flow).join(', ')}]`;
  if (v && typeof v === 'object')
    return `{${Object.entries(v)
      .map(([k, x]) => `${k}: ${flow(x)}`)
      .join(', ')}}`;
  const text = scalar(v);
  return typeof v === 'string' && /[,[\]{}]/.test(text) && !text.startsWith('"') ? JSON.stringify(v) : text;
}

/** A mapping as YAML, `pad` spaces in. */
export function yaml(value, pad = 0) {
  const lead = ' '.repeat(pad);
  let out = '';
  for (const [key, v] of Object.entries(value)) {
    if (v === undefined) continue;
    if (typeof v === 'string' && v.includes('\n')) {
      const end = v.endsWith('\n') ? '' : '-';
      // A first line that begins with blanks would be taken for the indentation.
      const mark = /^[ \n]/.test(v) ? '2' : '';
      out += `${lead}${key}: |${mark}${end}\n${v
        .replace(/\n$/, '')
        .split('\n')
        .map((l) => (l ? `${lead}  ${l}` : ''))
        .join('\n')}\n`;
    } else if (v !== null && typeof v === 'object' && Array.isArray(v) && v.length && !isSmall(v)) {
      out += `${lead}${key}:\n${v.map((x) => (x && typeof x === 'object' && !isSmall(x) ? `${lead}- ${yaml(x, pad + 2).trimStart()}` : `${lead}- ${flow(x)}\n`)).join('')}`;
    } else if (v !== null && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length && !isSmall(v)) {
      out += `${lead}${key}:\n${yaml(v, pad + 2)}`;
    } else out += `${lead}${key}: ${flow(v)}\n`;
  }
  return out;
}
