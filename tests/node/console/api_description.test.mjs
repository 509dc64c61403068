// Parts of the API's description with their references in place.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { resolvePart } = await import('../../../src/console/js/api_description.js');

const spec = {
  security: [{ token: [] }],
  paths: {
    '/a/{b}': {
      get: { responses: { 200: { $ref: '#/components/responses/Ok' }, 404: { $ref: '#/components/responses/None' } } },
      post: { security: [], operationId: 'x' },
    },
  },
  components: {
    responses: {
      Ok: { content: { 'a/b': { schema: { $ref: '#/components/schemas/Tree', description: 'A tree.' } } } },
    },
    schemas: {
      Tree: {
        description: 'Node.',
        properties: { below: { type: 'array', items: { $ref: '#/components/schemas/Tree' } } },
      },
      'a/b': { type: 'string' },
      Odd: { anyOf: [{ $ref: '#/components/schemas/a~1b' }, { type: 'null' }] },
    },
  },
};

test('references are followed until they lead back, and say where they came from', () => {
  const before = JSON.stringify(spec);
  const got = resolvePart(spec, ['paths', '/a/{b}', 'get'], 'http://h/api.json');
  assert.deepEqual(got.responses[200], {
    $$ref: 'http://h/api.json#/components/responses/Ok',
    content: {
      'a/b': {
        schema: {
          $$ref: 'http://h/api.json#/components/schemas/Tree',
          // What stands beside a reference comes before what is behind it.
          description: 'A tree.',
          properties: { below: { type: 'array', items: { $ref: '#/components/schemas/Tree' } } },
        },
      },
    },
  });
  // What is not there stays as it is.
  assert.deepEqual(got.responses[404], { $ref: '#/components/responses/None' });
  assert.deepEqual(got.security, [{ token: [] }]);
  assert.equal(JSON.stringify(spec), before);
});

test('an operation keeps its own security, and escaped names are found', () => {
  assert.deepEqual(resolvePart(spec, ['paths', '/a/{b}', 'post']), { security: [], operationId: 'x' });
  const odd = resolvePart(spec, ['components', 'schemas', 'Odd']);
  assert.deepEqual(odd.anyOf[0], { type: 'string', $$ref: '#/components/schemas/a~1b' });
  assert.equal(resolvePart(spec, ['components', 'schemas', 'None']), null);
});
