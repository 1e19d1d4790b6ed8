import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proof of payment that a buyer presented. */
interface ShownProof {
  /** The protocol's header with its value. */
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
  /** Its next challenges leave out the header of every other protocol. */
  speakOnly(protocol: 'l402' | 'mpp'): void;
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
  let spoken: 'l402' | 'mpp' | null = null;
  const server = createServer(async (request, response) => {
    const name = request.headers.authorization === undefined ? 'payment-signature' : 'authorization';
    const proof = request.headers[name];
    if (proof !== undefined) {
      shown.push({ header: `${name}: ${proof}`, preimage: preimageIn(String(proof)) });
      if (refusals > 0) {
        refusals -= 1;
        response.writeHead(status, { 'retry-after': '1' }).end('{"detail":"not now"}');
        return;
      }
    }
    const headers = proof === undefined ? {} : { [name]: String(proof) };
    const answer = await fetch(`${behind}${request.url}`, { headers });
    const body = Buffer.from(await answer.arrayBuffer());
    const kept = KEPT.flatMap((header) => {
      const value = answer.headers.get(header);
      const forwarded = value === null ? null : forward(header, value, { soldAs, spoken });
      return forwarded === null ? [] : [[header, forwarded]];
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
    speakOnly(protocol) {
      spoken = protocol;
    },
    sellAs(url) {
      soldAs = url;
    },
    reset() {
      refusals = 0;
      soldAs = null;
      spoken = null;
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

const KEPT = ['payment-required', 'payment-response', 'payment-receipt', 'www-authenticate', 'content-type'];

/** A header of the service as the seller sends it on; null when it leaves the header out. */
function forward(
  header: string,
  value: string,
  { soldAs, spoken }: { soldAs: string | null; spoken: string | null },
): string | null {
  if (header === 'payment-required') {
    if (spoken !== null) return null;
    return soldAs === null ? value : renamed(value, soldAs);
  }
  if (header !== 'www-authenticate' || spoken === null) return value;
  const [l402 = '', mpp = ''] = value.split(/, (?=Payment )/);
  return spoken === 'l402' ? l402 : mpp;
}

/** The preimage in a proof of any protocol. */
function preimageIn(proof: string): string {
  const [scheme = '', rest = ''] = proof.split(' ');
  if (/^(?:l402|lsat)$/i.test(scheme)) return rest.slice(rest.lastIndexOf(':') + 1);
  const encoded = scheme === 'Payment' ? Buffer.from(rest, 'base64url') : Buffer.from(proof, 'base64');
  return JSON.parse(encoded.toString('utf8')).payload.preimage;
}
