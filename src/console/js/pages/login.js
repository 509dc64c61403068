// Before somebody is known: log in, set up the first account, choose a new password.

import { api, say } from '../api.js';
import { t } from '../i18n.js';
import { enrolSteps } from '../second_factor.js';
import { languageMenu, mark, themeMenu } from '../shell.js';
import { store } from '../store.js';
import { button, field, h, icon, input, linkButton, put } from '../ui.js';

/** Draws what stands before the console. `enter(session)` goes in. */
export function drawGate(host, { why, mustChange, mustEnrol, enter }) {
  const options = store.options ?? {};
  // What the other provider sent back: #/login?oidc=refused
  const oidc = /^#\/login\?.*oidc=(\w+)/.exec(location.hash)?.[1];
  const body = mustChange
    ? change(enter)
    : mustEnrol
      ? enrol(enter)
      : options.setup_needed
        ? setUp(enter)
        : logIn(enter, options);
  document.title = `${body.title} – Procession`;
  put(
    host,
    h(
      'main.gate',
      { id: 'main', 'data-page': body.test, 'data-ready': 'true' },
      h(
        'div.gate-card',
        h('div.brand', mark(), h('span', 'Procession'), options.public_name && h('span.place', options.public_name)),
        h('div', h('h1', body.title), body.lead && h('p.lead', body.lead)),
        why && h('p.note', { role: 'status' }, icon('info'), h('span', why)),
        oidc &&
          h(
            'p.note.note-bad',
            { role: 'alert', 'data-test': 'error' },
            icon('warning'),
            h(
              'span',
              t(oidc === 'unreachable' ? 'login.oidc_unreachable' : 'login.oidc_refused', {
                name: options.oidc?.name ?? 'SSO',
              }),
            ),
          ),
        body.form,
        h(
          'div.gate-foot',
          h('span.muted', options.version ? `${t('login.version')} ${options.version}` : ''),
          h('span.row', languageMenu(), themeMenu()),
        ),
      ),
    ),
  );
  host.querySelector('input')?.focus();
}

function form(name, fields, verb, send, test, below) {
  const wrong = h('p.note.note-bad', { role: 'alert', hidden: true, 'data-test': 'error' });
  const go = button(verb, { kind: 'primary', type: 'submit', test });
  const el = h(
    'form',
    {
      method: 'post',
      action: '#',
      'data-test': name,
      onsubmit: async (event) => {
        event.preventDefault();
        if (go.classList.contains('busy')) return;
        wrong.hidden = true;
        go.classList.add('busy');
        try {
          await send();
        } catch (error) {
          put(wrong, icon('warning'), h('span', error.field ? error.message : say(error)));
          wrong.hidden = false;
          (error.field ?? fields.find((f) => f.input).input).focus();
        } finally {
          go.classList.remove('busy');
        }
      },
    },
    fields,
    wrong,
    go,
    below,
  );
  return el;
}

const told = (at, words) => Object.assign(new Error(words), { field: at });

function logIn(enter, options) {
  const name = field({
    label: t('login.name'),
    input: input({ name: 'name', autocomplete: 'username', test: 'login-name', required: true }),
  });
  const password = field({
    label: t('login.password'),
    hint: options.ldap && t('login.ldap_hint', { name: options.ldap.name }),
    input: input({
      type: 'password',
      name: 'password',
      autocomplete: 'current-password',
      test: 'login-password',
      required: true,
    }),
  });
  // Asked for once the password is known to be right.
  const code = field({
    label: t('factor.code'),
    hint: t('factor.code_or_recovery'),
    input: input({ name: 'code', autocomplete: 'one-time-code', test: 'login-code', mono: true }),
  });
  code.hidden = true;
  const oidc = options.oidc && [
    h('div.or', t('login.or')),
    linkButton(t('login.oidc', { name: options.oidc.name ?? 'SSO' }), '/api/v1/oidc/start', {
      icon: 'key',
      test: 'oidc',
    }),
  ];
  return {
    title: t('login.title'),
    test: 'login',
    form: form(
      'login',
      [name, password, code],
      t('login.in'),
      async () => {
        const sent = { name: name.input.value.trim(), password: password.input.value };
        if (!code.hidden && code.input.value.trim()) sent.code = code.input.value.trim();
        try {
          enter(await api.post('/session', sent, { public: true }));
        } catch (error) {
          if (!['code-needed', 'wrong-code'].includes(error.kind)) throw error;
          code.hidden = false;
          code.input.value = '';
          throw told(code.input, t(error.kind === 'code-needed' ? 'factor.needed' : 'factor.wrong'));
        }
      },
      'login-go',
      oidc,
    ),
  };
}

function enrol(enter) {
  const host = h('div.stack', { 'data-test': 'must-enrol' });
  enrolSteps(host, async () => enter(await api.get('/session')));
  return { title: t('factor.must'), lead: t('factor.must_lead'), test: 'must-enrol', form: host };
}

function twice(first, second) {
  if (first.input.value.length < 8) throw told(first.input, t('password.short'));
  if (first.input.value !== second.input.value) throw told(second.input, t('password.differ'));
}

function setUp(enter) {
  const secret = field({
    label: t('setup.secret'),
    hint: t('setup.secret_hint'),
    input: input({ name: 'secret', test: 'setup-secret', required: true, mono: true }),
  });
  const name = field({
    label: t('login.name'),
    input: input({ name: 'name', autocomplete: 'username', test: 'setup-name', required: true }),
  });
  const shown = field({
    label: t('user.display_name'),
    input: input({ name: 'display_name', autocomplete: 'name', test: 'setup-display' }),
  });
  const password = field({
    label: t('login.password'),
    hint: t('password.hint'),
    input: input({
      type: 'password',
      name: 'password',
      autocomplete: 'new-password',
      test: 'setup-password',
      required: true,
    }),
  });
  const again = field({
    label: t('password.again'),
    input: input({
      type: 'password',
      name: 'repeat',
      autocomplete: 'new-password',
      test: 'setup-again',
      required: true,
    }),
  });
  return {
    title: t('setup.title'),
    lead: t('setup.lead'),
    test: 'setup',
    form: form(
      'setup',
      [secret, name, shown, password, again],
      t('setup.go'),
      async () => {
        twice(password, again);
        const session = await api.post(
          '/setup',
          {
            secret: secret.input.value.trim(),
            name: name.input.value.trim(),
            password: password.input.value,
            display_name: shown.input.value.trim() || undefined,
          },
          { public: true },
        );
        store.options = { ...store.options, setup_needed: false };
        enter(session);
      },
      'setup-go',
    ),
  };
}

function change(enter) {
  const old = field({
    label: t('password.old'),
    input: input({ type: 'password', autocomplete: 'current-password', test: 'password-old', required: true }),
  });
  const password = field({
    label: t('password.new'),
    hint: t('password.hint'),
    input: input({ type: 'password', autocomplete: 'new-password', test: 'password-new', required: true }),
  });
  const again = field({
    label: t('password.again'),
    input: input({ type: 'password', autocomplete: 'new-password', test: 'password-again', required: true }),
  });
  return {
    title: t('password.must'),
    lead: t('password.must_lead'),
    test: 'must-change',
    form: form(
      'password',
      [
        h('input', {
          type: 'text',
          name: 'username',
          autocomplete: 'username',
          value: store.session?.user?.name ?? '',
          hidden: true,
        }),
        old,
        password,
        again,
      ],
      t('password.change'),
      async () => {
        twice(password, again);
        await api.post('/session/password', { old: old.input.value, new: password.input.value });
        enter(await api.get('/session'));
      },
      'password-go',
    ),
  };
}
