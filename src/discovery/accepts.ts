import { own } from '../lib/own-property.ts';
import { formatUnits } from '../lib/units.ts';

/** What must be asked for so that a payment on our chain can be made. */
export interface Payable {
  /** CAIP-2. */
  readonly network: string;
  /** The USDC contract. */
  readonly usdc: string;
}

/** How a seller can be paid, of all that it accepts. */
export interface Terms {
  readonly rail: 'direct' | 'gateway';
  readonly priceUsd: string;
  readonly payTo: string;
  /** What the same costs when a gateway seller is paid plainly on our chain; null when it cannot be. */
  readonly plainPriceUsd: string | null;
  readonly networks: string[];
  readonly plainNetworks: string[];
}

/** Circle's name of a batched payment from a deposit (its x402-batching library, CIRCLE_BATCHING_NAME). */
const GATEWAY = 'GatewayWalletBatched';
const USDC_DECIMALS = 6;
const MAX_ACCEPTS = 50;
const NETWORK = /^[A-Za-z0-9][\w:.-]{0,63}$/;

interface Offer {
  readonly network: string;
  readonly isGateway: boolean;
  /** Null when it is not payable in our USDC on our chain. */
  readonly ours: { readonly units: bigint; readonly payTo: string } | null;
}

/** Reads untrusted x402 `accepts` of either version; null when none of them is an `exact` payment in USDC on our chain. */
export function readAccepts(accepts: unknown, payable: Payable): Terms | null {
  if (!Array.isArray(accepts)) return null;
  const offers = accepts.slice(0, MAX_ACCEPTS).flatMap((accept) => readOffer(accept, payable) ?? []);
  const gateway = cheapest(offers.filter(({ isGateway }) => isGateway));
  const plain = cheapest(offers.filter(({ isGateway }) => !isGateway));
  const main = gateway ?? plain;
  if (main === null) return null;
  const isGateway = gateway !== null;
  const networksOf = (some: readonly Offer[]) => [...new Set(some.map(({ network }) => network))];
  const plainNetworks = networksOf(offers.filter((offer) => !offer.isGateway));
  return {
    rail: isGateway ? 'gateway' : 'direct',
    priceUsd: formatUnits(main.units, USDC_DECIMALS),
    payTo: main.payTo,
    plainPriceUsd: isGateway && plain ? formatUnits(plain.units, USDC_DECIMALS) : null,
    networks: networksOf(offers),
    // Of a gateway entry our chain is never among them: that it can be paid plainly too is told by `direct`.
    plainNetworks: isGateway ? plainNetworks.filter((network) => network !== payable.network) : plainNetworks,
  };
}

function readOffer(accept: unknown, payable: Payable): Offer | null {
  const network = own(accept, 'network');
  if (own(accept, 'scheme') !== 'exact' || typeof network !== 'string' || !NETWORK.test(network)) return null;
  const isGateway = own(own(accept, 'extra'), 'name') === GATEWAY;
  return { network, isGateway, ours: network === payable.network ? readAmount(accept, payable.usdc) : null };
}

/** Version 1 says `maxAmountRequired`. An amount is base units of USDC; more digits than fifteen are nobody's price. */
function readAmount(accept: unknown, usdc: string): Offer['ours'] {
  const amount = own(accept, 'amount') ?? own(accept, 'maxAmountRequired');
  const [asset, payTo] = [own(accept, 'asset'), own(accept, 'payTo')];
  if (typeof asset !== 'string' || asset.toLowerCase() !== usdc.toLowerCase()) return null;
  if (typeof payTo !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(payTo)) return null;
  if (typeof amount !== 'string' || !/^\d{1,15}$/.test(amount) || BigInt(amount) === 0n) return null;
  return { units: BigInt(amount), payTo };
}

function cheapest(offers: readonly Offer[]): NonNullable<Offer['ours']> | null {
  const ours = offers.flatMap((offer) => offer.ours ?? []);
  return ours.reduce<(typeof ours)[number] | null>(
    (least, next) => (least && least.units <= next.units ? least : next),
    null,
  );
}
