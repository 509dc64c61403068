// A client generated from the API's description: it compiles, lists batches, acts on one, and follows a log.
// scripts/test-api.sh generates ./schema.d.ts from a running server and runs this with its address and a token.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.js';

const [address, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });

function required<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new Error(`${what} is missing`);
  return value;
}

// Where four eyes are set, a change may answer that it waits for a second person.
function result(answer: components['schemas']['BatchActionResult'] | components['schemas']['WaitingChange'] | undefined) {
  const there = required(answer, 'the result');
  if (!('seen' in there)) throw new Error('the change waits for a second person');
  return there;
}

const listed = await client.GET('/api/v1/batches', { params: { query: { group: 'month_end', limit: 10 } } });
const batches: components['schemas']['BatchSummary'][] = required(listed.data, 'the list').items;
const batch = required(
  batches.find((one) => one.batch_no === '202407'),
  'batch 202407',
);
if (batch.status !== 'FAILED') throw new Error(`batch 202407 is ${batch.status}`);

const path = { group: batch.group, batch_no: batch.batch_no };
const wish: components['schemas']['BatchActionRequest'] = { action: 'rerun', jobs: ['POST'] };
const preview = await client.POST('/api/v1/groups/{group}/batches/{batch_no}/actions', {
  params: { path },
  body: { ...wish },
});
const seen = result(preview.data).seen;
const done = await client.POST('/api/v1/groups/{group}/batches/{batch_no}/actions', {
  params: { path },
  body: { ...wish, seen, reason: 'a generated client reruns it' },
});
if (!result(done.data).written) throw new Error('nothing was written');

// The log, page by page as it is written, until the second attempt is over.
const lines: string[] = [];
let after: string | undefined;
let isOver = false;
for (let page = 0; page < 200 && !isOver; page += 1) {
  const log = await client.GET('/api/v1/groups/{group}/batches/{batch_no}/jobs/{job}/log', {
    params: { path: { ...path, job: 'POST' }, query: { after, limit: 100 } },
  });
  const found = required(log.data, 'the log');
  lines.push(...found.items.map((line) => `${line.attempt}: ${line.text}`));
  after = found.last ?? after;
  isOver = found.is_over && found.attempt === 2;
  await new Promise((resolve) => setTimeout(resolve, 100));
}
if (!lines.includes('2: posting')) throw new Error(`no second attempt in ${lines.join(' | ')}`);

const refused = await client.GET('/api/v1/groups/{group}/batches/{batch_no}', {
  params: { path: { group: 'month_end', batch_no: '209912' } },
});
if (refused.error?.status !== 404) throw new Error(`a batch that is not there: ${JSON.stringify(refused.error)}`);
console.error(`openapi-typescript: ${batches.length} batches, ${lines.length} lines`);
