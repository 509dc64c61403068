// How the console's code is laid out; `npm run format` in this folder does it.
export default { printWidth: 120, singleQuote: true, arrowParens: 'always', trailingComma: 'all' };
