// Tables: sorted by their heads, walked by arrows, and with only the rows in sight drawn when there are many.

import { locale, t } from '../i18n.js';
import { h, put, settled } from './dom.js';
import { empty } from './parts.js';

const MANY = 200;
const ROW = 33;
const BEYOND = 12;

/**
 * `columns`: [{key, label, cell(row), value(row) to sort by, num, width, sort: false, hide: 'narrow' | 'middle'}].
 * `rowKey(row)` names a row; `onOpen(row)` is what Enter and a click do; `select` is a Set of names for boxes in front.
 */
export function table({
  columns,
  rows = [],
  rowKey = (r) => r.id,
  onOpen,
  empty: none,
  caption,
  select,
  onSelect,
  test,
  rowClass,
  sort,
  onSort,
  current,
  tall,
  locked,
}) {
  let order = sort ?? null;
  let shownRows = [];
  let all = rows;
  let cursor = -1;
  const byKey = Object.fromEntries(columns.map((c) => [c.key, c]));
  const head = h('tr');
  const body = h('tbody');
  const frame = h(
    'table.table',
    { 'data-test': test },
    caption && h('caption.visually-hidden', caption),
    h('thead', head),
    body,
  );
  const scroller = h(
    'div.table-scroll',
    { tabindex: '0', role: 'region', 'aria-label': caption ?? t('common.table') },
    frame,
  );
  const el = h('div.table-host', { class: tall ? 'tall' : null }, scroller);
  const fresh = h('div');
  const collator = new Intl.Collator(locale(), { numeric: true });
  const wide = columns.length + (select ? 1 : 0);

  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === null || a === undefined || a === '') return 1;
    if (b === null || b === undefined || b === '') return -1;
    return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
  };

  function sorted() {
    const column = order && byKey[order.key];
    if (!column || onSort) return all;
    const value = column.value ?? ((r) => r[column.key]);
    const sign = order.down ? -1 : 1;
    return all
      .map((row, i) => [value(row), i, row])
      .sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1])
      .map((x) => x[2]);
  }

  let boxAll;
  function drawHead() {
    boxAll =
      select &&
      h('input', {
        type: 'checkbox',
        'aria-label': t('common.select_all'),
        'data-test': 'select-all',
        onchange: (e) => {
          shownRows.forEach((r) => (e.target.checked ? select.add(rowKey(r)) : select.delete(rowKey(r))));
          drawRows();
          onSelect?.(select);
        },
      });
    put(
      head,
      select && h('th.col-box', { scope: 'col' }, boxAll),
      columns.map((c) => {
        const is = order?.key === c.key;
        const can = c.sort !== false && !locked;
        return h(
          'th',
          {
            scope: 'col',
            class: [c.num && 'num', c.hide && `hide-${c.hide}`].filter(Boolean).join(' ') || null,
            css: c.width ? { width: c.width } : {},
            'aria-sort': is ? (order.down ? 'descending' : 'ascending') : null,
          },
          can
            ? h(
                'button.sort',
                {
                  type: 'button',
                  onclick: () => {
                    order = { key: c.key, down: is ? !order.down : !!c.firstDown };
                    onSort?.(order);
                    drawHead();
                    draw();
                    head.querySelectorAll('button.sort')[columns.filter((x) => x.sort !== false).indexOf(c)]?.focus();
                  },
                },
                h('span', c.label),
                h('span.sort-mark', { 'aria-hidden': 'true' }, is ? (order.down ? '▾' : '▴') : ''),
              )
            : c.label || h('span.visually-hidden', t('common.actions')),
        );
      }),
    );
  }

  function drawRow(row, i) {
    const name = rowKey(row);
    const tr = h(
      'tr',
      {
        'data-row': i,
        'data-key': name,
        tabindex: onOpen ? (i === Math.max(0, cursor) ? '0' : '-1') : null,
        class:
          [onOpen && 'opens', rowClass?.(row), current?.() === name && 'is-current'].filter(Boolean).join(' ') || null,
      },
      select &&
        h(
          'td.col-box',
          h('input', {
            type: 'checkbox',
            checked: select.has(name),
            'aria-label': t('common.select_row', { name }),
            onclick: (e) => e.stopPropagation(),
            onchange: (e) => {
              if (e.target.checked) select.add(name);
              else select.delete(name);
              boxes();
              onSelect?.(select);
            },
          }),
        ),
      columns.map((c, at) =>
        h(
          at === 0 ? 'th' : 'td',
          {
            scope: at === 0 ? 'row' : null,
            // On a phone each row is a card, and a value stands beside the name of its column.
            'data-label': at === 0 || typeof c.label !== 'string' ? null : c.label || null,
            class: [c.num && 'num', c.hide && `hide-${c.hide}`, c.cls].filter(Boolean).join(' ') || null,
          },
          c.cell ? c.cell(row) : (row[c.key] ?? ''),
        ),
      ),
    );
    return tr;
  }

  function boxes() {
    if (!boxAll) return;
    const n = shownRows.filter((r) => select.has(rowKey(r))).length;
    boxAll.checked = n > 0 && n === shownRows.length;
    boxAll.indeterminate = n > 0 && n < shownRows.length;
  }

  let top = -1;
  function drawRows() {
    const isMany = shownRows.length > MANY;
    const held = document.activeElement?.closest?.('tr')?.dataset.key;
    const inside = held !== undefined && body.contains(document.activeElement);
    scroller.classList.toggle('virtual', isMany);
    if (!isMany) put(body, shownRows.map(drawRow));
    else {
      const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - BEYOND);
      const last = Math.min(shownRows.length, first + Math.ceil((scroller.clientHeight || 800) / ROW) + 2 * BEYOND);
      top = first;
      const gap = (n) =>
        n > 0 && h('tr.gap', { 'aria-hidden': 'true' }, h('td', { colspan: wide, css: { height: `${n * ROW}px` } }));
      put(
        body,
        gap(first),
        shownRows.slice(first, last).map((r, i) => drawRow(r, first + i)),
        gap(shownRows.length - last),
      );
      frame.setAttribute('aria-rowcount', String(shownRows.length + 1));
    }
    boxes();
    if (inside) body.querySelector(`tr[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }

  function draw() {
    shownRows = sorted();
    const isEmpty = shownRows.length === 0;
    put(
      fresh,
      isEmpty &&
        (none instanceof Node
          ? none
          : empty(typeof none === 'object' && none ? none : { title: none ?? t('common.nothing') })),
    );
    scroller.hidden = isEmpty;
    if (isEmpty && !fresh.isConnected) el.append(fresh);
    if (!isEmpty) fresh.remove();
    drawRows();
  }

  function focusRow(i) {
    const at = Math.max(0, Math.min(shownRows.length - 1, i));
    cursor = at;
    if (shownRows.length > MANY) {
      const y = at * ROW;
      if (y < scroller.scrollTop || y > scroller.scrollTop + scroller.clientHeight - 2 * ROW)
        scroller.scrollTop = Math.max(0, y - scroller.clientHeight / 2);
      drawRows();
    }
    for (const tr of body.querySelectorAll('tr[tabindex="0"]')) tr.tabIndex = -1;
    const tr = body.querySelector(`tr[data-row="${at}"]`);
    if (tr) {
      tr.tabIndex = 0;
      tr.focus({ preventScroll: shownRows.length > MANY });
      if (shownRows.length <= MANY) tr.scrollIntoView({ block: 'nearest' });
    }
  }

  scroller.addEventListener(
    'scroll',
    () => {
      if (shownRows.length <= MANY) return;
      const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - BEYOND);
      if (Math.abs(first - top) >= BEYOND / 2) requestAnimationFrame(drawRows);
    },
    { passive: true },
  );
  addEventListener(
    'resize',
    settled(120, () => el.isConnected && shownRows.length > MANY && drawRows()),
  );

  body.addEventListener('click', (event) => {
    if (!onOpen || event.target.closest('a, button, input, select, label, summary')) return;
    if (String(getSelection()) !== '') return;
    const tr = event.target.closest('tr[data-row]');
    if (tr) {
      cursor = Number(tr.dataset.row);
      onOpen(shownRows[cursor], event);
    }
  });
  body.addEventListener('keydown', (event) => {
    const tr = event.target.closest('tr[data-row]');
    if (!tr || event.target !== tr) return;
    const i = Number(tr.dataset.row);
    const to = {
      ArrowDown: i + 1,
      ArrowUp: i - 1,
      Home: 0,
      End: shownRows.length - 1,
      PageDown: i + 15,
      PageUp: i - 15,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      focusRow(to);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      onOpen?.(shownRows[i], event);
    } else if (event.key === ' ' && select) {
      event.preventDefault();
      tr.querySelector('input[type=checkbox]')?.click();
    }
  });

  drawHead();
  draw();
  return {
    el,
    update(next) {
      all = next;
      draw();
    },
    redraw: drawRows,
    focus: () => focusRow(Math.max(0, cursor)),
    rows: () => shownRows,
  };
}

/** A list that grows: a table and a button for the next page. `load(cursor)` answers {items, next}. */
export function pages({ load, make, onCount }) {
  const host = h('div.pages');
  let items = [];
  let next = null;
  let list;
  const foot = h('div.pages-foot');
  const drawFoot = (busy) => {
    put(
      foot,
      h('span.muted', { 'data-test': 'count' }, t(next ? 'common.first_n' : 'common.n_items', { n: items.length })),
      next &&
        h(
          'button.btn',
          {
            type: 'button',
            'data-test': 'more',
            'aria-disabled': busy ? 'true' : null,
            class: busy ? 'busy' : null,
            onclick: () => more(),
          },
          h('span', t('common.more')),
        ),
    );
    onCount?.(items.length, !!next);
  };
  async function more() {
    drawFoot(true);
    const page = await load(next);
    const got = Array.isArray(page) ? page : (page.items ?? []);
    items = items.concat(got);
    next = Array.isArray(page) ? null : (page.next ?? null);
    list.update(items);
    drawFoot(false);
  }
  return {
    el: host,
    /** Reads from the first page on. */
    async start() {
      const page = await load(undefined);
      items = Array.isArray(page) ? page : (page.items ?? []);
      next = Array.isArray(page) ? null : (page.next ?? null);
      if (!list) {
        list = make(items);
        put(host, list.el, foot);
      } else list.update(items);
      drawFoot(false);
      return items;
    },
    items: () => items,
    list: () => list,
  };
}
