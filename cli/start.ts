import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { startCommand } from '../scripts/lib/build/start-command.ts';

// `percall start` and `percall demo`: the service as a process of its own, with the options that `npm start` gives it.

/** Runs the built service until it ends. Signals that reach this process reach it too. */
export async function startService(root: string, say: (line: string) => void): Promise<number> {
  const { variable, options, program } = startCommand();
  const file = join(root, program);
  if (!existsSync(file)) {
    say(`${program} is not there: npm run build makes it`);
    return 1;
  }
  const [name = '', value = ''] = variable.split('=');
  return follow([...options, file], { [name]: value, ...process.env });
}

/** Runs the demonstration from a clone. An installed package has neither its sources nor the local chain. */
export async function startDemo(root: string, words: readonly string[], say: (line: string) => void): Promise<number> {
  const file = join(root, 'scripts/demo.ts');
  if (!existsSync(file) || !existsSync(join(root, 'node_modules/@foundry-rs/anvil'))) {
    say('percall demo needs a clone of the project with its development packages: npm ci && npm run demo');
    say('It starts a local chain (@foundry-rs/anvil) and two Lightning nodes (lightningdevkit), which do not ship.');
    return 1;
  }
  return follow([file, ...words], process.env);
}

async function follow(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
