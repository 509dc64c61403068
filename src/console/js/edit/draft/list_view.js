// The same draft as a list: every change that the picture allows, for the keyboard and for screen readers.

import { t } from '../../i18n.js';
import { button, h, put, select } from '../../ui.js';

const stops = (el) => [...el.querySelectorAll('button, select')];

/** @param on {choose(code), connect(parent, code), disconnect(parent, code), remove(code)} */
export function mountList(on) {
  const el = h('div.ed-list', { 'data-test': 'ed-list' });
  return {
    el,
    show(jobs, chosen) {
      const focused = el.contains(document.activeElement) ? document.activeElement.dataset.test : null;
      const place = focused ? stops(el).indexOf(document.activeElement) : -1;
      const codes = jobs.map((job) => job.code);
      const choices = [...el.querySelectorAll('select')].filter((picker) => picker.value);
      put(
        el,
        jobs.length
          ? h(
              'ul',
              jobs.map((job) => row(job, codes, job.code === chosen, on)),
            )
          : h('p.muted', t('ed.nothing')),
      );
      // A job that is chosen and not connected yet stays chosen: the list is drawn again a moment after each change.
      for (const { dataset, value } of choices) {
        const again = el.querySelector(`select[data-test="${CSS.escape(dataset.test)}"]`);
        if (again && [...again.options].some((option) => option.value === value)) again.value = value;
      }
      // The keyboard stays where it was; where that is gone, at what has come in its place.
      if (focused) {
        (el.querySelector(`[data-test="${CSS.escape(focused)}"]`) ?? stops(el)[place])?.focus();
        return;
      }
      const line = el.querySelector('.ed-chosen');
      if (line) el.scrollTop = line.offsetTop - el.clientHeight / 2;
    },
  };
}

function row(job, codes, isChosen, on) {
  const own = job.parents.filter((parent) => !parent.outside).map((parent) => parent.code);
  const free = codes.filter((code) => code !== job.code && !own.includes(code));
  const picker = select({
    label: t('ed.add_parent', { job: job.code }),
    test: `ed-connect-${job.code}`,
    value: '',
    options: [['', t('ed.choose_parent')], ...free.map((code) => [code, code])],
  });
  // Arrow keys walk through the options of a list that is closed: choosing one must do nothing yet.
  const add = button(t('ed.add_parent_now', { job: job.code }), {
    icon: 'plus',
    iconOnly: true,
    kind: 'quiet',
    small: true,
    test: `ed-link-${job.code}`,
    onclick: () => (picker.value ? on.connect(picker.value, job.code) : picker.focus()),
  });
  return h(
    'li',
    { class: isChosen ? 'ed-chosen' : null },
    h(
      'div.ed-row-head',
      button(job.code, {
        kind: 'quiet',
        pressed: isChosen,
        test: `ed-job-${job.code}`,
        onclick: () => on.choose(job.code),
      }),
      h('span.muted', String(job.fields.name ?? '')),
      button(t('ed.delete_job', { job: job.code }), {
        icon: 'trash',
        iconOnly: true,
        kind: 'quiet',
        small: true,
        test: `ed-delete-${job.code}`,
        onclick: () => on.remove(job.code),
      }),
    ),
    h(
      'div.ed-parents',
      h('span.muted', t('ed.waits_for')),
      own.map((parent) =>
        h(
          'span.tag',
          parent,
          button(t('ed.cut', { job: job.code, parent }), {
            icon: 'close',
            iconOnly: true,
            kind: 'quiet',
            small: true,
            test: `ed-cut-${parent}-${job.code}`,
            onclick: () => on.disconnect(parent, job.code),
          }),
        ),
      ),
      picker,
      add,
    ),
  );
}
