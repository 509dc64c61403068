// Files that the browser saves.

/** Lets the browser save a blob under a name. */
export function saveBlob(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[\\/:*?"<>|]+/g, '_');
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const saveText = (text, name, type = 'text/plain') =>
  saveBlob(new Blob([text], { type: `${type};charset=utf-8` }), name);

/** The picture as a file: SVG as the server draws it, PNG as it stands here. */
export async function save(kind, view, name, svg) {
  if (kind === 'svg') {
    saveText(await svg(), name, 'image/svg+xml');
    return;
  }
  const blob = await new Promise((done, fail) => {
    view.whole().toBlob((b) => (b ? done(b) : fail(new Error('too large for a picture'))), 'image/png');
  });
  saveBlob(blob, name);
}
