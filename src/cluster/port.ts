import { createServer } from 'node:net';
import { listeningRefused } from '../lib/start-refused.ts';

/**
 * Whether each API process can have its own listening socket and the system distributes connections among them. Otherwise the primary accepts and
 * passes connections on, and a connection that is being passed to a dying process hangs.
 */
export const SHARES_PORT = process.platform === 'linux';

/** Resolves with the port, or with a free one for 0. Rejects when another program uses the port, which sockets that share a port would not notice. */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => reject(listeningRefused(error, { host, port })));
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : port));
    });
  });
}
