import { createServer } from 'node:net';

/**
 * Whether each API process can have a listening socket of its own and the system shares connections out between them. Elsewhere the primary
 * accepts and passes on, and a connection that it is passing to a process which dies is left hanging.
 */
export const SHARES_PORT = process.platform === 'linux';

/** Rejects when somebody has the port, which sockets that share one would not notice; returns it, or a free one for 0. */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : port));
    });
  });
}
