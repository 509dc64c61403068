// The API: requests with the CSRF token and an idempotency key, answers kept by their ETag, refusals as sentences.

import { has, locale, t } from './i18n.js';
import { store } from './store.js';

const ROOT = '/api/v1';
const KEPT = 120;
const kept = new Map();

/** A request that was refused, or did not reach anybody (status 0). */
export class ApiError extends Error {
  constructor(status, kind, detail, more = {}) {
    super(detail);
    Object.assign(this, { status, kind, detail, more });
  }
}

/** A path with its parts encoded: path`/groups/${group}`. */
export const path = (parts, ...values) =>
  parts.reduce((all, part, i) => all + part + (i < values.length ? encodeURIComponent(values[i]) : ''), '');

function address(at, query) {
  const all = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    all.set(key, Array.isArray(value) ? value.join(',') : String(value));
  }
  const tail = all.toString();
  return ROOT + at + (tail ? `?${tail}` : '');
}

async function refusal(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy's page, or nothing.
  }
  const kind =
    String(body.type ?? '')
      .split(':')
      .pop() || `http-${response.status}`;
  const wait = Number(response.headers.get('retry-after')) || undefined;
  return new ApiError(response.status, kind, body.detail ?? response.statusText, { ...body, wait });
}

async function send(method, at, { query, body, headers = {}, signal, public: isPublic } = {}) {
  const url = address(at, query);
  const all = { 'Accept-Language': locale(), Accept: 'application/json', ...headers };
  const before = method === 'GET' ? kept.get(url) : undefined;
  if (before && !headers.Accept) all['If-None-Match'] = before.tag;
  if (method !== 'GET') {
    all['X-CSRF-Token'] = store.session?.csrf ?? '';
    all['Idempotency-Key'] = headers['Idempotency-Key'] ?? crypto.randomUUID?.() ?? key();
    if (body !== undefined) all['Content-Type'] = 'application/json';
  }
  let response;
  try {
    response = await fetch(url, {
      method,
      headers: all,
      signal,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    store.tell('reach', false);
    throw new ApiError(0, 'unreachable', t('problem.unreachable'));
  }
  store.tell('reach', true);
  if (response.status === 304 && before) return before.answer;
  if (!response.ok) {
    const error = await refusal(response);
    if (error.status === 401 && !isPublic && store.session) store.tell('expired', error);
    if (error.kind === 'must-change-password' && store.session) store.tell('must-change', error);
    throw error;
  }
  return { response, url };
}

const key = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

async function json(method, at, options) {
  const got = await send(method, at, options);
  if (!got.response) return got;
  if (got.response.status === 204) return null;
  const text = await got.response.text();
  const answer = text ? JSON.parse(text) : null;
  if (got.response.status === 202 && answer?.change_request) {
    // Nothing is done yet: whoever asked must not be told that it is.
    const { change_request_id: id, summary } = answer.change_request;
    store.tell('change-waits', answer.change_request);
    throw new ApiError(202, 'change-waits', t('change.waits', { id, summary }), answer);
  }
  const tag = got.response.headers.get('etag');
  if (method === 'GET' && tag) {
    kept.delete(got.url);
    kept.set(got.url, { tag, answer });
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  }
  return answer;
}

export const api = {
  path,
  get: (at, query, options) => json('GET', at, { query, ...options }),
  post: (at, body = {}, options) => json('POST', at, { body, ...options }),
  put: (at, body = {}, options) => json('PUT', at, { body, ...options }),
  patch: (at, body = {}, options) => json('PATCH', at, { body, ...options }),
  del: (at, body = {}, options) => json('DELETE', at, { body, ...options }),
  /** Something that is not JSON. */
  async text(at, query, accept = '*/*') {
    const got = await send('GET', at, { query, headers: { Accept: accept } });
    return got.response.text();
  },
  /** The address of a file, for a link. */
  href: address,
  /** All pages of a list, as far as so many items. */
  async all(at, query = {}, most = 2000) {
    const items = [];
    let cursor;
    do {
      const page = await json('GET', at, { query: { ...query, limit: Math.min(500, most), cursor } });
      if (Array.isArray(page)) return page;
      items.push(...(page.items ?? []));
      cursor = page.next;
    } while (cursor && items.length < most);
    return items;
  },
  forget: () => kept.clear(),
};

/** What a refusal says, in the reader's language where we have words for its kind. */
export function say(error) {
  if (!(error instanceof ApiError)) return String(error?.message ?? error);
  const words = `problem.${error.kind}`;
  const permission = error.more?.permission;
  const lead = has(words)
    ? t(words, { permission: permission ? t(`permission.${permission}`) : '', seconds: error.more?.wait ?? '' })
    : null;
  // An English reader has the sentence itself; others get their words first and the sentence after them.
  if (!lead) return error.detail || t('problem.http', { status: error.status });
  const adds =
    ['refused', 'unreadable', 'moved', 'changed-meanwhile', 'unfit', 'not-yours-to-give'].includes(error.kind) &&
    error.detail;
  return adds ? `${lead} ${error.detail}` : lead;
}

export { live } from './live.js';
