import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startGuarded } from '../../../dev/child.ts';

/** The service under a flood, in its own process. */
export interface Service {
  readonly origin: string;
  /** Seconds of processor time that it has used. */
  processorSeconds(): Promise<number>;
  stop(): Promise<void>;
}

interface ServiceOptions {
  /** The checkout whose `src/server.ts` runs. */
  readonly checkout: string;
  /** A directory of its own, which it is started in, so that no `.env` file reaches it. */
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where its log is written; null keeps none. */
  readonly logFile: string | null;
}

const READY_MS = 60_000;
const STOP_MS = 11_000;
/** Of Linux, by which /proc counts processor time. */
const TICKS_PER_SECOND = 100;

/** Starts the service with its default limits and returns when it is ready and has probed its providers. */
export async function startService({ checkout, dataDir, env, logFile }: ServiceOptions): Promise<Service> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const { PATH, HOME, TMPDIR } = process.env;
  const log = logFile === null ? null : createWriteStream(logFile);
  const child = await startGuarded(process.execPath, [join(checkout, 'src/server.ts')], {
    cwd: dataDir,
    env: { PATH, HOME, TMPDIR, PORT: String(port), DATA_DIR: dataDir, ...env },
    onOutput: (text) => log?.write(text),
  });
  const stop = async (): Promise<void> => {
    await child.stop(STOP_MS);
    log?.end();
  };
  try {
    await untilFine(`${origin}/readyz`, child.ended);
    await untilFine(`${origin}/v1/rpc`, child.ended);
  } catch (error) {
    await stop();
    throw new Error(`the service of ${checkout} was not ready:\n${child.tail()}`, { cause: error });
  }
  return { origin, stop, processorSeconds: () => processorSeconds(child.pid) };
}

async function untilFine(url: string, ended: () => string | null): Promise<void> {
  let last = 'no answer';
  for (const until = Date.now() + READY_MS; Date.now() < until && ended() === null; ) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5000) }).catch(() => null);
    if (answer?.status === 200) return;
    if (answer) last = `${answer.status} ${await answer.text()}`;
    await delay(250);
  }
  throw new Error(`${url}: ${ended() ?? last}`);
}

/** User and system time, the 14th and 15th field; the name before them may hold blanks. */
async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
