import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** A program that a reader runs in a terminal of its own. */
export interface Terminal {
  /** What it has told the reader to export. */
  readonly exported: Record<string, string>;
  /** Resolves when the program is gone. Safe to call twice. */
  stop(): Promise<void>;
}

interface TerminalOptions {
  readonly folder: string;
  /** One line of shell. */
  readonly command: string;
  readonly env: Record<string, string | undefined>;
  /** What the program prints when it is ready. */
  readonly ready: RegExp;
}

/** Starts a program and resolves when it is ready. Rejects with its output when it ends before. */
export async function startTerminal({ folder, command, env, ready }: TerminalOptions): Promise<Terminal> {
  // A process group of its own, as a terminal has: npx does not pass a signal on.
  const child = spawn('bash', ['-c', command], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const gone = once(child, 'exit');
  let output = '';
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      if (ready.test(output)) resolve();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}:\n${output}`)));
  });
  const lines = output.matchAll(/^ *export (\w+)=(\S+)$/gm);
  return {
    exported: Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value])),
    async stop() {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, 'SIGTERM');
      await gone;
    },
  };
}
