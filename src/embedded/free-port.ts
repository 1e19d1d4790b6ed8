import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

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
