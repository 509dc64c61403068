// The licences of all packages in the bundle, one after another: `node licences.mjs METAFILE > LICENSES.txt`.

import { existsSync, readdirSync, readFileSync } from 'node:fs';

const inputs = Object.keys(JSON.parse(readFileSync(process.argv[2], 'utf8')).inputs);
const names = new Set(inputs.flatMap((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? []));
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = existsSync(folder) && readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} ${version} has no licence file`);
  console.log(`==== ${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`);
}
