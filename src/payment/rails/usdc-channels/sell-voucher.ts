import { hash } from 'node:crypto';
import { Unavailable } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { keccak256 } from '../../../lib/secp256k1.ts';
import type { Channel, ChannelStore, VoucherSale } from '../../../store/ports/channels.ts';
import type { Payment } from '../../../store/ports/sales.ts';
import { settlementUnknown } from '../../doubt.ts';
import { word } from '../../evm/eip712.ts';
import { isSameBuyer, isSameRequest } from '../../known-payment.ts';
import { hashClient, type Ledger } from '../../ledger.ts';
import { identifierConflict } from '../../payment-identifier.ts';
import type { PaidOrder } from '../../rail.ts';
import { type Delivery, handOut } from '../../receipt.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { RailStatus } from '../../settling.ts';
import type { ChannelBook } from './channel-book.ts';
import { channelReceipt } from './channel-state.ts';
import { createCorrections } from './corrections.ts';
import { type ChannelPayload, reason } from './payload.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';
import type { Turn, Turns } from './turns.ts';
import { checkClaimable, faultOf, StaleVoucher } from './voucher-rules.ts';

/** A voucher that is presented for a call. Its signature is valid. */
export interface PresentedVoucher {
  readonly channelId: Uint8Array;
  readonly payload: ChannelPayload;
}

interface SellVoucherOptions {
  store: Pick<ChannelStore, 'get' | 'findSale' | 'findOpen'>;
  ledger: Pick<Ledger, 'charge' | 'redeliver' | 'delivered' | 'findByIdentifier'>;
  book: ChannelBook;
  turns: Turns;
  status: Pick<RailStatus, 'unavailable'>;
  /** The longest that a charge waits for its claim by plan, in milliseconds. */
  claimAfterMs: number;
  network: string;
  clock: Clock;
  log: { error(detail: object, message: string): void };
}

const RECEIPTS = { receipt: channelReceipt };
/** How often a sale may lose its charge to another process before it gives up. */
const MOST_TRIES = 3;

/**
 * Sells a call for a voucher:
 * 1. A voucher that has bought this very request gets the same answer again.
 * 2. The request waits for its turn in the channel.
 * 3. The voucher must fit the channel's charges and its money. One that does not has bought this very request, or is told the new charges. One that
 *    fits has bought nothing: a sale raises the charges to its voucher in the same write. So a sale needs no look for an earlier one. Earlier charges
 *    must not wait for a claim that cannot be sent.
 * 4. The endpoint runs. A failure charges nothing, and the same voucher buys the next answer.
 * 5. The charge and the answer are stored in one write. Then the answer is sent.
 */
export function createSellVoucher(options: SellVoucherOptions) {
  const { store, book, turns, status, claimAfterMs, clock } = options;
  const corrections = createCorrections(store);

  /**
   * Null when the voucher fits the channel. The answer that it has bought before, when it has. Throws PaymentRefused otherwise. Throws Unavailable while
   * the channel's charges cannot be claimed. `seen`: the channel, if it was read when no other request had its turn.
   */
  async function boughtBefore(
    voucher: PresentedVoucher,
    order: PaidOrder,
    seen: Channel | null,
  ): Promise<Delivery | null> {
    const { channelId, payload } = voucher;
    const covered = { max: payload.voucher.maxClaimableAmount, price: order.price, deposit: 0n };
    let channel = await (seen ? book.fresh(seen, order.asker) : book.open(channelId, payload.config, order.asker));
    let fault = faultOf(channel, covered);
    // The client must be told the newest charges.
    if (fault && seen) return boughtBefore(voucher, order, null);
    const again = fault && (await redelivered(options, voucher, order));
    if (again) return again;
    if (fault?.mayBeOld) {
      channel = await book.reread(channel, order.asker);
      fault = faultOf(channel, covered);
    }
    if (fault) throw fault.refusal;
    checkClaimable(channel, { unavailable: status.unavailable(), claimAfterMs, nowMs: clock.nowMs() });
    if (await store.findOpen(channelId)) throw new PaymentRefused(reason('channel_busy'));
    return null;
  }

  async function sell(voucher: PresentedVoucher, order: PaidOrder, seen: Channel | null): Promise<Delivery> {
    let body: Uint8Array | null = null;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      // The channel is read again after a lost charge: another process has charged it meanwhile.
      const again = await boughtBefore(voucher, order, tries === 0 ? seen : null);
      if (again) return again;
      body ??= await order.run();
      const sale = await charge(options, voucher, order, body);
      if (sale) return handOut(options, sale, body, { price: order.price, rail: RECEIPTS });
    }
    throw new PaymentRefused(reason('channel_busy'));
  }

  /** One turn. A stale voucher is an outcome of the turn, because the channel then waits for the corrected one. */
  async function turn(
    voucher: PresentedVoucher,
    order: PaidOrder,
    { arrival, seen }: { arrival: number; seen: Channel | null },
  ): Promise<Turn<Delivery | PaymentRefused>> {
    const { maxClaimableAmount: max } = voucher.payload.voucher;
    try {
      return { value: await sell(voucher, order, seen), charged: max, isCorrected: false };
    } catch (error) {
      if (!(error instanceof StaleVoucher)) throw error;
      return {
        value: await corrections.answer(voucher.channelId, max, error, arrival),
        charged: error.charged,
        isCorrected: true,
      };
    }
  }

  return async (voucher: PresentedVoucher, order: PaidOrder): Promise<Delivery> => {
    const arrival = corrections.arrive();
    const { channelId, payload } = voucher;
    const { maxClaimableAmount: max } = payload.voucher;
    const channel = await store.get(channelId);
    // A request that needs no turn does not wait for one. A voucher over more than the charges has bought nothing.
    const again = channel && max <= channel.charged ? await redelivered(options, voucher, order) : null;
    if (again) return again;
    order.admit();
    // A claim makes vouchers public, so a stranger may present one over no more than what is claimed. It never takes a turn in the channel.
    if (channel && max <= channel.state.totalClaimed) throw new StaleVoucher(channel, 'cumulative_below_claimed');
    await checkIdentifier(options, order);
    const request = Buffer.from(order.requestHash).toString('latin1');
    const asking = { from: max - order.price, charged: channel?.charged ?? null, request };
    const sold = await turns.take(bytesToHex(channelId), asking, order.asker.signal, (hasWaited) =>
      turn(voucher, order, { arrival, seen: hasWaited ? null : channel }),
    );
    if (sold === null) throw new PaymentRefused(reason('channel_busy'));
    if (sold instanceof PaymentRefused) throw sold;
    return sold;
  };
}

/** The answer that the voucher has bought for this very request. Null without one. */
async function redelivered(
  options: SellVoucherOptions,
  { channelId, payload }: PresentedVoucher,
  order: PaidOrder,
): Promise<Delivery | null> {
  const sale = await options.store.findSale(channelId, payload.voucher.maxClaimableAmount);
  if (sale?.state !== 'settled' || !isSameRequest(sale, order)) return null;
  if (!isSameBuyer(sale, { ...order, clientHash: hashClient(sale.nonce, order.identity) })) return null;
  const body = await options.ledger.redeliver(sale.id);
  return body && handOut(options, sale, body, { price: sale.price ?? 0n, rail: RECEIPTS });
}

/** Throws 409 when another payment holds the identifier. A voucher that has it already was answered before. */
async function checkIdentifier({ ledger }: SellVoucherOptions, { identifierHash }: PaidOrder): Promise<void> {
  if (identifierHash && (await ledger.findByIdentifier(identifierHash))) throw identifierConflict(false);
}

/** Stores the charge and the answer. Null when the voucher does not fit the channel any more. */
async function charge(
  { ledger, network }: SellVoucherOptions,
  voucher: PresentedVoucher,
  order: PaidOrder,
  body: Uint8Array,
): Promise<Payment | null> {
  try {
    return await ledger.charge(saleOf(voucher, order, network), body);
  } catch (error) {
    // A store whose connection broke may have stored the charge. The same voucher then gets the answer.
    throw error instanceof Unavailable ? error : settlementUnknown(error);
  }
}

/** A voucher's nonce in the ledger's key. No two vouchers of one payer have the same. */
function nonceOf({ channelId, payload }: PresentedVoucher): Uint8Array {
  return keccak256(Buffer.concat([channelId, word(payload.voucher.maxClaimableAmount)]));
}

function saleOf(
  voucher: PresentedVoucher,
  order: PaidOrder,
  network: string,
): Omit<VoucherSale, 'id' | 'bootId' | 'reservedAt'> {
  const { channelId, payload } = voucher;
  const { config, voucher: signed } = payload;
  const { price, route, requestHash, identifierHash, identity } = order;
  const { maxClaimableAmount: max, signature } = signed;
  const nonce = nonceOf(voucher);
  const authorizationHash = hash('sha256', Buffer.concat([SETTLEMENT_BYTES, nonce, signature]), 'buffer');
  return {
    ...{ network, contract: SETTLEMENT_BYTES, payer: config.payer, nonce, authorizationHash },
    // A voucher has no times of its own.
    ...{ amount: price, price, payTo: config.receiver, validAfter: 0n, validBefore: 0n },
    ...{ requestHash, identifierHash, clientHash: hashClient(nonce, identity), route },
    channel: { channelId, max, signature },
  };
}
