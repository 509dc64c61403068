// Pictures of 16 × 16, drawn with lines, made by code: nothing is fetched and nothing is inline.

import { s } from './dom.js';

const ICONS = {
  dashboard: 'M2 2h5v6H2zM9 2h5v3.5H9zM9 8h5v6H9zM2 10.5h5V14H2z',
  batches: 'M2 3.5h12M2 8h12M2 12.5h8',
  calendar: 'M2 3.5h12V14H2zM2 6.5h12M5 1.5v3M11 1.5v3',
  backfill: 'M8 3 3 8l5 5M13 3 8 8l5 5',
  groups: 'M2 4.5h4.5L8 6h6v8H2zM2 4.5V2.5h4',
  job: 'M3 2h7l3 3v9H3zM10 2v3h3M5.5 8.5h5M5.5 11h5',
  clock: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 4.5V8l2.5 2',
  file: 'M4 1.5h5.5L13 5v9.5H4zM9 1.5V5h4',
  node: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.5M4.5 11h.5',
  outbox: 'M1.5 3.5h13v9h-13zM1.5 4l6.5 5 6.5-5',
  audit: 'M4 1.5h8v13H4zM6 5h4M6 8h4M6 11h2',
  users:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M1.5 14c0-3 2-4.5 4.5-4.5s4.5 1.5 4.5 4.5M11 3a2.3 2.3 0 0 1 0 4.4M12 9.8c1.7.5 2.6 2 2.6 4.2',
  user: 'M8 7.5a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M2.5 14.5c0-3.3 2.3-5 5.5-5s5.5 1.7 5.5 5',
  settings: 'M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 2.8v3.4M5.5 9.8v3.4',
  search: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6M10.5 10.5 14 14',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  plus: 'M8 2.5v11M2.5 8h11',
  check: 'M2.5 8.5 6 12l7.5-8',
  play: 'M4.5 2.5v11l9-5.5z',
  pause: 'M5 3v10M11 3v10',
  stop: 'M3.5 3.5h9v9h-9z',
  rerun: 'M13.5 8A5.5 5.5 0 1 1 11.8 4M12 1.5V4.5H9',
  hold: 'M5.5 7V3.5a1 1 0 0 1 2 0V7M7.5 7V2.8a1 1 0 0 1 2 0V7M9.5 7V4a1 1 0 0 1 2 0v6c0 2.5-1.5 4-4 4-2 0-3-1-4-3L2.4 8.6a1 1 0 0 1 1.7-.8l1.4 1.7z',
  release: 'M4 7.5h8V14H4zM5.5 7.5V5a2.5 2.5 0 0 1 4.7-1.2',
  skip: 'M2.5 3.5v9l6-4.5zM8.5 3.5v9l6-4.5z',
  ice: 'M8 1.5v13M2.4 4.8l11.2 6.4M13.6 4.8 2.4 11.2M6.5 2.5 8 4l1.5-1.5M6.5 13.5 8 12l1.5 1.5',
  noexec: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M3.8 3.8l8.4 8.4',
  force: 'M2 8.5 5 11.5 10.5 5M8 11.5 14 5',
  fail: 'M5.2 1.8h5.6l3.4 3.4v5.6l-3.4 3.4H5.2l-3.4-3.4V5.2zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4',
  priority: 'M4.5 13V3M2 5.5 4.5 3 7 5.5M9.5 4H14M9.5 8h3.5M9.5 12H12',
  start: 'M3 2.5v11M6 2.5v11l8-5.5z',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  down: 'M3.5 6 8 10.5 12.5 6',
  up: 'M3.5 10 8 5.5 12.5 10',
  right: 'M6 3.5 10.5 8 6 12.5',
  left: 'M10 3.5 5.5 8 10 12.5',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7',
  globe:
    'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M1.8 8h12.4M8 1.8c2.2 2 2.8 4 2.8 6.2s-.6 4.2-2.8 6.2c-2.2-2-2.8-4-2.8-6.2S5.8 3.8 8 1.8',
  download: 'M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11',
  warning: 'M8 2 15 14H1zM8 6.5v3.5M8 12v.01',
  info: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 7.2v4M8 4.8v.01',
  help: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M6.2 6.2a1.9 1.9 0 1 1 2.6 1.9c-.6.3-.8.6-.8 1.2M8 11.6v.01',
  external: 'M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4',
  dag: 'M1.5 6h4v4h-4zM10.5 2h4v4h-4zM10.5 10h4v4h-4zM5.5 7.5C8 7.5 8 4 10.5 4M5.5 8.5c2.500 0 2.500 3.500 5 3.500',
  grid: 'M2 2h12v12H2zM2 6h12M2 10h12M6 2v12M10 2v12',
  gantt: 'M2 3h6M5 6.500h6M4 10h4M9 13h5',
  compare: 'M2.500 3v10h4V3zM9.500 3v10h4V3z',
  list: 'M5.500 3.500H14M5.500 8H14M5.500 12.500H14M2 3.500h.01M2 8h.01M2 12.500h.01',
  log: 'M2 2.500h12v11H2zM4.500 6l2 2-2 2M8 10.500h3.500',
  key: 'M5.500 7a3.200 3.200 0 1 0 0 6.400 3.200 3.200 0 0 0 0-6.400M7.800 7.900 13.500 2.200M11 4.700l2 2',
  logout: 'M6.500 2.500H2.500v11h4M6 8h8M11 5l3 3-3 3',
  edit: 'M2.500 13.500 3.200 10.500 11 2.700l2.300 2.300-7.800 7.800z',
  trash: 'M2.500 4.500h11M6 4.500v-2h4v2M4 4.500l.7 9.500h6.600l.7-9.500M6.500 7v4.500M9.500 7v4.500',
  bell: 'M8 2a4 4 0 0 0-4 4c0 4-1.500 5-1.500 5h11S12 10 12 6a4 4 0 0 0-4-4M6.500 13.500a1.500 1.500 0 0 0 3 0',
  send: 'M14 2 1.500 7l5 2 2 5z',
  copy: 'M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1',
  pin: 'M8 9.500V14M5 2h6l-.7 5 1.700 2.500H4L5.700 7z',
  database:
    'M2.500 4c0-1.200 2.500-2 5.500-2s5.500.8 5.500 2v8c0 1.200-2.500 2-5.500 2s-5.500-.8-5.500-2zM2.500 4c0 1.200 2.500 2 5.500 2s5.500-.8 5.500-2M2.500 8c0 1.200 2.500 2 5.500 2s5.500-.8 5.500-2',
};

/** Further pictures, by name: lines in a square of 16. */
export const addIcons = (more) => Object.assign(ICONS, more);

/** A picture; nothing is said of it to a screen reader, the words beside it are. */
export function icon(name, size = 16) {
  const path = s('path', { d: ICONS[name] ?? ICONS.info });
  return s(
    'svg.icon',
    { viewBox: '0 0 16 16', width: size, height: size, 'aria-hidden': 'true', focusable: 'false' },
    path,
  );
}
