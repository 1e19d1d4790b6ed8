import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AppError, BadParameter } from '../errors.ts';
import { isForwarded, isLoopback } from '../lib/limits/count.ts';

/** Where the reference asks for a payment of the demo's buyer. */
export const DEMO_BUYER_PATH = '/demo/sign';

const MAX_BODY_BYTES = 16 * 1024;
/** Names that always mean this machine. A page under another name may be a third party's, by DNS rebinding. */
const LOCAL_NAMES: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);

const body = z.object({
  accepted: z.object({
    scheme: z.string(),
    network: z.string(),
    amount: z.string(),
    asset: z.string(),
    payTo: z.string(),
  }),
});

/** Signs a transfer of base units of USDC to an address. */
export type DemoBuyer = (to: string, amount: string) => Promise<object>;

interface DemoBuyerDeps {
  readonly config: {
    readonly seller: string;
    readonly network: { readonly caip2: string; readonly usdc: string };
    readonly trustedProxies: readonly string[];
  };
  /** Null: nothing is mounted. */
  readonly demoBuyer: DemoBuyer | null;
  /** Prices in base units. */
  readonly prices: ReadonlySet<string>;
}

/**
 * Mounts the demo's buyer, which signs a payment for a page of this service. It can be configured for play money alone,
 * and signs only a transfer of one of our prices to our seller. To keep third parties out, a request is refused unless
 * 1. it comes from this machine, and not through a proxy: with `TRUSTED_PROXIES` every request is refused;
 * 2. it was sent to a name of this machine, so that no other name leads here (DNS rebinding);
 * 3. a page of this very origin sent it: the CORS headers of every answer would let another site read the signature.
 */
export function mountDemoBuyer(app: FastifyInstance, { config, demoBuyer, prices }: DemoBuyerDeps): void {
  if (demoBuyer === null) return;
  const { seller, network, trustedProxies } = config;
  app.route({
    method: 'POST',
    url: DEMO_BUYER_PATH,
    bodyLimit: MAX_BODY_BYTES,
    handler: async (request, reply) => {
      if (trustedProxies.length > 0 || !isOwnPage(request)) throw NOT_HERE;
      const amount = readAmount(request.body, { seller, network, prices });
      return reply.header('cache-control', 'no-store').send(await demoBuyer(seller, amount));
    },
  });
}

const NOT_HERE = new AppError(
  403,
  'demo_buyer_refused',
  'The demo’s buyer pays only for a page that was opened on the machine of the demo, at http://127.0.0.1 or ' +
    'http://localhost. Pay with a wallet, or with npm run pay.',
);

/** A browser sends `Origin` with every POST of a page; it names the page's own origin, whatever the page does. */
function isOwnPage({ headers, raw }: FastifyRequest): boolean {
  const { origin, host } = headers;
  if (isForwarded(headers) || !isLoopback(raw.socket.remoteAddress) || origin === undefined || host === undefined)
    return false;
  const page = URL.parse(origin);
  return page !== null && page.host === host && LOCAL_NAMES.has(page.hostname);
}

function readAmount(
  given: unknown,
  { seller, network, prices }: Pick<DemoBuyerDeps, 'prices'> & Pick<DemoBuyerDeps['config'], 'seller' | 'network'>,
): string {
  const { accepted } = body.safeParse(given).data ?? {};
  const isOurs =
    accepted !== undefined &&
    accepted.scheme === 'exact' &&
    accepted.network === network.caip2 &&
    accepted.asset.toLowerCase() === network.usdc.toLowerCase() &&
    accepted.payTo.toLowerCase() === seller.toLowerCase() &&
    prices.has(accepted.amount);
  if (!isOurs) throw new BadParameter([{ path: 'accepted', message: 'a requirement as a 402 of this service has it' }]);
  return accepted.amount;
}
