import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CHILD_ENV, CHILD_OPTIONS } from '../service/child-env.ts';
import { ownPort } from '../service/own-port.ts';
import { call } from '../service/service.ts';

const PROGRAM = join(import.meta.dirname, '../../../scripts/bench/servers/facilitator.ts');

/** A start takes a second on an idle machine. */
const READY_MS = 120_000;

/** Runs the facilitator over a ledger's file as its own process, which can be killed and started again. It has no limits unless `env` sets them. */
export async function createFacilitatorProcess(file: string, env: Record<string, string> = {}) {
  const port = await ownPort();
  const origin = `http://127.0.0.1:${port}`;
  const given = {
    ...CHILD_ENV,
    PORT: String(port),
    LEDGER_FILE: file,
    LOG_LEVEL: 'debug',
    FACILITATOR_PER_MINUTE: '0',
    FACILITATOR_DAILY_CAP: '100000000',
    ...env,
  };
  let child: ChildProcess | null = null;
  let log = '';
  const isOver = () => !child || child.exitCode !== null || child.signalCode !== null;

  async function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!child || isOver()) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  return {
    origin,
    /** Everything that it has logged, over all its starts. */
    log: () => log,
    start: async (): Promise<void> => {
      const started = spawn(process.execPath, [...CHILD_OPTIONS, PROGRAM], {
        env: given,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child = started;
      const keep = (chunk: Buffer) => {
        log += chunk.toString('utf8');
      };
      started.stdout.on('data', keep);
      started.stderr.on('data', keep);
      for (const until = Date.now() + READY_MS; Date.now() < until; ) {
        if (isOver()) throw new Error(`the facilitator ended with ${started.exitCode}:\n${log.slice(-5000)}`);
        const ready = await call(origin, '/facilitator/supported').catch(() => null);
        if (ready?.status === 200) return;
        await new Promise((next) => setTimeout(next, 25));
      }
      throw new Error(`the facilitator was not ready in ${READY_MS / 1000} s:\n${log.slice(-5000)}`);
    },
    /** kill -9: no handler runs, no file is closed. */
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
