import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what the kernels of Linux (32768) and macOS (49152) give to connections going out, and above what well-known services listen on. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;
const MOST_TRIES = 100;

/**
 * The wanted port of this machine, or a free one for 0, after a look whether it can be had; throws in words when it cannot.
 * For servers that must know their port before they listen; nothing keeps another program from taking it in between. A free one is drawn by
 * chance from those that no connection is given, because one of thousands would take it soon.
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
