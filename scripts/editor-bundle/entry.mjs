// What the console's editor takes from its libraries: CodeMirror 6 for the text, yaml for the places of nodes in it.

export { autocompletion, completionKeymap, startCompletion } from '@codemirror/autocomplete';
export { defaultKeymap, history, historyKeymap, redo, redoDepth, undo, undoDepth } from '@codemirror/commands';
export { yaml } from '@codemirror/lang-yaml';
export { HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language';
export { lintGutter, setDiagnostics } from '@codemirror/lint';
export { search, searchKeymap } from '@codemirror/search';
export { EditorState } from '@codemirror/state';
export { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
export { tags } from '@lezer/highlight';
export { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument, visit } from 'yaml';
