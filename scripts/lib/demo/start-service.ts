import { freePort, nextFreePort } from '../../../dev/child.ts';
import type { EmbeddedService } from '../../../dev/serve.ts';

/** The service's default port. */
export const PORT = 4021;
/** Other programs may take a port between the look at it and the service's start, other demos above all. */
const MOST_TRIES = 10;

interface Start {
  /** The only port that will do, 0 for any. Null: the first free one from `first` on. */
  readonly port: number | null;
  readonly first?: number;
  /** Starts the service, which must know its port before it listens, because challenges contain it. */
  start(port: number): Promise<EmbeddedService>;
  say(line: string): void;
}

/** Starts the service on its port, or on the next one where another program has taken that. Rejects with the reason. */
export async function startOnFreePort({ port: wanted, first = PORT, start, say }: Start): Promise<EmbeddedService> {
  if (wanted !== null) return start(await freePort(wanted));
  for (let tries = 1; ; tries++) {
    const port = await nextFreePort(first);
    if (port !== first) say(`  port ${first} is taken by another program; using ${port}`);
    try {
      return await start(port);
    } catch (error) {
      const isFree = await freePort(port).then(Boolean, () => false);
      if (isFree || tries === MOST_TRIES) throw error;
    }
  }
}
