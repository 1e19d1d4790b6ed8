import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

// `npm run check`: runs every check, two at a time, and prints what each of them says. It exits with 1 when one of them fails.

/** Both packages of TypeScript have a program of this name, so this names its file. */
const TSC = 'node node_modules/typescript-7/bin/tsc';

/** Those that take longest first. */
const CHECKS = [
  `${TSC} --noEmit`,
  'biome ci .',
  'vitest run test/unit/architecture.test.ts test/unit/function-length.test.ts',
  'knip',
  'node scripts/sbom.ts --check',
  `${TSC} -p src/pages/assets`,
  'node scripts/generate-openapi.ts --check',
  'node scripts/licences.ts --check',
];

async function check(command: string): Promise<void> {
  const startedMs = performance.now();
  const child = spawn(`${command} 2>&1`, { shell: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const said = (await text(child.stdout)).trim();
  const code = await ended;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`${code === 0 ? 'passed' : 'FAILED'} in ${seconds} s: ${command}${said === '' ? '' : `\n${said}`}\n`);
  if (code !== 0) process.exitCode = 1;
}

const waiting = [...CHECKS];

async function checkNext(): Promise<void> {
  for (let command = waiting.shift(); command !== undefined; command = waiting.shift()) await check(command);
}

await Promise.all([checkNext(), checkNext()]);
if (process.exitCode === 1) console.log('npm run check has failed: see FAILED above.');
