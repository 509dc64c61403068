// Everything that pages are made of.

export * from './ui/dom.js';
export * from './ui/icons.js';
export * from './ui/time.js';
export * from './ui/parts.js';
export * from './ui/dialog.js';
export * from './ui/table.js';
export { badge, counts, glyph, progress } from './status.js';
