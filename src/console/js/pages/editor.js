// The DAG editor: a picture, a list and a text of the same draft, in step; check, compare and store as the page of
// definitions does.

import { api } from '../api.js';
import { lang, t } from '../i18n.js';
import { askBeforeLeaving } from '../router.js';
import { store } from '../store.js';
import { announce, button, field, h, input, pageHead, put, segmented, select, settled, toast } from '../ui.js';
import { changesView, checkedWords, faultsView } from '../edit/diff.js';
import { counted } from '../dag/words.js';
import { askForJob, routineCache } from '../edit/draft/add_job.js';
import { mountCanvas } from '../edit/draft/canvas.js';
import { valuesAt } from '../edit/draft/complete.js';
import { DefinitionText, EditRefused } from '../edit/draft/document.js';
import { graphOf, waitsFor } from '../edit/draft/graph.js';
import { mountInspector } from '../edit/draft/inspector.js';
import { mountList } from '../edit/draft/list_view.js';
import { loadKit, mountText } from '../edit/draft/text_view.js';

/** What a new file begins with. */
const START = 'groups:\n  new_group:\n    name: New group\n\ndefaults:\n  group: new_group\n\njobs: {}\n';
const YAML = 'application/yaml, text/plain;q=0.9, */*;q=0.1';

export async function mount(el, ctx) {
  ctx.title?.(t('ed.title'));
  const group = ctx.query?.get('group') ?? '';
  const [kit, schema, sources, groups, text] = await Promise.all([
    loadKit(),
    api.get('/definition/schema'),
    api.get('/sources').then((page) => page.items.map((one) => one.name)),
    api.all('/groups').then((all) => all.map((one) => one.code ?? one.group)),
    group ? api.text('/definition/export', { group }, YAML) : START,
  ]);
  const head = group ? await api.get(api.path`/groups/${group}`) : null;
  const editor = new Editor(el, { kit, schema, sources, groups, group, text, version: head?.version });
  editor.open();
  return {
    change: () => false,
    destroy: () => editor.destroy(),
  };
}

class Editor {
  constructor(el, with_) {
    this.with = with_;
    this.el = el;
    this.stored = with_.text;
    this.versions = with_.version ? { [with_.group]: with_.version } : {};
    this.chosen = null;
    this.edge = null;
    this.looked = null;
    this.isPressed = false;
    this.isStale = false;
    this.routines = routineCache();
  }

  open() {
    const { kit, schema, sources, text, group } = this.with;
    const act = {
      choose: (code) => this.choose(code),
      connect: (parent, code) => this.connect(parent, code),
      disconnect: (parent, code) =>
        this.edit((doc) => doc.removeDependency(code, parent), 'ed.was_cut', { parent, job: code }),
      remove: (code) => this.remove(code),
    };
    this.canvas = mountCanvas({
      ...act,
      chooseEdge: (edge) => this.chooseEdge(edge),
      key: (e) => this.key(e),
      open: () => this.inspector.focus(),
    });
    this.list = mountList(act);
    this.inspector = mountInspector({
      ...act,
      types: valuesAt(schema, ['jobs', '', 'type']).map((one) => one.label),
      set: (code, key, value) => this.edit((doc) => doc.setField(code, key, value)),
      goto: (code) => this.show('text', () => this.text.goto(this.lineOf(code))),
    });
    this.text = mountText({
      kit,
      schema,
      text,
      known: () => ({ depends_on: this.codes(), job: this.codes(), source: sources, proc_name: this.routines.names() }),
      onchange: settled(120, () => this.read()),
    });
    this.result = h('div.je-result', { 'aria-live': 'polite', 'data-test': 'ed-result' });
    this.state = h('p.ed-state', { role: 'status', 'data-test': 'ed-state' });
    this.tools = h('div.dg-tools', { role: 'toolbar', 'aria-label': t('ed.tools') });
    this.remark = field({
      label: t('def.remark'),
      hint: t('def.remark_hint'),
      input: input({ name: 'reason', test: 'ed-remark' }),
    });
    this.buttons = h('div.def-buttons');
    this.views = segmented({
      label: t('ed.view'),
      value: 'picture',
      test: 'ed-view',
      options: [
        ['picture', t('ed.picture'), 'dag'],
        ['list', t('ed.list'), 'list'],
        ['text', t('ed.text'), 'file'],
      ],
      onchange: (name) => this.show(name),
    });
    this.frame = h(
      'div.ed',
      { 'data-view': 'picture' },
      h('div.ed-left', this.canvas.el, this.list.el, this.inspector.el),
      h('div.ed-right', { 'data-test': 'ed-yaml' }, this.text.el),
    );
    this.el.append(
      pageHead({
        title: group ? t('ed.title_of', { group }) : t('ed.title'),
        sub: t('ed.sub'),
        crumbs: [[t('def.title'), `#/definition${group ? `?group=${encodeURIComponent(group)}` : ''}`]],
      }),
      h('div.ed-bar', this.picker(), this.views, this.tools),
      this.state,
      this.frame,
      h('div.def-foot', this.remark, this.buttons),
      this.result,
    );
    this.watchPointer();
    this.canvas.size();
    this.read();
  }

  watchPointer() {
    const down = () => (this.isPressed = true);
    const up = () => {
      this.isPressed = false;
      // The click comes after this.
      if (this.isStale) setTimeout(() => this.isStale && this.read());
    };
    this.el.addEventListener('pointerdown', down, true);
    for (const kind of ['pointerup', 'pointercancel']) addEventListener(kind, up, true);
    this.unwatch = () => ['pointerup', 'pointercancel'].forEach((kind) => removeEventListener(kind, up, true));
  }

  picker() {
    const { groups, group } = this.with;
    return select({
      label: t('sf.group'),
      value: group,
      test: 'ed-group',
      options: [['', t('ed.new_file')], ...groups.map((one) => [one, one])],
      onchange: (code) => (location.hash = `#/editor${code ? `?group=${encodeURIComponent(code)}` : ''}`),
    });
  }

  codes() {
    return this.doc.jobs().map((job) => job.code);
  }

  lineOf(code) {
    return this.text
      .text()
      .slice(0, this.doc.job(code)?.at ?? 0)
      .split('\n').length;
  }

  show(name, then) {
    this.frame.dataset.view = name;
    this.views.choose(name);
    if (name === 'picture') {
      this.canvas.size();
      this.canvas.fit();
    }
    then?.();
  }

  /** The text has changed: everything else is drawn by it. */
  read() {
    const text = this.text.text();
    this.doc = new DefinitionText(text, this.with.kit);
    // A press that ends a change in a field is meant for a button: it must still be there when the press ends.
    this.isStale = this.isPressed;
    if (!this.isStale) this.draw(text);
  }

  /** Everything but the text, which is drawn by itself. */
  draw(text) {
    askBeforeLeaving(text !== this.stored ? t('def.unsaved') : null);
    if (this.looked !== null && this.looked !== text) {
      this.looked = null;
      put(this.result);
    }
    this.drawTools();
    this.drawButtons();
    const [fault] = this.doc.faults;
    if (fault) {
      // The last picture stays while a line is being typed.
      const line = text.slice(0, fault.at).split('\n').length;
      this.state.textContent = t('ed.fault', { line, what: fault.what });
      return;
    }
    this.state.classList.remove('ed-refused');
    const jobs = this.doc.jobs();
    if (!jobs.some((job) => job.code === this.chosen)) this.chosen = null;
    const graph = graphOf(jobs);
    this.state.textContent = this.doc.isEditable
      ? [
          counted('dag.counted', jobs.length, graph.edges.length),
          ...graph.unknown.slice(0, 3).map(({ job, parent }) => t('ed.unknown', { job, parent })),
        ].join(' · ')
      : t('ed.list_form');
    this.canvas.show(graph);
    this.list.show(jobs, this.chosen);
    this.inspector.show(this.doc.job(this.chosen));
  }

  choose(code) {
    this.chosen = code;
    this.edge = null;
    this.canvas.choose(code);
    this.list.show(this.doc.jobs(), code);
    this.inspector.show(this.doc.job(code));
    this.drawTools();
    const job = this.doc.job(code);
    if (!job) return;
    this.text.reveal(job.at);
    const parents = job.parents.map((one) => one.code).join(', ');
    announce(t(parents ? 'ed.chosen' : 'ed.chosen_first', { job: code, parents }));
  }

  chooseEdge(edge) {
    this.edge = edge;
    announce(t('ed.edge', { parent: edge.source, job: edge.target }));
    this.drawTools();
  }

  /** Changes the text by what `make` gives; a refusal is said and nothing is changed. */
  edit(make, said, values) {
    // What has been typed this moment counts.
    this.doc = new DefinitionText(this.text.text(), this.with.kit);
    try {
      const edits = make(this.doc);
      if (!edits.length) return false;
      this.text.change(edits);
    } catch (error) {
      if (!(error instanceof EditRefused)) throw error;
      this.refuse(t(error.key, error.values));
      return false;
    }
    this.read();
    if (said) announce(t(said, values));
    return true;
  }

  /** Says, where the picture is counted, why nothing was changed; the next change takes it away. */
  refuse(why) {
    this.state.textContent = why;
    this.state.classList.add('ed-refused');
  }

  async add() {
    const own = (key) => this.doc.plainOf(this.doc.pairOf(this.doc.root, key)?.value) ?? {};
    const named = Object.keys(own('sources'));
    const made = await askForJob({
      taken: this.codes(),
      sources: [...new Set([...named, ...this.with.sources])],
      defaults: own('defaults'),
      parent: this.chosen,
      routinesOf: (source) => this.routines.of(source),
    });
    if (made?.source && !named.includes(made.source) && !(await this.addSource(made.source))) return;
    if (made && this.edit((doc) => doc.addJob(made.code, made.fields), 'ed.added', { job: made.code }))
      this.choose(made.code);
  }

  /** A stored source is written into the file as it is stored: a file is complete in itself. */
  async addSource(name) {
    const stored = await api.get('/definition/export', { source: name, format: 'json' });
    return this.edit((doc) => doc.addSource(name, stored.sources[name]));
  }

  connect(parent, code) {
    if (parent === code || waitsFor(this.doc.jobs(), parent, code)) {
      this.refuse(t('ed.circle', { parent, job: code }));
      return;
    }
    this.edit((doc) => doc.addDependency(code, parent), 'ed.connected', { parent, job: code });
  }

  remove(code) {
    this.edit((doc) => doc.deleteJob(code), 'ed.deleted', { job: code });
  }

  removeChosen() {
    const { edge } = this;
    if (edge) {
      this.edge = null;
      this.edit((doc) => doc.removeDependency(edge.target, edge.source), 'ed.was_cut', {
        parent: edge.source,
        job: edge.target,
      });
    } else if (this.chosen) this.remove(this.chosen);
  }

  key(e) {
    const isCommand = e.ctrlKey || e.metaKey;
    const key = e.key.toLowerCase();
    const acts = isCommand
      ? { z: () => (e.shiftKey ? this.redo() : this.undo()), y: () => this.redo() }
      : {
          a: () => this.add(),
          enter: () => this.inspector.focus(),
          delete: () => this.removeChosen(),
          backspace: () => this.removeChosen(),
          escape: () => this.choose(null),
        };
    if (key === 'c' && !isCommand && this.chosen) {
      e.preventDefault();
      this.show('list');
      this.list.el.querySelector(`[data-test="ed-connect-${CSS.escape(this.chosen)}"]`)?.focus();
      return;
    }
    if (!acts[key]) return;
    e.preventDefault();
    acts[key]();
  }

  undo() {
    if (this.text.undo()) announce(t('ed.undone'));
    this.read();
  }

  redo() {
    if (this.text.redo()) announce(t('ed.redone'));
    this.read();
  }

  drawTools() {
    const can = this.text.can();
    const focused = this.tools.contains(document.activeElement) ? document.activeElement.dataset.test : null;
    put(
      this.tools,
      button(t('ed.add'), { icon: 'plus', test: 'ed-add-job', onclick: () => this.add() }),
      button(t('ed.delete'), {
        icon: 'trash',
        kind: 'quiet',
        test: 'ed-delete',
        disabled: this.chosen || this.edge ? false : t('ed.choose_job'),
        onclick: () => this.removeChosen(),
      }),
      button(t('ed.undo'), {
        icon: 'left',
        kind: 'quiet',
        test: 'ed-undo',
        disabled: !can.undo,
        onclick: () => this.undo(),
      }),
      button(t('ed.redo'), {
        icon: 'right',
        kind: 'quiet',
        test: 'ed-redo',
        disabled: !can.redo,
        onclick: () => this.redo(),
      }),
      button(t('dag.fit'), { kind: 'quiet', test: 'ed-fit', onclick: () => this.canvas.fit() }),
    );
    if (focused) this.tools.querySelector(`[data-test="${focused}"]`)?.focus();
  }

  // ---- check, compare, store

  drawButtons() {
    const why = store.why('edit');
    const isSeen = this.looked !== null;
    if (this.drawn === isSeen) return;
    this.drawn = isSeen;
    put(
      this.buttons,
      button(t('def.check'), { icon: 'check', test: 'ed-check', onclick: () => this.tried(() => this.check()) }),
      button(t('def.connect'), {
        icon: 'check',
        kind: 'quiet',
        test: 'ed-preflight',
        disabled: why,
        onclick: () => this.tried(() => this.preflight()),
      }),
      button(t('def.look'), { icon: 'compare', test: 'ed-diff', onclick: () => this.tried(() => this.compare()) }),
      button(t('def.apply'), {
        kind: 'primary',
        icon: 'check',
        test: 'ed-apply',
        disabled: why ?? (isSeen ? false : t('def.look_first')),
        onclick: () => this.tried(() => this.apply()),
      }),
    );
  }

  body() {
    return { text: this.text.text(), format: 'yaml' };
  }

  found(...parts) {
    put(this.result, parts);
    this.result.scrollIntoView({ block: 'start' });
  }

  /** Faults of a definition are shown at their lines; anything else goes on. */
  async tried(run) {
    this.text.faults([]);
    try {
      await run();
    } catch (error) {
      const faults = error.more?.faults;
      if (!Array.isArray(faults)) throw error;
      this.showFaults(faults, []);
    }
  }

  showFaults(faults, warnings) {
    this.text.faults([...faults, ...warnings.map((one) => ({ ...one, isWarning: true }))]);
    const goto = (line) => this.show('text', () => this.text.goto(line));
    this.found(h('h2', t('jbd.faults')), faultsView(faults, { warnings, goto }));
  }

  async check() {
    const got = await api.post('/definition/check', this.body());
    if (!got.ok) {
      this.showFaults(got.faults, got.warnings);
      return;
    }
    this.text.faults(got.warnings.map((one) => ({ ...one, isWarning: true })));
    const ok = checkedWords(got);
    this.found(h('p.def-ok', { role: 'status', 'data-test': 'ed-ok' }, ok), faultsView([], { warnings: got.warnings }));
  }

  async preflight() {
    const got = await api.post('/definition/preflight', this.body());
    const of = (...severities) =>
      got.findings
        .filter((one) => severities.includes(one.severity))
        .map((one) => ({ line: 0, what: one.said[lang()], cure: one.hint?.[lang()] ?? '' }));
    this.found(
      h(
        got.ok ? 'p.def-ok' : 'p',
        { role: 'status' },
        t('def.connected', { sources: got.sources.length, calls: got.calls.length, errors: got.errors }),
      ),
      faultsView(of('error'), { warnings: of('unreachable', 'warning') }),
    );
  }

  async compare() {
    const got = await api.post('/definition/diff', this.body());
    this.looked = this.text.text();
    this.drawButtons();
    this.found(
      h('h2', t('jbd.would')),
      changesView(got.changes),
      got.warnings?.length ? faultsView([], { warnings: got.warnings }) : null,
    );
  }

  async apply() {
    if (this.looked === null || this.looked !== this.text.text()) return;
    const words = this.remark.input.value.trim();
    if (words.length < 4) {
      this.remark.fail(t('def.remark_missing'));
      this.remark.input.focus();
      return;
    }
    this.remark.fail('');
    let got;
    try {
      got = await api.post('/definition/apply', { ...this.body(), remark: words, if_versions: this.versions });
    } catch (error) {
      if (error.status !== 412) throw error;
      toast(t('def.moved'), 'bad');
      return;
    }
    this.stored = this.text.text();
    this.versions = { ...this.versions, ...got.versions };
    this.looked = null;
    this.remark.input.value = '';
    askBeforeLeaving(null);
    this.drawButtons();
    this.found(
      h('p.def-ok', { role: 'status', 'data-test': 'ed-applied' }, t('def.applied', { n: got.changes?.length ?? 0 })),
    );
  }

  destroy() {
    askBeforeLeaving(null);
    this.unwatch();
    this.canvas.destroy();
    this.text.destroy();
  }
}
