// What the editor writes as YAML is read by another YAML library as the same values.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';

const { yaml } = await import('../../../src/console/js/edit/yaml.js');

const values = {
  'words that YAML takes for something else': { a: 'yes', b: 'null', c: '~', d: 'no', e: 'on', f: 'True' },
  'texts that look like numbers': { code: '007', version: '1.10', hex: '0x1F', exponent: '1e3', time: '02:00' },
  'marks of YAML': {
    a: 'x: y',
    b: 'x #y',
    c: '- x',
    d: '*x',
    e: '&x',
    f: '{x}',
    g: '[x]',
    h: '!x',
    i: '%x',
    j: '@x',
    k: '`x',
  },
  'blanks at the ends': { a: ' x', b: 'x ', c: '' },
  Chinese: { name: '月末结账', description: '过账：总账' },
  quotes: { a: '"', b: "'", c: '\\', d: 'it"s' },
  'several lines': { script: 'set -e\n\n  indented\nend\n', sql: 'SELECT 1\nFROM t', first: '  blank first\nsecond' },
  'numbers, truth and nothing': { count: 1, share: 1.5, on_ice: true, is_active: false, owner: null },
  'lists and maps': {
    depends_on: ['A', 'B'],
    params: [
      { name: 'x', value: '1, 2' },
      { name: 'y', value: 'a\nb' },
    ],
    retry: { count: 2 },
  },
  'empty ones': { list: [], map: {} },
};
for (const [name, value] of Object.entries(values)) {
  // YAML 1.1 takes more words for something else than 1.2, and readers of both are in use.
  for (const version of ['1.1', '1.2']) {
    test(`${name}, YAML ${version}`, () => {
      assert.deepEqual(parse(yaml({ jobs: { J: value } }), { version }), { jobs: { J: value } });
    });
  }
}
