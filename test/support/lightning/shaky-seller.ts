import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proof of payment that a buyer presented. */
interface ShownProof {
  readonly header: string;
  readonly preimage: string;
}

/** A seller's public address, which fails on command. */
export interface ShakySeller {
  readonly origin: string;
  /** Every presented proof, also the refused ones. */
  readonly shown: ShownProof[];
  /** Sets the origin of the real service. */
  standBefore(origin: string): void;
  /** The next `times` requests with a proof get this status and never reach the service. */
  refuseProofs(status: number, times: number): void;
  /** Its next challenges name this URL as the resource. */
  sellAs(url: string): void;
  reset(): void;
  stop(): Promise<void>;
}

/** Forwards GETs to the service behind it, on a free port of loopback. The service must name this address as its public origin. */
export async function startShakySeller(): Promise<ShakySeller> {
  const shown: ShownProof[] = [];
  let [behind, status, refusals] = ['', 0, 0];
  let soldAs: string | null = null;
  const server = createServer(async (request, response) => {
    const proof = request.headers['payment-signature'];
    if (proof !== undefined) {
      const header = String(proof);
      const { payload } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
      shown.push({ header, preimage: payload.preimage });
      if (refusals > 0) {
        refusals -= 1;
        response.writeHead(status, { 'retry-after': '1' }).end('{"detail":"not now"}');
        return;
      }
    }
    const headers = proof === undefined ? {} : { 'payment-signature': String(proof) };
    const answer = await fetch(`${behind}${request.url}`, { headers });
    const body = Buffer.from(await answer.arrayBuffer());
    const kept = ['payment-required', 'payment-response', 'content-type'].flatMap((name) => {
      const value = answer.headers.get(name);
      return value === null
        ? []
        : [[name, name === 'payment-required' && soldAs !== null ? renamed(value, soldAs) : value]];
    });
    response.writeHead(answer.status, Object.fromEntries(kept)).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    shown,
    standBefore(origin) {
      behind = origin;
    },
    refuseProofs(next, times) {
      [status, refusals] = [next, times];
    },
    sellAs(url) {
      soldAs = url;
    },
    reset() {
      refusals = 0;
      soldAs = null;
      shown.splice(0);
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** The challenge with another resource. */
function renamed(header: string, url: string): string {
  const challenge = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  return Buffer.from(JSON.stringify({ ...challenge, resource: { ...challenge.resource, url } })).toString('base64');
}
