import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A process of ours and how to end it. */
export interface GuardedChild {
  readonly pid: number;
  /** Null while it runs; then how it ended, in words. */
  ended(): string | null;
  /** The last lines it wrote, for telling why it failed. */
  tail(): string;
  /** Asks it to end, insists after `graceMs`, and returns when it is gone. Safe to call twice. */
  stop(graceMs?: number): Promise<void>;
}

/** What is kept of a child's output; enough for an error with its stack. */
const TAIL_BYTES = 8192;

/**
 * Starts a program that cannot outlive us: however we end, kill -9 included, it is killed.
 * It gets its own process group, so that Ctrl-C in a terminal reaches only us and we can stop things in order.
 */
export async function startGuarded(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; onOutput?: (text: string) => void } = {},
): Promise<GuardedChild> {
  const { onOutput, ...spawnOptions } = options;
  const child = spawn(command, args, { ...spawnOptions, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let tail = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      tail = (tail + text).slice(-TAIL_BYTES);
      onOutput?.(text);
    });
  }
  await once(child, 'spawn');
  const pid = child.pid as number;
  let ended: string | null = null;
  const onOurExit = () => child.kill('SIGKILL');
  process.once('exit', onOurExit);
  const watchdog = startWatchdog(pid);
  const gone = once(child, 'exit').then(([code, signal]) => {
    ended = signal ? `killed by ${signal}` : `exit code ${code}`;
    process.off('exit', onOurExit);
    watchdog?.kill('SIGKILL');
  });
  return {
    pid,
    ended: () => ended,
    tail: () => tail.trim(),
    async stop(graceMs = 5000) {
      if (ended === null) child.kill('SIGTERM');
      const patience = new AbortController();
      await Promise.race([gone, delay(graceMs, undefined, { signal: patience.signal }).catch(() => {})]);
      patience.abort();
      if (ended === null) child.kill('SIGKILL');
      await gone;
    },
  };
}

/**
 * A shell that waits for our end of its input to close, which the system does however we die, and then kills the child.
 * The exit handler alone would leave an orphan behind a kill -9 or an unhandled signal.
 */
function startWatchdog(pid: number): ChildProcess | null {
  if (process.platform === 'win32') return null;
  const script = 'while read -r line; do :; done; kill -9 "$1" 2>/dev/null';
  const watchdog = spawn('/bin/sh', ['-c', script, 'watchdog', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => {});
  watchdog.stdin.on('error', () => {});
  watchdog.unref();
  return watchdog;
}
