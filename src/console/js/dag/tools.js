// The row of tools above a picture.

import { t } from '../i18n.js';
import { h, put, settled } from '../ui/dom.js';
import { button, menu, select } from '../ui.js';

const STEPS = ['1', '2', '3', '5', ''];

/** The row of tools above a picture: search, zoom, what of it is shown and how. */
export function drawTools(panel) {
  const { wish } = panel;
  panel.nextEl ??= h('span');
  panel.searchEl = h('input.dg-search', {
    type: 'search',
    placeholder: t('dag.search'),
    'aria-label': t('dag.search'),
    'data-test': 'dag-search',
    value: panel.words || '',
    oninput: settled(120, () => panel.search(panel.searchEl.value)),
    onkeydown: (e) => {
      if (e.key === 'Enter') {
        e.preventDefault();
        panel.jump(e.shiftKey ? -1 : 1);
      }
      if (e.key === 'Escape') {
        panel.searchEl.value = '';
        panel.search('');
        panel.stage.focus();
      }
    },
  });
  panel.foundEl = h('span.dg-found', { 'aria-live': 'polite' });
  put(
    panel.tools,
    h(
      'div.dg-bar',
      panel.nextEl,
      panel.searchEl,
      panel.foundEl,
      // Of use only while something is found.
      (panel.hitsEl ??= h(
        'span.dg-bar',
        { hidden: true },
        button(t('dag.prev_hit'), {
          kind: 'quiet',
          icon: 'up',
          iconOnly: true,
          onclick: () => panel.jump(-1),
          test: 'dag-prev',
        }),
        button(t('dag.next_hit'), {
          kind: 'quiet',
          icon: 'down',
          iconOnly: true,
          onclick: () => panel.jump(1),
          test: 'dag-next',
        }),
      )),
    ),
    h(
      'div.dg-bar',
      button(t('dag.zoom_out'), {
        kind: 'quiet',
        icon: 'dag-minus',
        iconOnly: true,
        onclick: () => panel.view.zoom(1 / 1.3),
        test: 'dag-zoom-out',
      }),
      panel.zoomEl,
      button(t('dag.zoom_in'), {
        kind: 'quiet',
        icon: 'plus',
        iconOnly: true,
        onclick: () => panel.view.zoom(1.3),
        test: 'dag-zoom-in',
      }),
      button(t('dag.fit'), {
        kind: 'quiet',
        onclick: () => panel.fit(),
        test: 'dag-fit',
        title: t('dag.fit_title'),
      }),
      button('1:1', { kind: 'quiet', onclick: () => panel.view.one(), test: 'dag-one', title: t('dag.one_title') }),
    ),
    h(
      'div.dg-bar',
      select({
        options: [
          ['', t('dag.all_jobs')],
          ['group', t('dag.by_group')],
          ['tag', t('dag.by_tag')],
        ],
        value: wish.collapse,
        label: t('dag.collapse'),
        test: 'dag-collapse',
        onchange: (v) => panel.change({ collapse: v }),
      }),
      select({
        options: [
          ['auto', t('dag.auto')],
          ['LR', t('dag.lr')],
          ['TB', t('dag.tb')],
        ],
        value: wish.direction,
        label: t('dag.direction'),
        test: 'dag-direction',
        onchange: (v) => panel.change({ direction: v }),
      }),
      button(t('dag.reduce'), {
        kind: 'quiet',
        pressed: wish.reduce === 'transitive',
        onclick: () => panel.change({ reduce: wish.reduce ? '' : 'transitive' }),
        test: 'dag-reduce',
        title: t('dag.reduce_title'),
      }),
      panel.with.live &&
        button(t('dag.critical'), {
          kind: 'quiet',
          pressed: panel.critical,
          onclick: () => panel.toggleCritical(),
          test: 'dag-critical',
          title: t('dag.critical_title'),
        }),
    ),
    h(
      'div.dg-bar',
      (panel.fullButton = button(t('dag.full'), {
        kind: 'quiet',
        icon: 'dag-full',
        iconOnly: true,
        pressed: panel.isFull === true,
        onclick: () => panel.full(),
        test: 'dag-full',
      })),
      menu(
        t('dag.save'),
        [
          { label: 'SVG', icon: 'download', note: t('dag.save_svg'), run: () => panel.save('svg'), test: 'dag-svg' },
          { label: 'PNG', icon: 'download', note: t('dag.save_png'), run: () => panel.save('png'), test: 'dag-png' },
        ],
        { icon: 'download', iconOnly: true, kind: 'quiet', test: 'dag-save' },
      ),
      panel.with.listHref &&
        h('a.btn.btn-quiet', { href: panel.with.listHref, 'data-test': 'dag-list' }, t('dag.as_list')),
    ),
  );
  drawCrumb(panel);
}

/** Around which job the picture is cut out, and how far. */
function drawCrumb(panel) {
  const { wish } = panel;
  if (!wish.focus) return put(panel.crumb);
  const steps = (key) =>
    select({
      options: STEPS.map((n) => [n, n === '' ? t('dag.all_levels') : n]),
      value: wish[key],
      label: t(`dag.${key}`),
      test: `dag-${key}`,
      onchange: (v) => panel.change({ [key]: v }),
    });
  return put(
    panel.crumb,
    h('span', t('dag.around', { job: wish.focus })),
    h('label', t('dag.up'), ' ', steps('up')),
    h('label', t('dag.down'), ' ', steps('down')),
    button(t('dag.whole'), { kind: 'quiet', onclick: () => panel.change({ focus: '' }), test: 'dag-whole' }),
  );
}
