// One's own account: password, sessions, tokens, language, theme, zone.

import { api, say } from '../api.js';
import { LANGUAGES, lang, t } from '../i18n.js';
import { grantWords } from '../grants.js';
import { secondFactorCard } from '../second_factor.js';
import { store } from '../store.js';
import {
  ago,
  button,
  card,
  check,
  dialog,
  field,
  h,
  input,
  pageHead,
  put,
  segmented,
  select,
  shown,
  table,
  time,
  toast,
} from '../ui.js';
import { showSecret } from './users.js';

const idOf = (x) => x.token_id ?? x.session_id;
/** `Firefox 128, Linux` of what a browser says it is. */
function browser(agent) {
  const name = /(Edg|Firefox|Chrome|Safari)\/(\d+)/.exec(agent ?? '');
  const system = /(Windows|Mac OS X|Android|iPhone|Linux)/.exec(agent ?? '');
  return name
    ? [`${name[1].replace('Edg', 'Edge')} ${name[2]}`, system?.[1]].filter(Boolean).join(', ')
    : (agent ?? '');
}

const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const PERMISSIONS = ['view', 'run', 'force', 'edit', 'script', 'admin'];

/** Tokens, with what ends them. */
export const tokenTable = (tokens, revoke) =>
  table({
    caption: t('token.title'),
    rows: tokens,
    rowKey: (x) => String(idOf(x)),
    test: 'tokens',
    empty: t('token.none'),
    columns: [
      { key: 'name', label: t('token.name') },
      {
        key: 'permissions',
        label: t('token.permissions'),
        sort: false,
        cell: (x) =>
          h(
            'span.tags',
            (x.permissions ?? []).map((p) => h('span.tag', t(`permission.${p}`))),
          ),
      },
      {
        key: 'groups',
        label: t('nav.groups'),
        sort: false,
        hide: 'narrow',
        cell: (x) => (x.groups ? x.groups.join(', ') : t('group.everywhere')),
      },
      {
        key: 'expires',
        label: t('token.expires'),
        value: (x) => x.end_time,
        cell: (x) => h('span', { class: x.is_expired ? 'late' : null }, time(x.end_time, { date: true })),
      },
      { key: 'used', label: t('token.used'), hide: 'narrow', value: (x) => x.used_time, cell: (x) => ago(x.used_time) },
      {
        key: 'do',
        label: '',
        sort: false,
        cell: (x) => button(t('token.revoke'), { small: true, kind: 'quiet', icon: 'trash', onclick: () => revoke(x) }),
      },
    ],
  }).el;

export async function mount(el, ctx) {
  ctx.title(t('nav.profile'));
  const { user, grants } = store.session;
  const sessions = h('div');
  const tokens = h('div');
  const readSessions = () =>
    shown(
      sessions,
      () => api.get('/session/sessions'),
      (got) =>
        table({
          caption: t('session.title'),
          rows: got.items ?? got,
          rowKey: (s) => String(idOf(s)),
          test: 'sessions',
          columns: [
            {
              key: 'began',
              label: t('session.began'),
              value: (s) => s.create_time,
              cell: (s) => [
                time(s.create_time, { date: true }),
                s.is_this && h('span.tag.spaced-l', t('session.this')),
              ],
            },
            { key: 'seen', label: t('session.seen'), value: (s) => s.used_time, cell: (s) => ago(s.used_time) },
            { key: 'from', label: t('audit.from'), cell: (s) => s.address },
            {
              key: 'agent',
              label: t('session.agent'),
              hide: 'narrow',
              cls: 'clip',
              cell: (s) => h('span', { title: s.agent }, browser(s.agent)),
            },
            {
              key: 'do',
              label: '',
              sort: false,
              cell: (s) =>
                button(t('session.end'), {
                  small: true,
                  kind: 'quiet',
                  icon: 'logout',
                  disabled: s.is_this ? t('session.end_this') : null,
                  onclick: async () => {
                    await api.del(api.path`/session/sessions/${idOf(s)}`);
                    readSessions();
                  },
                }),
            },
          ],
        }).el,
    );
  const readTokens = () =>
    shown(
      tokens,
      () => api.get('/session/tokens'),
      (got) =>
        tokenTable(got.items ?? got, async (x) => {
          await api.del(api.path`/session/tokens/${idOf(x)}`);
          toast(t('token.revoked'), 'good');
          readTokens();
        }),
    );
  put(
    el,
    pageHead({ title: t('nav.profile'), sub: [user.display_name, user.name].filter(Boolean).join(' · ') }),
    h(
      'div.columns',
      h(
        'div.stack',
        card(t('session.title'), { cls: 'flush' }, sessions),
        card(
          t('token.title'),
          {
            cls: 'flush',
            actions: button(t('token.new'), {
              icon: 'plus',
              small: true,
              test: 'token-new',
              onclick: () => newToken(readTokens),
            }),
          },
          tokens,
        ),
      ),
      h(
        'div.stack',
        card(
          t('prefs.title'),
          h(
            'div.stack',
            labelled(
              t('prefs.language'),
              segmented({
                label: t('prefs.language'),
                options: LANGUAGES,
                value: lang(),
                onchange: (v) => store.set({ lang: v }),
              }),
            ),
            labelled(
              t('prefs.theme'),
              segmented({
                label: t('prefs.theme'),
                options: [
                  ['auto', t('prefs.theme_auto')],
                  ['light', t('prefs.theme_light'), 'sun'],
                  ['dark', t('prefs.theme_dark'), 'moon'],
                ],
                value: store.prefs.theme,
                onchange: (v) => store.set({ theme: v }),
              }),
            ),
            labelled(
              t('prefs.zone'),
              segmented({
                label: t('prefs.zone'),
                options:
                  OWN_ZONE === 'UTC'
                    ? [['local', 'UTC']]
                    : [
                        ['local', OWN_ZONE],
                        ['utc', 'UTC'],
                      ],
                value: store.prefs.zone,
                onchange: (v) => store.set({ zone: v }),
              }),
            ),
          ),
        ),
        card(t('user.grants'), grantWords(grants)),
        user.has_password !== false && card(t('password.title'), passwordForm()),
        store.session.may_have_second_factor && card(t('factor.title'), secondFactorCard()),
      ),
    ),
  );
  await Promise.all([readSessions(), readTokens()]);
}

const labelled = (label, what) => h('div.field', h('span.field-label', label), what);

function passwordForm() {
  const old = field({
    label: t('password.old'),
    input: input({ type: 'password', autocomplete: 'current-password', test: 'password-old' }),
  });
  const next = field({
    label: t('password.new'),
    hint: t('password.hint'),
    input: input({ type: 'password', autocomplete: 'new-password', test: 'password-new' }),
  });
  const again = field({
    label: t('password.again'),
    input: input({ type: 'password', autocomplete: 'new-password', test: 'password-again' }),
  });
  const form = h(
    'form.stack',
    { onsubmit: (e) => e.preventDefault() },
    h('input', {
      type: 'text',
      autocomplete: 'username',
      value: store.session.user.name,
      hidden: true,
      'aria-hidden': 'true',
    }),
    old,
    next,
    again,
    button(t('password.change'), {
      type: 'submit',
      icon: 'key',
      onclick: async () => {
        [old, next, again].forEach((one) => one.fail(null));
        if (next.input.value.length < 8) return next.fail(t('password.short'));
        if (next.input.value !== again.input.value) return again.fail(t('password.differ'));
        try {
          const got = await api.post('/session/password', { old: old.input.value, new: next.input.value });
          if (got?.csrf) store.enter(got);
        } catch (error) {
          if (error.kind !== 'wrong-old-password') throw error;
          old.fail(say(error));
          return old.input.focus();
        }
        form.reset();
        toast(t('password.changed'), 'good');
        return undefined;
      },
    }),
  );
  return form;
}

async function newToken(done) {
  const groups = await api.all('/groups').catch(() => []);
  const name = field({ label: t('token.name'), hint: t('token.name_hint'), input: input({ test: 'token-name' }) });
  const days = field({
    label: t('token.days'),
    input: select({
      value: '90',
      options: [
        ['7', '7'],
        ['30', '30'],
        ['90', '90'],
        ['365', '365'],
      ],
    }),
  });
  const boxes = PERMISSIONS.map((p) => [
    p,
    check({
      label: t(`permission.${p}`),
      hint: t(`permission.${p}_what`),
      checked: p === 'view',
      disabled: store.may(p) ? false : store.why(p),
      test: `token-${p}`,
    }),
  ]);
  const where = groups.map((g) => [g.group ?? g.code, check({ label: g.group ?? g.code })]);
  const everywhere = check({ label: t('token.everywhere'), checked: true, onchange: (v) => (list.hidden = v) });
  const list = h(
    'div.checks-grid',
    { hidden: true },
    where.map(([, c]) => c),
  );
  dialog({
    title: t('token.new'),
    lead: t('token.lead'),
    test: 'token-dialog',
    body: [
      h('div.form', name, days),
      h(
        'fieldset',
        h('legend', t('token.permissions')),
        h(
          'div.checks-grid',
          boxes.map(([, c]) => c),
        ),
      ),
      h('fieldset', h('legend', t('nav.groups')), everywhere, list),
    ],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('token.make'),
        kind: 'primary',
        icon: 'key',
        test: 'token-make',
        run: async (close) => {
          if (!name.input.value.trim()) return name.fail(t('token.name_missing'));
          const chosen = where.filter(([, c]) => c.box.checked).map(([g]) => g);
          const made = await api.post('/session/tokens', {
            name: name.input.value.trim(),
            permissions: boxes.filter(([, c]) => c.box.checked).map(([p]) => p),
            groups: everywhere.box.checked ? null : chosen,
            days: Number(days.input.value),
          });
          close();
          showSecret(t('token.made'), t('token.made_lead'), made.token);
          return done();
        },
      },
    ],
  });
}
