// The text of a draft in CodeMirror. It holds the one history of changes: those of the picture are changes of its text.

import { t } from '../../i18n.js';
import { h } from '../../ui/dom.js';
import { complete } from './complete.js';

/** The libraries, fetched when an editor is opened. */
export const loadKit = () => import('../../../vendor/editor/editor.js');

const colour = (name) => ({ color: `var(${name})` });

/**
 * @param with_ {kit, text, schema, known(): values of keys, onchange(text)}
 * @returns {el, text(), change(edits), set(text), undo(), redo(), can(), faults(list), goto(line), focus()}
 */
export function mountText({ kit, text, schema, known, onchange }) {
  const host = h('div.ed-text-host');
  // Styles of a shadow root are sheets made by script: the page's policy allows no others.
  const root = host.attachShadow({ mode: 'open' });
  const { EditorView, EditorState, keymap, tags } = kit;
  const theme = EditorView.theme({
    '&': { height: '100%', fontSize: '13px', color: 'var(--text)', backgroundColor: 'var(--surface)' },
    '.cm-scroller': { fontFamily: 'ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace', lineHeight: '20px' },
    '.cm-content': { caretColor: 'var(--text)' },
    '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--muted)', border: '0' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
    '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '.cm-tooltip, .cm-panels': {
      backgroundColor: 'var(--surface)',
      color: 'var(--text)',
      border: '1px solid var(--line)',
    },
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
      backgroundColor: 'var(--accent)',
      color: 'var(--on-accent)',
    },
    '.cm-completionDetail': { fontStyle: 'normal', marginLeft: '1em' },
  });
  const style = kit.HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], ...colour('--blue') },
    { tag: [tags.string, tags.content], ...colour('--text') },
    { tag: tags.comment, ...colour('--muted') },
  ]);
  const source = (context) => {
    const found = complete(schema, context.state.doc.toString(), context.pos, known());
    if (!found?.options.length) return null;
    if (!context.explicit && found.from === context.pos) return null;
    const options = found.options.map(({ label, detail, insert }) => ({
      label,
      info: detail || undefined,
      apply: insert,
    }));
    return { from: found.from, options, validFor: /^[\w.-]*$/ };
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        kit.lineNumbers(),
        kit.history(),
        kit.drawSelection(),
        kit.yaml(),
        kit.indentUnit.of('  '),
        kit.syntaxHighlighting(style),
        kit.autocompletion({ override: [source] }),
        kit.lintGutter(),
        kit.search({ top: true }),
        keymap.of([...kit.completionKeymap, ...kit.searchKeymap, ...kit.historyKeymap, ...kit.defaultKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': t('ed.text'), 'data-test': 'ed-text' }),
        EditorView.updateListener.of((update) => update.docChanged && onchange(update.state.doc.toString())),
        theme,
      ],
    }),
  });
  // Long lines are scrolled by keyboard as well.
  view.scrollDOM.tabIndex = 0;
  view.scrollDOM.setAttribute('role', 'group');
  view.scrollDOM.setAttribute('aria-label', t('ed.text'));
  const now = () => view.state.doc.toString();
  return {
    el: host,
    view,
    text: now,
    change: (edits) => view.dispatch({ changes: edits, userEvent: 'input.picture' }),
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    undo: () => kit.undo(view),
    redo: () => kit.redo(view),
    can: () => ({ undo: kit.undoDepth(view.state) > 0, redo: kit.redoDepth(view.state) > 0 }),
    /** Marks lines: `[{line, what}]`. */
    faults(list) {
      const marks = list
        .filter((one) => one.line > 0 && one.line <= view.state.doc.lines)
        .map(({ line, what, isWarning }) => {
          const at = view.state.doc.line(line);
          return { from: at.from, to: at.to, severity: isWarning ? 'warning' : 'error', message: what };
        });
      view.dispatch(kit.setDiagnostics(view.state, marks));
    },
    /** Scrolls the text alone: the page stays where the reader is. */
    reveal(at) {
      const { scrollDOM } = view;
      scrollDOM.scrollTop = view.lineBlockAt(at).top - scrollDOM.clientHeight / 2;
    },
    goto(line) {
      const at = view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines)));
      view.dispatch({ selection: { anchor: at.from, head: at.to }, scrollIntoView: true });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}
