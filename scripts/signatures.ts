import { spawnSync } from 'node:child_process';

// `npm run signatures`: asks the registry whether it has signed what is installed (npm audit signatures). It exits with 1 when a signature is missing or
// wrong. A registry that has no signatures, or cannot be asked, ends it with 0 and says so: a mirror often has none, and nothing is wrong with the packages then.

interface Answer {
  readonly invalid?: readonly { readonly name: string; readonly version: string }[];
  readonly missing?: readonly { readonly name: string; readonly version: string }[];
  readonly error?: { readonly code?: string; readonly summary?: string };
}

const run = spawnSync('npm', ['audit', 'signatures', '--json'], { encoding: 'utf8', maxBuffer: 1 << 26 });
const answer = read(run.stdout);

if (answer.error || answer.invalid === undefined || answer.missing === undefined) {
  const why = answer.error?.summary ?? answer.error?.code ?? 'npm gave no answer';
  console.log(`the signatures were NOT checked: ${why}`);
} else {
  for (const { name, version } of answer.invalid) console.error(`wrong signature: ${name}@${version}`);
  for (const { name, version } of answer.missing) console.error(`no signature: ${name}@${version}`);
  const faults = answer.invalid.length + answer.missing.length;
  if (faults === 0) console.log('every package has a signature of its registry');
  process.exitCode = faults === 0 ? 0 : 1;
}

function read(text: string | null): Answer {
  try {
    return JSON.parse(text ?? '') as Answer;
  } catch {
    return {};
  }
}
