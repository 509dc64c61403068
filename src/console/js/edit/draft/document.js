// A definition file as an editor sees it: its jobs with their places in the text, and changes of single lines. What a
// change does not touch, comments among it, stays as it is byte for byte.

import { yaml as write } from '../yaml.js';

/** A change that cannot be made in this text; `key` names the words for the reader. */
export class EditRefused extends Error {
  constructor(key, values = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

/** The text with changes made: `[{from, to, insert}]`. */
export function applied(text, edits) {
  const sorted = [...edits].sort((a, b) => b.from - a.from);
  return sorted.reduce((all, { from, to, insert }) => all.slice(0, from) + insert + all.slice(to), text);
}

const plain = (value) => write({ x: value }).slice(3).trimEnd();
const inFlow = (value) => {
  const text = plain(value);
  return typeof value === 'string' && /[,[\]{}]/.test(text) && !text.startsWith('"') ? JSON.stringify(value) : text;
};

export class DefinitionText {
  /** @param kit what reads YAML: `parseDocument` and its companions of the package yaml. */
  constructor(text, kit) {
    this.text = text;
    this.kit = kit;
    this.doc = kit.parseDocument(text, { merge: true, keepSourceTokens: false });
    this.faults = this.doc.errors.map((error) => ({ at: error.pos[0], what: error.message.split('\n')[0] }));
    const root = this.doc.contents;
    this.root = kit.isMap(root) ? root : null;
    this.jobsPair = this.pairOf(this.root, 'jobs');
    const map = this.jobsPair && this.resolved(this.jobsPair.value);
    this.map = kit.isMap(map) ? map : null;
    /** Whether its jobs are written in a way that can be edited here: a map by code. */
    this.isEditable = !this.faults.length && (!root || !!this.root) && (!this.jobsPair?.value?.items || !!this.map);
  }

  resolved(node) {
    return this.kit.isAlias(node) ? node.resolve(this.doc) : node;
  }

  pairOf(map, key) {
    return this.kit.isMap(map) ? map.items.find((pair) => String(pair.key?.value ?? pair.key) === key) : undefined;
  }

  /** `[{code, at, fields, parents: [{code, when, outside}]}]`, in the order of the file. */
  jobs() {
    if (this.read) return this.read;
    const defaults = this.plainOf(this.pairOf(this.root, 'defaults')?.value) ?? {};
    this.read = (this.map?.items ?? []).map((pair) => {
      const own = this.plainOf(pair.value) ?? {};
      const list = own.depends_on === undefined || own.depends_on === null ? [] : [own.depends_on].flat();
      const parents = list.map(parentOf).filter((one) => one.code);
      const code = String(pair.key.value ?? pair.key);
      return { code, at: pair.key.range?.[0] ?? 0, own, fields: { ...defaults, ...own }, parents };
    });
    const extra = this.plainOf(this.pairOf(this.root, 'dependencies')?.value);
    for (const one of Array.isArray(extra) ? extra : []) {
      const job = this.read.find((j) => j.code === String(one?.job_code));
      if (job && one.depends_on) job.parents.push({ code: String(one.depends_on), when: one.when, isListed: true });
    }
    return this.read;
  }

  plainOf(node) {
    const value = this.resolved(node);
    return value && typeof value.toJS === 'function' ? value.toJS(this.doc) : (value ?? null);
  }

  job(code) {
    return this.jobs().find((one) => one.code === code);
  }

  pair(code) {
    const found = this.pairOf(this.map, code);
    if (!found) throw new EditRefused('ed.no_job', { job: code });
    return found;
  }

  // ---- places in the text

  lineStart(at) {
    return this.text.lastIndexOf('\n', at - 1) + 1;
  }

  /** Behind the line in which a place is, its line break included. */
  lineEnd(at) {
    const end = this.text.indexOf('\n', at);
    return end < 0 ? this.text.length : end + 1;
  }

  column(at) {
    return at - this.lineStart(at);
  }

  /** Where what is written of a pair ends: behind its value, or behind the colon. */
  endOf(pair) {
    const range = pair.value?.range;
    if (range && range[1] > range[0]) {
      // A block ends with the line break of its last line.
      return this.text[range[1] - 1] === '\n' ? range[1] - 1 : range[1];
    }
    const colon = this.text.indexOf(':', pair.key.range[1]);
    return colon < 0 ? pair.key.range[1] : colon + 1;
  }

  /** Where whole lines of a pair end. */
  linesEnd(pair) {
    const items = this.kit.isMap(pair.value) && !pair.value.flow ? pair.value.items : null;
    if (items?.length) return this.linesEnd(items.at(-1));
    const list = this.kit.isSeq(pair.value) && !pair.value.flow ? pair.value.items : null;
    if (list?.length) {
      const last = list.at(-1);
      if (this.kit.isMap(last) && !last.flow && last.items.length) return this.linesEnd(last.items.at(-1));
      return this.lineEnd(last.range[1]);
    }
    return this.lineEnd(this.endOf(pair));
  }

  /** New lines at the start of a line; at the end of a text without a last line break that is added. */
  insertLines(at, lines) {
    const gap = at > 0 && this.text[at - 1] !== '\n' ? '\n' : '';
    return { from: at, to: at, insert: gap + lines };
  }

  // ---- changes: each gives [{from, to, insert}]

  addJob(code, fields) {
    this.mustBeEditable();
    if (this.pairOf(this.map, code)) throw new EditRefused('ed.twice', { job: code });
    return this.addEntry({ section: 'jobs', pair: this.jobsPair, map: this.map }, code, fields);
  }

  /** A data source, unless the file has one of that name. */
  addSource(name, fields) {
    this.mustBeEditable();
    const pair = this.pairOf(this.root, 'sources');
    const map = this.kit.isMap(pair?.value) ? pair.value : null;
    if (pair?.value?.items && !map) throw new EditRefused('ed.list_form');
    return this.pairOf(map, name) ? [] : this.addEntry({ section: 'sources', pair, map }, name, fields);
  }

  addEntry({ section, pair, map }, code, fields) {
    const key = plain(code);
    if (!pair) {
      return [this.insertLines(this.text.length, `${section}:\n  ${key}:\n${write(fields, 4)}`)];
    }
    if (!map || !map.items.length) {
      const from = this.endOf({ key: pair.key, value: null });
      const value = pair.value?.range;
      const to = map && value ? value[1] : from;
      return [{ from, to, insert: `\n  ${key}:\n${write(fields, 4).trimEnd()}` }];
    }
    if (map.flow) {
      const last = map.items.at(-1);
      const at = this.endOf(last);
      return [{ from: at, to: at, insert: `, ${key}: ${flowMap(fields)}` }];
    }
    const pad = this.column(map.items[0].key.range[0]);
    const end = this.linesEnd(map.items.at(-1));
    const lead = ' '.repeat(pad);
    // Jobs that stand apart by empty lines stay so.
    const items = map.items;
    const second = items.length > 1 ? this.lineStart(items.at(-1).key.range[0]) : 0;
    const isApart = second > 1 && /\n[ \t]*\n(?:[ \t]*#[^\n]*\n)*$/.test(this.text.slice(0, second));
    return [this.insertLines(end, `${isApart ? '\n' : ''}${lead}${key}:\n${write(fields, pad + 2)}`)];
  }

  deleteJob(code) {
    this.mustBeEditable();
    const pair = this.pair(code);
    this.refuseUsedAnchors(pair);
    const edits = this.jobs()
      .filter((one) => one.code !== code && one.parents.some((p) => p.code === code && !p.outside))
      .flatMap((one) => this.removeDependency(one.code, code));
    if (this.job(code).parents.some((p) => p.isListed)) throw new EditRefused('ed.listed', { job: code });
    return [...edits, this.withoutPair(this.map, pair)];
  }

  /** A job whose anchor others use cannot go: they would lose their values. */
  refuseUsedAnchors(pair) {
    const { visit } = this.kit;
    const own = new Set();
    visit(pair.value ?? this.doc.createNode(null), {
      Node: (_, node) => {
        if (node.anchor) own.add(node.anchor);
      },
    });
    const inside = (node) => node.range[0] >= pair.key.range[0] && node.range[1] <= pair.value.range[1];
    visit(this.doc, {
      Alias: (_, node) => {
        if (own.has(node.source) && !inside(node)) throw new EditRefused('ed.anchor', { anchor: node.source });
      },
    });
  }

  /** Takes a pair out of its map; a map of one pair stays as an empty one. */
  withoutPair(map, pair) {
    const at = map.items.indexOf(pair);
    if (map.flow) {
      const next = map.items[at + 1];
      const before = map.items[at - 1];
      const from = before && !next ? this.endOf(before) : pair.key.range[0];
      return { from, to: next ? next.key.range[0] : this.endOf(pair), insert: '' };
    }
    const from = this.lineStart(pair.key.range[0]);
    if (map.items.length > 1 || map === this.map) return { from, to: this.linesEnd(pair), insert: '' };
    return { from, to: this.linesEnd(pair), insert: `${' '.repeat(this.column(pair.key.range[0]))}{}\n` };
  }

  addDependency(code, parent) {
    this.mustBeEditable();
    const pair = this.pair(code);
    if (this.job(code).parents.some((one) => one.code === parent && !one.outside)) return [];
    const found = this.pairOf(pair.value, 'depends_on');
    const list = found?.value;
    if (found && this.kit.isSeq(list) && list.items.length) {
      const last = list.items.at(-1);
      if (list.flow) return [{ from: last.range[1], to: last.range[1], insert: `, ${inFlow(parent)}` }];
      const dash = this.text.lastIndexOf('-', last.range[0] - 1);
      const lead = ' '.repeat(this.column(dash));
      return [this.insertLines(this.linesEnd(found), `${lead}- ${plain(parent)}\n`)];
    }
    const before = found ? this.plainOf(list) : null;
    const all = before === null ? [parent] : [before, parent].flat();
    return this.setField(code, 'depends_on', all);
  }

  removeDependency(code, parent) {
    this.mustBeEditable();
    const found = this.pairOf(this.pair(code).value, 'depends_on');
    const list = found?.value;
    if (!found || this.job(code).parents.some((one) => one.code === parent && one.isListed))
      throw new EditRefused('ed.listed', { job: code });
    const whole = this.plainOf(list);
    const isIt = (one) => {
      const { code: other, outside } = parentOf(one);
      return other === parent && !outside;
    };
    if (!this.kit.isSeq(list)) {
      const left = [whole].flat().filter((one) => !isIt(one));
      return this.setField(code, 'depends_on', left.length ? left : undefined);
    }
    const at = list.items.findIndex((item) => isIt(this.plainOf(item)));
    if (at < 0) throw new EditRefused('ed.no_edge', { job: code, parent });
    if (list.items.length === 1) return this.setField(code, 'depends_on', undefined);
    const item = list.items[at];
    if (list.flow) {
      const next = list.items[at + 1];
      const from = next ? item.range[0] : list.items[at - 1].range[1];
      return [{ from, to: next ? next.range[0] : item.range[1], insert: '' }];
    }
    const from = this.lineStart(this.text.lastIndexOf('-', item.range[0] - 1));
    const end = this.kit.isMap(item) && !item.flow ? this.linesEnd(item.items.at(-1)) : this.lineEnd(item.range[1]);
    return [{ from, to: end, insert: '' }];
  }

  /** Sets a key of a job; `undefined` takes it out. */
  setField(code, key, value) {
    this.mustBeEditable();
    const pair = this.pair(code);
    const map = pair.value;
    if (this.kit.isAlias(map)) throw new EditRefused('ed.anchor', { anchor: map.source });
    const found = this.pairOf(map, key);
    if (value === undefined) return found ? [this.withoutPair(map, found)] : [];
    const isEmpty = !this.kit.isMap(map) || !map.items.length;
    if (isEmpty) {
      const from = this.endOf({ key: pair.key, value: null });
      const to = this.kit.isMap(map) ? map.range[1] : from;
      if (this.map.flow) return [{ from, to, insert: ` {${key}: ${flowValue(value)}}` }];
      const pad = this.column(pair.key.range[0]) + 2;
      return [{ from, to, insert: `\n${write({ [key]: value }, pad).trimEnd()}` }];
    }
    if (map.flow) {
      if (found) {
        const from = this.endOf({ key: found.key, value: null });
        return [{ from, to: this.endOf(found), insert: ` ${flowValue(value)}` }];
      }
      const at = this.endOf(map.items.at(-1));
      return [{ from: at, to: at, insert: `, ${key}: ${flowValue(value)}` }];
    }
    const pad = this.column(map.items[0].key.range[0]);
    if (found) {
      this.refuseUsedAnchors(found);
      const isShort =
        this.kit.isScalar(found.value) || found.value?.flow || !found.value || this.kit.isAlias(found.value);
      const lines = write({ [key]: value }, pad);
      const isOne = lines.trimEnd().indexOf('\n') < 0;
      const from = found.key.range[0];
      const isBlock = /[|>]/.test(this.text[found.value?.range?.[0]] ?? '');
      if (isShort && isOne && !isBlock) return [{ from, to: this.endOf(found), insert: lines.trim() }];
      return [{ from: this.lineStart(from), to: this.linesEnd(found), insert: lines }];
    }
    // Behind the name, where people look for what a job waits for; else at the end.
    const name = key === 'depends_on' ? this.pairOf(map, 'name') : map.items.at(-1);
    const at = name ? this.linesEnd(name) : this.lineStart(map.items[0].key.range[0]);
    return [this.insertLines(at, write({ [key]: value }, pad))];
  }

  mustBeEditable() {
    if (!this.isEditable) throw new EditRefused(this.faults.length ? 'ed.faulty' : 'ed.list_form');
  }
}

function parentOf(one) {
  if (one === null || typeof one !== 'object') return { code: one === null ? '' : String(one), outside: false };
  return { code: String(one.job ?? ''), when: one.when, outside: !!(one.group || one.batch) };
}

function flowValue(value) {
  if (Array.isArray(value)) return `[${value.map(flowValue).join(', ')}]`;
  if (value && typeof value === 'object') return flowMap(value);
  return typeof value === 'string' && value.includes('\n') ? JSON.stringify(value) : inFlow(value);
}

const flowMap = (fields) =>
  `{ ${Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${flowValue(value)}`)
    .join(', ')} }`;
