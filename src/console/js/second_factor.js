// One's second factor: enrolled, renewed, disabled; in the profile, and first of all where the settings ask for it.

import { api } from './api.js';
import { t } from './i18n.js';
import { button, copyButton, dialog, field, h, input, put, shown, toast } from './ui.js';

const passwordField = () =>
  field({
    label: t('login.password'),
    input: input({ type: 'password', autocomplete: 'current-password', test: 'factor-password' }),
  });
const codeField = (hint) =>
  field({
    label: t('factor.code'),
    hint,
    input: input({ autocomplete: 'one-time-code', test: 'factor-code', mono: true }),
  });

/** The recovery codes, which are shown once. */
const codesView = (codes) => [
  h('p', t('factor.codes_lead')),
  h('pre', { 'data-test': 'recovery-codes' }, codes.join('\n')),
  copyButton(codes.join('\n')),
];

/**
 * Enrols: password, then the secret and a first code, then the recovery codes. `done` comes after they were shown.
 */
export function enrolSteps(host, done) {
  const password = passwordField();
  const wrong = (error) => {
    throw error;
  };
  const secretStep = async () => {
    const made = await api.post('/session/second-factor/enrol', { password: password.input.value });
    const code = codeField(t('factor.code_hint'));
    put(
      host,
      h('p', t('factor.scan')),
      // In a box of its own: what is empty in a stack is hidden, and so is an image.
      h(
        'div',
        h('img.qr', {
          alt: t('factor.qr'),
          width: 220,
          height: 220,
          src: `data:image/svg+xml;base64,${btoa(unescape(encodeURIComponent(made.qr_svg)))}`,
        }),
      ),
      h('p', t('factor.type'), ' ', h('code', { 'data-test': 'factor-secret' }, made.secret)),
      code,
      button(t('factor.confirm'), {
        kind: 'primary',
        test: 'factor-confirm',
        onclick: async () => {
          code.fail(null);
          try {
            const got = await api.post('/session/second-factor/confirm', { code: code.input.value });
            put(
              host,
              codesView(got.recovery_codes),
              button(t('factor.kept'), { kind: 'primary', test: 'factor-kept', onclick: done }),
            );
          } catch (error) {
            code.fail(error.detail ?? wrong(error));
          }
        },
      }),
    );
    code.input.focus();
  };
  put(
    host,
    password,
    button(t('factor.begin'), {
      kind: 'primary',
      test: 'factor-begin',
      onclick: async () => {
        password.fail(null);
        try {
          await secretStep();
        } catch (error) {
          password.fail(error.detail ?? wrong(error));
        }
      },
    }),
  );
  password.input.focus();
}

/** Asks for password and code, and sends them. */
function prove({ title, lead, verb, kind, path, then }) {
  const password = passwordField();
  const code = codeField(t('factor.code_or_recovery'));
  dialog({
    title,
    lead,
    size: 's',
    test: 'factor-dialog',
    body: [password, code],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: verb,
        kind,
        test: 'factor-prove',
        run: async (close) => {
          const got = await api.post(path, { password: password.input.value, code: code.input.value });
          close();
          await then(got);
        },
      },
    ],
  });
}

/** What the profile shows. */
export function secondFactorCard() {
  const el = h('div', { 'data-test': 'second-factor' });
  const read = () =>
    shown(
      el,
      () => api.get('/session/second-factor'),
      (state) => {
        if (!state.active) {
          const host = h('div.stack');
          return h(
            'div.stack',
            h('p', t('factor.none')),
            button(t('factor.enrol'), {
              icon: 'key',
              test: 'factor-enrol',
              onclick: () => {
                const box = dialog({
                  title: t('factor.enrol'),
                  size: 's',
                  test: 'factor-enrolment',
                  body: host,
                  onClose: read,
                });
                enrolSteps(host, () => box.close());
              },
            }),
          );
        }
        return h(
          'div.stack',
          h('p', t('factor.active', { n: state.recovery_codes_left })),
          h(
            'div.def-buttons',
            button(t('factor.renew'), {
              small: true,
              test: 'factor-renew',
              onclick: () =>
                prove({
                  title: t('factor.renew'),
                  lead: t('factor.renew_lead'),
                  verb: t('factor.renew'),
                  kind: 'primary',
                  path: '/session/second-factor/recovery-codes',
                  then: (got) => {
                    dialog({ title: t('factor.codes'), size: 's', body: codesView(got.recovery_codes), onClose: read });
                  },
                }),
            }),
            button(t('factor.disable'), {
              small: true,
              kind: 'danger',
              test: 'factor-disable',
              onclick: () =>
                prove({
                  title: t('factor.disable'),
                  lead: t('factor.disable_lead'),
                  verb: t('factor.disable'),
                  kind: 'danger',
                  path: '/session/second-factor/disable',
                  then: () => {
                    toast(t('common.done'), 'good');
                    return read();
                  },
                }),
            }),
          ),
        );
      },
    );
  read();
  return el;
}
