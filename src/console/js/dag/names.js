// Names on boxes: what all of a family begin with is told apart from what tells its members apart, and what does not
// fit is cut in the middle, for codes differ at both ends.

/** A beginning shorter than this says little and takes little. */
const SHORTEST = 5;
/** So many characters are left of a code without its beginning. */
const LEFT = 3;
/** A beginning is drawn out to its next joint while so many of those who share it go along. */
const ALONG = 0.8;

/** Where a code may be taken apart: behind `_`, `-`, `.`, `/` and spaces. */
function joints(code) {
  const at = [];
  for (let i = 1; i < code.length; i++) if (/[_\-./\s]/.test(code[i - 1]) && !/[_\-./\s]/.test(code[i])) at.push(i);
  return at;
}

/**
 * For each code its common beginning (`stg_netsuite2__`), or ''. It ends where its family parts: what tells members
 * apart stays in their names.
 */
export function prefixes(codes) {
  const enough = Math.max(3, Math.ceil(codes.length * 0.04));
  const counts = new Map();
  for (const code of codes)
    for (const at of joints(code)) counts.set(code.slice(0, at), (counts.get(code.slice(0, at)) ?? 0) + 1);
  return codes.map((code) => {
    let found = '';
    let before = 0;
    for (const at of joints(code)) {
      const beginning = code.slice(0, at);
      const n = counts.get(beginning);
      if (n < enough || code.length - at < LEFT || (found && n < before * ALONG)) break;
      if (at < SHORTEST) continue;
      found = beginning;
      before = n;
    }
    return found;
  });
}

/** A text that fits, cut in the middle; `measure(text)` gives its width. */
export function middle(text, width, measure) {
  if (measure(text) <= width) return text;
  const all = [...text];
  let low = 0,
    high = all.length - 1;
  const cut = (n) => {
    const head = Math.ceil(n / 2);
    return `${all.slice(0, head).join('')}…${all.slice(all.length - (n - head)).join('')}`;
  };
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (measure(cut(mid)) <= width) low = mid;
    else high = mid - 1;
  }
  return low ? cut(low) : '…';
}

/** A text in two lines that fit, broken at a joint where there is one; the second is cut in the middle. */
export function twoLines(text, width, measure) {
  if (measure(text) <= width) return [text];
  const at = joints(text)
    .filter((i) => measure(text.slice(0, i)) <= width)
    .at(-1);
  if (at !== undefined && at >= 3) return [text.slice(0, at), middle(text.slice(at), width, measure)];
  return [middle(text, width, measure)];
}

/**
 * What is written of a code in so much room, as parts of a line: [{text, faint}]. First the beginning gives way, then
 * the middle.
 */
export function fitParts(prefix, rest, width, measure) {
  const whole = measure(prefix) + measure(rest);
  if (whole <= width) return prefix ? [{ text: prefix, faint: true }, { text: rest }] : [{ text: rest }];
  if (!prefix) return [{ text: middle(rest, width, measure) }];
  const dots = measure('…');
  const room = width - measure(rest) - dots;
  // Of the beginning a whole word (`stg_…`) or nothing: pieces of words only disturb.
  const head = joints(prefix)
    .map((at) => prefix.slice(0, at))
    .filter((piece) => measure(piece) <= room)
    .at(-1);
  if (head) return [{ text: `${head}…`, faint: true }, { text: rest }];
  if (room >= 0) return [{ text: '…', faint: true }, { text: rest }];
  return [{ text: middle(rest, width, measure) }];
}
