// What a line of a log is: its text without signs that change how it is shown, and how bad it is.

// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

/** A line without the colours of terminals and without signs that turn text round. */
export const clean = (text) =>
  String(text ?? '')
    .replace(ESCAPES, '')
    .replace(CONTROLS, '·');

const ERROR =
  /\b(?:ERROR|FATAL|SEVERE|CRITICAL|PANIC)\b|\b[Ee]rror:|(?:^|\s)(?:[\w.]+\.)?\w+(?:Error|Exception)\b|^Traceback \(most recent call last\)|\bORA-\d{5}\b|\bSQLSTATE\b|错误|异常|失败/;
const WARNING = /\bWARN(?:ING)?\b|\b[Ww]arning:|警告/;
/** `0 errors`, `errors: 0`, `no error`: these tell of none. */
const NONE = /\b(?:0|no|without) errors?\b|\berrors?\s*[:=]\s*0\b|0\s*个?错误|没有错误/gi;

/** `error`, `warning` or null; by its words, else by the stream that it came from. */
export function levelOf({ text, stream }) {
  const words = clean(text).replace(NONE, '');
  if (ERROR.test(words)) return 'error';
  if (WARNING.test(words)) return 'warning';
  return ['stderr', 'err', 'error'].includes(stream) ? 'stderr' : null;
}
