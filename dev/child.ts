import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A child process. */
export interface GuardedChild {
  readonly pid: number;
  /** Null while it runs; then how it ended, as text. */
  ended(): string | null;
  /** Its last lines of output, for error messages. */
  tail(): string;
  /** Sends SIGTERM, after `graceMs` SIGKILL, and resolves when the process has ended. Safe to call twice. */
  stop(graceMs?: number): Promise<void>;
}

/** The part of a child's output that is kept: enough for an error with its stack. */
const TAIL_BYTES = 8192;

/**
 * Starts a program that is killed when this process ends, also by kill -9.
 * It has its own process group, so that Ctrl-C in a terminal reaches only this process, which then stops everything in order.
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
  watch(pid);
  const gone = once(child, 'exit').then(([code, signal]) => {
    ended = signal ? `killed by ${signal}` : `exit code ${code}`;
    process.off('exit', onOurExit);
    forget(pid);
  });
  return {
    pid,
    ended: () => ended,
    tail: () => tail.trim(),
    async stop(graceMs = 5000) {
      if (ended === null) child.kill('SIGTERM');
      const wait = new AbortController();
      await Promise.race([gone, delay(graceMs, undefined, { signal: wait.signal }).catch(() => {})]);
      wait.abort();
      if (ended === null) child.kill('SIGKILL');
      await gone;
    },
  };
}

/** The children that run. */
const running = new Set<number>();
let watchdog: ChildProcess | null = null;

/**
 * Reads lines: `+pid` for a child that starts, `-pid` for one that has ended. At the end of its input it kills those that are left. `pids` is set first,
 * because a shell takes its variables from the environment.
 */
const WATCHDOG = `
pids=
while read -r line; do
  case $line in
    +*) pids="$pids \${line#+} " ;;
    -*) gone=" \${line#-} "; pids="\${pids%"$gone"*}\${pids##*"$gone"}" ;;
  esac
done
[ -z "$pids" ] || kill -9 $pids 2>/dev/null`;

/**
 * Starts a shell that kills the running children when its standard input closes. The system closes it whenever this process dies.
 * The exit handlers alone would leave orphans after a kill -9 or an unhandled signal. One shell watches all children. Where it dies before us, the start
 * of the next child starts another one.
 */
function startWatchdog(): ChildProcess {
  const started = spawn('/bin/sh', ['-c', WATCHDOG], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  const lost = () => {
    if (watchdog === started) watchdog = null;
  };
  // A shell that cannot be started has no exit.
  started.once('error', lost);
  started.once('exit', lost);
  started.stdin.on('error', () => {});
  started.unref();
  for (const pid of running) started.stdin.write(`+${pid}\n`);
  return started;
}

/** Tells each pid once: of a pid that the shell has twice, one would be left after `-pid`. Windows has no such shell, so no child is watched there. */
function watch(pid: number): void {
  if (process.platform === 'win32') return;
  running.add(pid);
  if (watchdog) watchdog.stdin?.write(`+${pid}\n`);
  else watchdog = startWatchdog();
}

function forget(pid: number): void {
  running.delete(pid);
  watchdog?.stdin?.write(`-${pid}\n`);
}

/** Below the ports of outgoing connections on Linux (from 32768) and macOS (from 49152), and above those of well-known services. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;
const MOST_TRIES = 100;

/**
 * Resolves with the wanted port, or with a free one for 0, after checking that it can be used. Rejects with a readable message when it cannot.
 * It is for servers that must know their port before they listen. Another program may still take the port in between. A free port is drawn at random
 * from those that outgoing connections do not use, because one of thousands of connections could take it soon.
 */
export async function freePort(wanted = 0): Promise<number> {
  if (wanted !== 0) return look(wanted);
  for (let tries = 1; ; tries++) {
    const port = await look(randomInt(FIRST_PORT, LAST_PORT + 1)).catch((error: unknown) => {
      if (tries === MOST_TRIES) throw error;
      return null;
    });
    if (port !== null) return port;
  }
}

/** The first port from `first` on that can be used. Rejects when it and the `most` ports after it are taken. */
export async function nextFreePort(first: number, most = MOST_TRIES): Promise<number> {
  for (let port = first; ; port++) {
    try {
      return await look(port);
    } catch (error) {
      if (port === first + most) throw error;
    }
  }
}

async function look(port: number): Promise<number> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch (cause) {
    throw new Error(`port ${port} cannot be served on: another program has it, or it is not allowed`, { cause });
  }
  probe.close();
  await once(probe, 'close');
  return port;
}
