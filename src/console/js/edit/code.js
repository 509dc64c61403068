// A light editor: a text area with line numbers, colours behind it, faults at their lines, and find.

import { t } from '../i18n.js';
import { button, h, put } from '../ui.js';

/** Height of a line, as the style sheet has it. */
const LINE = 20;

const WORDS = {
  sql: 'select|from|where|and|or|not|in|is|null|insert|into|values|update|set|delete|create|replace|table|view|procedure|function|begin|end|if|then|else|elsif|elseif|case|when|as|on|join|left|right|inner|outer|full|cross|group|by|order|having|limit|offset|union|all|distinct|exists|between|like|with|declare|return|returns|call|commit|rollback|truncate|alter|drop|index|primary|key|foreign|references|default|constraint|loop|while|for|do|out|inout|language|exception|raise|merge|using|matched|temporary|temp|over|partition|asc|desc|interval|cast',
  sh: 'if|then|else|elif|fi|for|while|until|do|done|case|esac|in|function|return|exit|export|local|set|unset|trap|shift|read|echo|printf|cd|test|eval|exec|source|readonly|break|continue',
  python:
    'and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False|print|match',
};

// In each language: [class, what]; the first that fits at a place is taken.
const RULES = {
  sql: [
    ['c', /--[^\n]*|\/\*[\s\S]*?\*\//],
    ['s', /'(?:[^']|'')*'|\$\$[\s\S]*?\$\$/],
    ['v', /:[A-Za-z_]\w*|\$\{[^}\n]*\}/],
    ['n', /\b\d+(?:\.\d+)?\b/],
    ['k', new RegExp(`\\b(?:${WORDS.sql})\\b`, 'i')],
  ],
  sh: [
    ['c', /(?<=^|\s)#[^\n]*/m],
    ['s', /'[^']*'|"(?:\\.|[^"\\])*"/],
    ['v', /\$\{[^}\n]*\}|\$\w+|\$[@#?*!$-]/],
    ['n', /\b\d+\b/],
    ['k', new RegExp(`(?<![\\w-])(?:${WORDS.sh})(?![\\w-])`)],
  ],
  python: [
    ['c', /#[^\n]*/],
    ['s', /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/],
    ['n', /\b\d+(?:\.\d+)?\b/],
    ['k', new RegExp(`\\b(?:${WORDS.python})\\b`)],
  ],
  yaml: [
    ['c', /(?<=^|\s)#[^\n]*/m],
    ['v', /\$\{[^}\n]*\}/],
    ['k', /(?<=^[ \t]*(?:- )?)[\w.-]+(?=:(?:\s|$))/m],
    ['s', /"(?:\\.|[^"\\\n])*"|'(?:[^'\n]|'')*'/],
    ['n', /(?<=[:\s[,])-?\d+(?:\.\d+)?(?=\s*(?:$|[,\]}]))/m],
  ],
  json: [
    ['k', /"(?:\\.|[^"\\\n])*"(?=\s*:)/],
    ['s', /"(?:\\.|[^"\\\n])*"/],
    ['n', /-?\b\d+(?:\.\d+)?\b|\btrue\b|\bfalse\b|\bnull\b/],
  ],
  text: [],
};

const compiled = new Map();
function pattern(language) {
  if (!compiled.has(language)) {
    const rules = RULES[language] || [];
    compiled.set(
      language,
      rules.length
        ? new RegExp(
            rules.map(([name, re], i) => `(?<${name}${i}>${re.source})`).join('|'),
            `g${language === 'sql' ? 'i' : ''}m`,
          )
        : null,
    );
  }
  return compiled.get(language);
}

/** A text as nodes with classes. */
export function coloured(text, language) {
  const re = pattern(language);
  if (!re) return [text];
  const out = [];
  let at = 0;
  for (const found of text.matchAll(re)) {
    if (!found[0]) continue;
    const name = Object.keys(found.groups).find((k) => found.groups[k] !== undefined);
    if (found.index > at) out.push(text.slice(at, found.index));
    out.push(h(`span.ce-${name[0]}`, found[0]));
    at = found.index + found[0].length;
  }
  out.push(text.slice(at));
  return out;
}

/**
 * @param on {value, language, label, onchange(text), readonly, test, rows}
 * @returns {el, value(), set(text), faults(list), goto(line), focus()}
 */
export function codeEditor({ value = '', language = 'text', label, onchange, readonly, test, rows = 16 }) {
  let kind = language;
  let marks = new Map();
  const gutter = h('pre.ce-gutter', { 'aria-hidden': 'true' });
  const ground = h('div.ce-ground');
  const behind = h('pre.ce-behind', { 'aria-hidden': 'true' }, ground);
  const area = h('textarea.ce-area', {
    spellcheck: 'false',
    wrap: 'off',
    autocomplete: 'off',
    autocapitalize: 'off',
    'aria-label': label,
    readonly: readonly ? true : null,
    'data-test': test,
    value,
  });
  const says = h('p.hint.ce-hint', t('code.keys'));
  const findBar = h('div.ce-find', { hidden: true });
  const frame = h('div.ce-frame', gutter, h('div.ce-text', behind, area));
  frame.style.height = `${rows * LINE + 20}px`;
  const el = h('div.ce', findBar, frame, readonly ? null : says);
  let lines = -1;

  let all = [''];
  let shownFrom = -1,
    shownTo = -1;
  function paint() {
    all = area.value.split('\n');
    if (all.length !== lines) {
      lines = all.length;
      numbers();
    }
    shownFrom = -1;
    follow();
  }
  /** Colours of the lines in sight; of a short text all of them, for a comment may begin far above. */
  function window_() {
    const many = all.length > 800;
    const first = Math.floor(area.scrollTop / LINE);
    const last = first + Math.ceil((area.clientHeight || 600) / LINE);
    if (shownFrom >= 0 && (!many || (first >= shownFrom && last <= shownTo))) return;
    shownFrom = many ? Math.max(0, first - 60) : 0;
    shownTo = many ? Math.min(all.length, last + 60) : all.length;
    put(ground, coloured(all.slice(shownFrom, shownTo).join('\n'), kind), '\n');
  }
  function numbers() {
    const out = [];
    let plain = '';
    for (let i = 1; i <= lines; i++) {
      if (marks.has(i)) {
        out.push(plain, h('span.ce-bad', { title: marks.get(i) }, `${i}`), '\n');
        plain = '';
      } else plain += `${i}\n`;
    }
    out.push(plain);
    put(gutter, out);
  }
  function follow() {
    window_();
    ground.style.transform = `translate(${-area.scrollLeft}px, ${Math.max(0, shownFrom) * LINE - area.scrollTop}px)`;
    gutter.scrollTop = area.scrollTop;
  }
  let wanted = 0;
  const changed = () => {
    if (!wanted)
      wanted = requestAnimationFrame(() => {
        wanted = 0;
        paint();
      });
    onchange?.(area.value);
  };
  area.addEventListener('input', changed);
  area.addEventListener('scroll', follow, { passive: true });
  new ResizeObserver(follow).observe(area);
  // After Escape the next Tab leaves the editor, as it does everywhere else.
  let leaves = false;
  area.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') {
      leaves = true;
      return;
    }
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'f') {
      e.preventDefault();
      openFind();
      return;
    }
    if (e.key === 'Tab' && !leaves && !readonly) {
      e.preventDefault();
      indent(e.shiftKey);
      return;
    }
    if (e.key === 'Enter' && !readonly && !e.isComposing) {
      const start = area.value.lastIndexOf('\n', area.selectionStart - 1) + 1;
      const lead = area.value.slice(start, area.selectionStart).match(/^[ \t]*/)[0];
      if (lead) {
        e.preventDefault();
        insert(`\n${lead}`);
      }
    }
    leaves = false;
  });
  // This way the browser's own undo knows of it.
  const insert = (text) => {
    if (!document.execCommand('insertText', false, text))
      area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end');
    changed();
  };
  function indent(back) {
    const { selectionStart: a, selectionEnd: b, value: text } = area;
    if (a === b && !back) {
      insert('  ');
      return;
    }
    const from = text.lastIndexOf('\n', a - 1) + 1;
    const block = text
      .slice(from, b)
      .split('\n')
      .map((line) => (back ? line.replace(/^ {1,2}|^\t/, '') : `  ${line}`))
      .join('\n');
    area.setSelectionRange(from, b);
    insert(block);
    area.setSelectionRange(from, from + block.length);
  }

  let query;
  let count;
  function openFind() {
    if (!query) {
      query = h('input.input', {
        type: 'search',
        'aria-label': t('code.find'),
        placeholder: t('code.find'),
        'data-test': 'code-find',
        oninput: () => find(0, true),
        onkeydown: (e) => {
          if (e.key === 'Enter') {
            e.preventDefault();
            find(e.shiftKey ? -1 : 1);
          }
          if (e.key === 'Escape') {
            e.preventDefault();
            e.stopPropagation();
            findBar.hidden = true;
            area.focus();
          }
        },
      });
      count = h('span.muted', { 'aria-live': 'polite' });
      put(
        findBar,
        query,
        button(t('dag.prev_hit'), { icon: 'up', iconOnly: true, kind: 'quiet', small: true, onclick: () => find(-1) }),
        button(t('dag.next_hit'), { icon: 'down', iconOnly: true, kind: 'quiet', small: true, onclick: () => find(1) }),
        count,
      );
    }
    findBar.hidden = false;
    const chosen = area.value.slice(area.selectionStart, area.selectionEnd);
    if (chosen && !chosen.includes('\n')) query.value = chosen;
    query.focus();
    query.select();
  }
  function find(by, stay) {
    const words = query.value.toLowerCase();
    const text = area.value.toLowerCase();
    const places = [];
    if (words) for (let i = text.indexOf(words); i >= 0; i = text.indexOf(words, i + words.length)) places.push(i);
    if (!places.length) {
      count.textContent = words ? t('code.none') : '';
      return;
    }
    const here = area.selectionStart;
    let k = places.findIndex((i) => i >= here);
    if (by > 0 && places[k] === here) k += 1;
    if (by < 0) k = (k === -1 ? places.length : k) - 1;
    k = (k + places.length) % places.length;
    area.setSelectionRange(places[k], places[k] + words.length);
    count.textContent = `${k + 1}/${places.length}`;
    reveal(area.value.slice(0, places[k]).split('\n').length);
    if (!stay) query.focus();
  }
  function reveal(line) {
    const top = (line - 1) * LINE;
    if (top < area.scrollTop + 20 || top > area.scrollTop + area.clientHeight - 60)
      area.scrollTop = Math.max(0, top - area.clientHeight / 3);
    follow();
  }

  paint();
  requestAnimationFrame(follow);
  return {
    el,
    area,
    value: () => area.value,
    set(text, nextLanguage) {
      if (nextLanguage) kind = nextLanguage;
      area.value = text;
      paint();
    },
    language(next) {
      kind = next;
      paint();
    },
    /** Marks lines: [{line, what}]. */
    faults(list) {
      marks = new Map();
      for (const f of list || [])
        if (f.line > 0) marks.set(f.line, marks.has(f.line) ? `${marks.get(f.line)}\n${f.what}` : f.what);
      numbers();
    },
    goto(line) {
      const before =
        area.value
          .split('\n')
          .slice(0, line - 1)
          .join('\n').length + (line > 1 ? 1 : 0);
      const end = area.value.indexOf('\n', before);
      area.focus();
      area.setSelectionRange(before, end < 0 ? area.value.length : end);
      reveal(line);
    },
    focus: () => area.focus(),
  };
}
