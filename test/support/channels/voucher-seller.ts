import { bytesToHex } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { createChannelBook } from '../../../src/payment/channels/channel.ts';
import { createClaimRisk } from '../../../src/payment/channels/claim-health.ts';
import { createTurns } from '../../../src/payment/channels/turns.ts';
import { createSellVoucher } from '../../../src/payment/channels/voucher-sale.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import type { PaidOrder } from '../../../src/payment/rail.ts';
import type { ChannelStore } from '../../../src/store/ports/channels.ts';
import { NETWORK } from '../ledger/channel-rows.ts';
import { hash32 } from '../ledger/ledger-rows.ts';
import { plainRequirement } from '../usdc/payments.ts';
import type { openChannelLedger, UnitChannel } from './channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from './channel-payment.ts';

/** The price of a call here, in base units. */
export const PRICE = 500n;
/** When charges are claimed here. */
const CLAIMED = { threshold: PRICE, ageMs: 1000 };

interface Changes {
  /** Calls of the store of channels in place of the real ones. The ledger keeps the real ones. */
  readonly store?: Partial<ChannelStore>;
  /** Calls of the ledger in place of the real ones. */
  readonly ledger?: (real: Ledger) => Partial<Ledger>;
  /** What the ledger does to charge a channel, in place of the real write. */
  readonly charge?: () => Promise<null>;
  /** A read of the channel on the chain, in place of the real one. */
  readonly read?: () => Promise<never>;
  /** The head that the providers agree on; by default none is known. */
  readonly lastHead?: () => number | null;
  /** Why no claim can be sent; null: claims can be sent. */
  readonly cannotSend?: () => string | null;
  readonly stopsSales?: () => string | null;
}

/** Sells calls for vouchers over the bed's real ledger. Each call is another seller process over the same ledger. */
export function openVoucherSeller(bed: Awaited<ReturnType<typeof openChannelLedger>>, changes: Changes = {}) {
  const { clock, reader, stores, log } = bed;
  const limits = { storeBytes: 1_000_000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  const channels = { ...bed.store, ...(changes.charge && { charge: changes.charge }) };
  const real = createLedger({ store: stores.payments, channels, clock, bootId: 'boot', ...limits });
  const store = { ...bed.store, ...changes.store };
  const read = changes.read ?? (async (id: Uint8Array) => (await reader.read([id]))[0]!);
  return createSellVoucher({
    store,
    ledger: { ...real, ...changes.ledger?.(real) },
    clock,
    log,
    network: NETWORK,
    limits: CLAIMED,
    turns: createTurns(clock),
    book: createChannelBook({
      store,
      read,
      network: NETWORK,
      withdrawDelaySeconds: 86_400,
      lastHead: changes.lastHead ?? (() => null),
      clock,
    }),
    status: { cannotSend: changes.cannotSend ?? (() => null), stopsSales: changes.stopsSales ?? (() => null) },
    risk: createClaimRisk({ store: bed.store, network: NETWORK, limits: CLAIMED, clock }),
  });
}

/** An order of the request with this name, from a client that is called `one`. Its answer is `answer`. */
export const orderOf = (request = 'a', more: Partial<PaidOrder> = {}): PaidOrder => ({
  accepted: {},
  requirement: plainRequirement(bytesToHex(CHANNEL_TERMS.receiver)),
  route: '/v1/paid/a',
  price: PRICE,
  identifierHash: null,
  identity: 'one',
  protocol: 'x402',
  requestHash: hash32(request),
  asker: { client: 'one', signal: new AbortController().signal, hasFailed: false },
  admit: () => {},
  run: async () => Buffer.from('answer'),
  ...more,
});

/** Presents the channel's voucher over `max` to a seller. */
export function presentVoucher(
  sell: ReturnType<typeof openVoucherSeller>,
  { id, config, privateKey }: UnitChannel,
  max: bigint,
  order: PaidOrder,
) {
  const signature = signRecoverable(scheme.voucherDigest(id, max), privateKey);
  const voucher = { channelId: id, maxClaimableAmount: max, signature };
  return sell({ channelId: id, payload: { kind: 'voucher', config, voucher } }, order);
}
