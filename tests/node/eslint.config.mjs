// What is looked for in the console's code, beside its layout (prettier.config.mjs).
import js from '@eslint/js';
import globals from 'globals';

export default [
  { ...js.configs.recommended, files: ['**/*.js', '**/*.mjs'] },
  {
    files: ['**/src/console/**/*.js'],
    languageOptions: { ecmaVersion: 2024, sourceType: 'module', globals: globals.browser },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': ['error', { allow: ['error'] }],
      'no-shadow': ['error', { allow: ['_'] }],
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
      // Prettier breaks what it can; long texts stay in one piece, so that they can be searched for.
      'max-len': [
        'error',
        { code: 120, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true, ignoreUrls: true },
      ],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['**/tests/node/**/*.mjs'],
    languageOptions: { ecmaVersion: 2024, sourceType: 'module', globals: { ...globals.node, ...globals.browser } },
  },
];
