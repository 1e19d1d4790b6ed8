import { formatUnits } from '../lib/units.ts';
import { own } from '../lib/untrusted.ts';

/** The network and token in which a seller's route must be payable to be listed. */
export interface Payable {
  /** CAIP-2. */
  readonly network: string;
  /** The USDC contract. */
  readonly usdc: string;
}

/** The ways to pay a seller, read from all entries of `accepts`. */
export interface Terms {
  readonly rail: 'direct' | 'gateway';
  readonly priceUsd: string;
  readonly payTo: string;
  /**
   * The price of the same call without the gateway, on our chain. Null when the seller does not take the gateway, or takes nothing else on our chain.
   */
  readonly plainPriceUsd: string | null;
  readonly networks: string[];
  readonly plainNetworks: string[];
}

/** Circle's name for a batched payment from a deposit (CIRCLE_BATCHING_NAME of its x402-batching library). */
const GATEWAY = 'GatewayWalletBatched';
const USDC_DECIMALS = 6;
const MAX_ACCEPTS = 50;
const NETWORK = /^[A-Za-z0-9][\w:.-]{0,63}$/;

interface Offer {
  readonly network: string;
  readonly isGateway: boolean;
  /** Null when the entry is not payable in our USDC on our chain. */
  readonly ours: { readonly units: bigint; readonly payTo: string } | null;
}

/** Whether `extra` of an untrusted entry names a batched payment from a deposit. */
export function isGatewayExtra(extra: unknown): boolean {
  return own(extra, 'name') === GATEWAY;
}

/** Reads untrusted x402 `accepts` of version 1 or 2. Null when no entry is an `exact` payment in USDC on our chain. */
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
    // A gateway entry leaves our chain out here. The entry's `direct` member says whether our chain can be paid without the gateway.
    plainNetworks: isGateway ? plainNetworks.filter((network) => network !== payable.network) : plainNetworks,
  };
}

function readOffer(accept: unknown, payable: Payable): Offer | null {
  const network = own(accept, 'network');
  if (own(accept, 'scheme') !== 'exact' || typeof network !== 'string' || !NETWORK.test(network)) return null;
  const isGateway = isGatewayExtra(own(accept, 'extra'));
  return { network, isGateway, ours: network === payable.network ? readAmount(accept, payable.usdc) : null };
}

/**
 * Reads an amount in base units of USDC. Version 1 calls it `maxAmountRequired`. More than fifteen digits are refused, because no price has so many.
 */
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
