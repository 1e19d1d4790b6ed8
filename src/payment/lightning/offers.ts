import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { LightningStore } from '../../store/lightning-port.ts';
import type { RateSource } from '../../upstream/exchanges.ts';
import { runEndpoint } from '../run-endpoint.ts';
import { type LightningChallenge, lightningChallenge } from './challenge.ts';
import type { Issuance } from './issuance.ts';
import type { Issuer } from './issuer.ts';
import type { LightningNetwork } from './networks.ts';
import type { LightningOrder } from './order.ts';
import { priceMsat } from './quote.ts';
import type { ReplyRoom } from './reply-room.ts';
import { sealReply } from './seal.ts';
import { lightningRequirement, SKEW_SECONDS } from './terms.ts';

/** Past the last moment at which a proof of the invoice can be valid, so that its record is there whenever one comes. */
const FORGET_MARGIN_SECONDS = 60;

interface OffersOptions<S> {
  store: LightningStore;
  /** Null where no node is configured. */
  issuer: Issuer | null;
  rates: RateSource;
  issuance: Issuance;
  room: ReplyRoom;
  sources: S;
  network: LightningNetwork;
  clock: Clock;
  handlerTimeoutMs: number;
}

/** Makes the offer for an order: the 402 with a fresh invoice, behind which the answer already exists. */
export type Offers<S> = (order: LightningOrder<S>, error?: string) => Promise<LightningChallenge>;

/**
 * Only an answer that exists is sold, because sats cannot come back. In this order, so that what is cheap refuses first:
 * 1. a node is configured and answers; 2. the issuance limits; 3. room for the reply; 4. the rate; 5. the handler runs;
 * 6. the node makes an invoice, which is checked; 7. invoice and sealed reply are on disk; 8. the 402 leaves.
 */
export function createOffers<S>(options: OffersOptions<S>): Offers<S> {
  const { store, issuer, rates, issuance, room, sources, network, clock, handlerTimeoutMs } = options;

  return async (order, error) => {
    const { endpoint, binding, signal } = order;
    const { price } = endpoint;
    if (!price) throw new Error(`${endpoint.path} has no price`);
    if (!issuer)
      throw new Unavailable('lightning_unavailable', 'This service has no Lightning node to be paid on.', 300);
    issuer.checkAvailable();
    await issuance(order.client);
    room.check();
    const { rate } = await rates.current();
    const body = await runEndpoint(endpoint, order.params, { sources, timeoutMs: handlerTimeoutMs, signal });
    const amountMsat = priceMsat(price.units, rate);
    const { text, invoice } = await issuer.issue({ amountMsat, binding }, signal);
    const { paymentHash, payee, createdAt, expirySeconds } = invoice;
    const sealed = sealReply(body, binding, paymentHash);
    room.add(sealed.length);
    const forgetAt = (createdAt + expirySeconds + SKEW_SECONDS + FORGET_MARGIN_SECONDS) * 1000;
    const record = { network: network.id, paymentHash, requestHash: binding.hash, amountMsat, payTo: payee };
    await store.recordInvoice({ ...record, issuedAt: clock.nowMs(), forgetAt }, sealed);
    const payTo = Buffer.from(payee).toString('hex');
    const requirement = lightningRequirement({ network: network.id, amountMsat, payTo, binding, invoice: text });
    return lightningChallenge(order, { requirement, priceUsd: price.usd, btcUsd: rate }, error);
  };
}
