import { hash } from 'node:crypto';
import type { Config } from '../../config.ts';
import { AppError, TooMany } from '../../errors.ts';
import { type Clock, DAY_MS } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import {
  checkAll,
  clientTakes,
  createMinuteWindows,
  MAX_CLIENTS,
  openClientWindows,
  type Take,
  takeAll,
} from '../../lib/limits/count.ts';
import type { ChannelCharge } from '../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import type { Sold } from '../call.ts';
import { UsedElsewhere } from '../known-payment.ts';
import type { Credential } from '../protocol.ts';
import type { Sale, SignedPayment, SignedScheme, UsdcCall } from '../rail.ts';
import { AnswerGone } from '../receipt.ts';
import { chargedUnknown, PaymentRefused } from '../refusal.ts';
import { OPEN_PAYMENTS, sellSigned } from '../sale.ts';
import { type Authorization, EXPIRED, NONCE_USED, REVERTED } from '../settler.ts';
import { hashAuthorization, neededValidity, receiveDigest } from '../usdc/authorization.ts';
import {
  type ChainCheck,
  type ContractBudget,
  createAuthorizationChecks,
  createSignatureCheck,
} from '../usdc/checks.ts';
import type { Evidence } from '../usdc/evidence.ts';
import { domainSeparator, USDC_DOMAIN } from '../usdc/token.ts';
import { depositCalldata } from './calldata.ts';
import { type ChannelContext, channelReceipt } from './channel.ts';
import {
  type ChannelPayload,
  checkAcceptedTerms,
  checkVoucher,
  DEPOSIT_COLLECTOR,
  depositNonce,
  readPayload,
  reason,
  SETTLEMENT_BYTES,
} from './scheme.ts';
import { type Covered, faultOf, StaleVoucher } from './voucher-sale.ts';

// A deposit: a payment that moves its payer's money into a channel, and pays for the call that brings it. It is an
// authorization for the collector, bound to the channel by its nonce. The channel, the payer and the day's limits are
// checked before the reservation and after it. Where others have sent it, its channel is read again afterwards.

export type DepositPayload = Extract<ChannelPayload, { kind: 'deposit' }>;

export interface DepositPayment extends SignedPayment {
  readonly payload: DepositPayload;
  readonly channel: ChannelCharge;
}

const COLLECTOR = hexToBytes(DEPOSIT_COLLECTOR);

/** The authorization's nonce follows from the channel's id, so the money cannot go to another channel. */
export function depositPayment(payload: DepositPayload): DepositPayment {
  const { config, voucher, deposit } = payload;
  const { channelId, maxClaimableAmount: max, signature } = voucher;
  const authorization: Authorization = {
    from: config.payer,
    to: COLLECTOR,
    value: deposit.amount,
    signature: deposit.signature,
    validAfter: deposit.validAfter,
    validBefore: deposit.validBefore,
    nonce: depositNonce(channelId, deposit.salt),
    passedTo: SETTLEMENT_BYTES,
  };
  const whole = [hashAuthorization(authorization, SETTLEMENT_BYTES), channelId, Buffer.from(`${max}`), signature];
  return {
    payload,
    authorization,
    channel: { channelId, max, signature },
    authorizationHash: hash('sha256', Buffer.concat(whole), 'buffer'),
    get contractCall() {
      return { to: SETTLEMENT_BYTES, data: depositCalldata(config, deposit.amount, DEPOSIT_COLLECTOR, deposit) };
    },
  };
}

/** Base units and seconds. */
interface DepositBounds {
  readonly minDeposit: bigint;
  /** How long the authorization must, and may, be valid from now on. */
  readonly leastValidity: number;
  readonly mostValidity: number;
}

/** Throws PaymentRefused with the scheme's reason. Needs no chain. `now` in Unix seconds. */
export function checkDeposit({ deposit }: DepositPayload, bounds: DepositBounds, now: number): void {
  const { amount, validAfter, validBefore } = deposit;
  const left = validBefore - BigInt(now);
  if (left < BigInt(bounds.leastValidity) || left > BigInt(bounds.mostValidity))
    throw new PaymentRefused(reason('payload_authorization_valid_before'));
  if (validAfter >= BigInt(now)) throw new PaymentRefused(reason('payload_authorization_valid_after'));
  if (amount === 0n || amount < bounds.minDeposit) throw new PaymentRefused(reason('deposit_below_min_deposit'));
}

/** The scheme's names. It has one for a deposit that reverted and for one whose authorization was used or cancelled. */
const REASONS: Readonly<Record<string, string>> = {
  [REVERTED]: reason('deposit_transaction_failed'),
  [NONCE_USED]: reason('deposit_transaction_failed'),
  [EXPIRED]: reason('payload_authorization_valid_before'),
};

/** Why a deposit failed, in the scheme's words. A reason without a name there stays as it is. */
function depositReason(stored: string): string {
  return REASONS[stored] ?? stored;
}

/** Seconds of a stock client's deposit. Few, as an unclear one blocks its channel; many times a settlement. */
export const DEPOSIT_SECONDS = 600;
/** Seconds by which a client's clock may be ahead of ours. */
const CLOCK_SLACK_SECONDS = 120;

/** The scheme's names for what an authorization is refused with before it is settled. */
const CHECK_REASONS = {
  insufficient: reason('insufficient_balance'),
  // The deposit may be in the channel already, sent by a third party. The client's state is old then.
  used: reason('deposit_transaction_failed'),
  simulation: reason('deposit_simulation_failed'),
};

export interface DepositNeeds {
  readonly config: Config;
  readonly check: ChainCheck;
  readonly contracts: ContractBudget;
  readonly evidence: Evidence;
  readonly balanceContracts: readonly Uint8Array[];
}

/** A deposit as `sellSigned` sees it: an authorization of the token, and what its channel adds to the checks. */
export function createDepositScheme(context: ChannelContext, needs: DepositNeeds): SignedScheme<DepositPayment> {
  const { sales, setup, store, book, status, requirement } = context;
  const { ledger, clock } = sales;
  const { minDeposit } = setup.channels;
  const checks = createAuthorizationChecks({ ...needs, ledger, status, clock, reasons: CHECK_REASONS });
  const limits = createDepositLimits(clock, store, setup.channels);
  const leastValidity = neededValidity(needs.config);
  const bounds = { minDeposit, leastValidity, mostValidity: DEPOSIT_SECONDS + CLOCK_SLACK_SECONDS };
  return {
    contract: SETTLEMENT_BYTES,
    status,
    requirement,
    read: (given) => {
      const payload = readPayload(given);
      if (payload.kind !== 'deposit') throw new PaymentRefused(reason('payload_type'));
      return depositPayment(payload);
    },
    checkAccepted: checkAcceptedTerms,
    check: ({ payload }, _requirement, now) => {
      checkVoucher(payload, setup.terms, setup.scheme);
      checkDeposit(payload, bounds, now);
    },
    checkSignature: createDepositSignatureCheck(context, needs),
    /** The ledger comes first, because it costs no read. Only what may be reserved makes a row of a channel. */
    readPayer: async (sale, signed) => {
      const { voucher, config } = sale.payment.payload;
      const known = await store.get(voucher.channelId);
      const certain = known && faultOf(known, coveredBy(sale));
      if (certain && !certain.mayBeOld) throw certain.refusal;
      const seen = await checks.readPayer(sale, signed);
      const { channel, isNew } = await book.look(voucher.channelId, config, sale.asker);
      checkCovered(channel, coveredBy(sale));
      await limits.check(channel, sale.asker.client);
      if (isNew) await book.keep(channel);
      return seen;
    },
    verify: async (sale, payer) => {
      const { voucher, config } = sale.payment.payload;
      const channel = await book.open(voucher.channelId, config, sale.asker);
      checkCovered(channel, coveredBy(sale));
      const takeBack = await limits.take(channel, sale.asker.client);
      try {
        return { ...(await checks.verify(sale, payer)), nothingSent: takeBack };
      } catch (error) {
        takeBack();
        throw error;
      }
    },
    review: checks.review,
    /** The deposit is in the channel by now. */
    checkPaid: async (sale) => {
      const { voucher, config } = sale.payment.payload;
      const channel = await book.reread(await book.open(voucher.channelId, config, sale.asker), sale.asker);
      checkCovered(channel, { ...coveredBy(sale), deposit: 0n });
    },
    receipt: channelReceipt,
  };
}

/** Its digest is that of an authorization to receive, in the token's domain. */
function createDepositSignatureCheck(
  { sales: { ledger }, status }: ChannelContext,
  { config, check, contracts }: DepositNeeds,
): SignedScheme['checkSignature'] {
  const { usdc, chainId } = config.network;
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc));
  const digestOf = (authorization: Authorization) => receiveDigest(authorization, separator);
  const checkSignature = createSignatureCheck({ check, digestOf, status, ledger, contracts });
  return (sale) =>
    checkSignature(sale).catch((error) => {
      throw error instanceof PaymentRefused ? new PaymentRefused(reason('receive_authorization_signature')) : error;
    });
}

/** Sells a deposit as any signed payment is sold, and says no in the scheme's words. */
export async function sellDeposit(
  { sales, store }: Pick<ChannelContext, 'sales' | 'store'>,
  scheme: SignedScheme<DepositPayment>,
  call: UsdcCall,
  credential: Credential,
): Promise<Sold> {
  const charge = () => scheme.read(credential.payload).channel;
  try {
    return await sellSigned(sales, scheme, call, credential);
  } catch (error) {
    if (error instanceof UsedElsewhere) throw await chargedUnknown(() => staleOrMismatched(store, charge()));
    if (error instanceof AnswerGone) throw error.withReceipt(channelReceipt);
    if (error instanceof PaymentRefused) throw error.renamed(depositReason(error.reason));
    if (!(error instanceof AppError) || error.code !== OPEN_PAYMENTS) throw error;
    const refusal = await chargedUnknown(() => busyOrStale(store, charge()));
    // Its channel may have got a row, and its payer was read.
    if (!refusal) sales.failures.noteUnproven(call.client);
    throw refusal ?? error;
  }
}

function coveredBy({ payment, call }: Sale<DepositPayment>): Covered {
  const { voucher, deposit } = payment.payload;
  return { max: voucher.maxClaimableAmount, price: call.price, deposit: deposit.amount };
}

function checkCovered(channel: Channel, covered: Covered): void {
  const fault = faultOf(channel, covered);
  if (fault) throw fault.refusal;
}

/**
 * Why the ledger did not reserve a deposit: another use of its channel is open, or the voucher has bought another call,
 * so that the client's state is old. Null where its payer has too many payments open.
 */
async function busyOrStale(store: ChannelStore, { channelId, max }: ChannelCharge): Promise<PaymentRefused | null> {
  if (await store.findOpen(channelId)) return new PaymentRefused(reason('channel_busy'));
  const known = await store.get(channelId);
  return known && (await store.findSale(channelId, max)) ? new StaleVoucher(known) : null;
}

/** The deposit has been used for another request. */
async function staleOrMismatched(store: ChannelStore, { channelId }: ChannelCharge): Promise<PaymentRefused> {
  const known = await store.get(channelId);
  return known ? new StaleVoucher(known) : new PaymentRefused(reason('cumulative_amount_mismatch'));
}

// A deposit costs us 0.1M to 0.2M gas, 0.002 to 0.004 USDC at 20 gwei; its payer may take the money back at once.

/** A day's deposits that have not earned their gas, by payer, client and IPv6 /48. In memory: they protect gas. */
export function createDepositLimits(
  clock: Clock,
  store: Pick<ChannelStore, 'getRefunded'>,
  { minDeposit, depositsADay: most }: Pick<NonNullable<Config['rails']['channels']>, 'minDeposit' | 'depositsADay'>,
) {
  const open = () => createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const payers = open();
  const clients = openClientWindows(open, 'deposits');

  /** Whether calls have used half of what was put in and not withdrawn, which earns the gas of one more deposit. */
  async function isSpent({ id, charged, writtenOff, state }: Channel): Promise<boolean> {
    const { balance, refundNonce } = state;
    const spent = charged - writtenOff;
    if (2n * spent < minDeposit) return false;
    const refunded = refundNonce === 0n ? 0n : await store.getRefunded(id);
    return 2n * spent >= balance + refunded;
  }

  /** Returns what takes the count back. Never counts a spent channel. Throws TooMany (429, `too_many_deposits`). */
  async function take(channel: Channel, client: string): Promise<() => void> {
    return (await isSpent(channel)) ? () => {} : takeAll(takesOf(channel, client));
  }

  function takesOf(channel: Channel, client: string): readonly Take[] {
    const ofPayer = (seconds: number) => tooMany('payer', seconds);
    return [
      { windows: payers, key: bytesToHex(channel.payer), limit: most.payer, refusal: ofPayer },
      ...clientTakes(clients, client, most.client, (seconds) => tooMany('client', seconds)),
    ];
  }

  return {
    take,
    /** Throws as `take` does, and counts nothing. */
    check: async (channel: Channel, client: string): Promise<void> => {
      if (!(await isSpent(channel))) checkAll(takesOf(channel, client));
    },
  };
}

export type DepositLimits = ReturnType<typeof createDepositLimits>;

function tooMany(whose: 'payer' | 'client', retryAfterSeconds: number): TooMany {
  const detail =
    `this ${whose} has made too many deposits today whose money was not spent; ` +
    'use the channels that hold money, or pay each call by the entry "exact"';
  return new TooMany('too_many_deposits', detail, retryAfterSeconds);
}
