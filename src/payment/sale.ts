import { TooMany, Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { NewPayment, Payment, PaymentKey } from '../store/ports/payments.ts';
import type { Sold } from './call.ts';
import { clientGone } from './checkout.ts';
import {
  checkPaidFor,
  createReuse,
  isReverted,
  isSameAuthorization,
  isSameBuyer,
  isSameRequest,
  mayReuse,
  type Reuse,
  refuseInFlight,
  refuseOtherHolder,
  UsedElsewhere,
} from './known-payment.ts';
import { createReadSoon, hashClient, hashRequest, type Ledger, type ReadSoon } from './ledger.ts';
import {
  askerOf,
  checkFailures,
  type Failures,
  hasCostARead,
  isBuyersDoing,
  refuseFailure,
  type UnknownPayments,
} from './limits.ts';
import type { Credential } from './protocol.ts';
import type { PayerReading, Sale, SignedPayment, SignedScheme, UsdcCall, Verified } from './rail.ts';
import { AnswerGone, refusedSettlement, soldOf } from './receipt.ts';
import {
  chargedUnknown,
  checkable,
  NOT_OFFERED,
  orSettlementUnknown,
  PaymentRefused,
  replyStoreFull,
  settlementUnknown,
} from './refusal.ts';
import { ALREADY_USED, type Intent, paymentKey } from './settler.ts';
import type { Settling } from './settling.ts';

// Sells a call for a payment that is signed before it and settled after it: the steps of STEPS.md as code, in their
// order. The protocol did step 1. A failure after the reservation releases it, is the settlement's written end, or
// says that the outcome is unknown.

/** What every sale of a process shares. */
export interface SaleContext {
  readonly ledger: Ledger;
  readonly settling: Pick<Settling, 'settle' | 'resume'>;
  readonly failures: Failures;
  readonly unknown: UnknownPayments;
  readonly clock: Clock;
  readonly network: string;
  readonly log: Log;
  readonly soon: ReadSoon;
  readonly reuse: Reuse;
  /** The ids of the rows that a call of this process works on. */
  readonly serving: Set<string>;
}

export function createSales(options: Omit<SaleContext, 'soon' | 'reuse' | 'serving'>): SaleContext {
  const { clock, ledger } = options;
  return { ...options, soon: createReadSoon(clock), reuse: createReuse(clock, ledger), serving: new Set() };
}

/** Throws PaymentRefused (402), BadParameter (400), AppErrors. No money was taken unless `charged` says otherwise. */
export async function sellSigned<P extends SignedPayment>(
  context: SaleContext,
  scheme: SignedScheme<P>,
  call: UsdcCall,
  credential: Credential,
): Promise<Sold> {
  const sale = readSale(context, scheme, call, credential);
  // 3. The ledger's row. A new payment's terms are checked right after this read, so that no row is written in between.
  const found = await find(context, sale.key);
  if (!found) checkNew(sale, nowSeconds(context.clock));
  // An identifier of another payload is the buyer's mistake, in any state. Otherwise its holder is this payment.
  const holder = await holderOf(context, sale);
  refuseOtherHolder(holder, sale, found);
  const known = found ?? holder;
  // A price or a time that has changed since must not turn the answer to a known authorization into a 402.
  if (known && !mayReuse(known, sale)) return again(context, sale, known);
  return known ? chargedUnknown(() => sellReverted(context, sale, known)) : sellUnused(context, sale);
}

/** 2. The request, the payment identifier and the payment. Throws BadParameter, PaymentRefused. */
function readSale<P extends SignedPayment>(
  { failures, network }: SaleContext,
  scheme: SignedScheme<P>,
  call: UsdcCall,
  credential: Credential,
): Sale<P> {
  const params = call.params();
  const identifier = credential.identifier();
  const payment = scheme.read(credential.payload);
  const { authorization } = payment;
  return {
    scheme,
    call,
    credential,
    requirement: scheme.requirement(call.plain),
    payment,
    key: paymentKey(authorization, network, scheme.contract),
    requestHash: hashRequest(call.route, params),
    clientHash: hashClient(authorization.nonce, call.identity),
    identifier,
    asker: askerOf(failures, call),
    reverted: null,
    id: '',
    body: new Uint8Array(),
  };
}

const find = ({ ledger, soon }: SaleContext, key: PaymentKey): Promise<Payment | null> => soon(ledger.find(key));

/** The payment that holds the identifier. The insert enforces that there is one; this read only names the reason. */
const holderOf = async ({ ledger, soon }: SaleContext, { identifier }: Sale): Promise<Payment | null> =>
  identifier && soon(ledger.findByIdentifier(identifier.hash));

const payerOf = ({ payment }: Sale): string => bytesToHex(payment.authorization.from);

/** Checks a payment that the ledger does not know. One that answers a challenge must answer an open one of ours. */
function checkNew(sale: Sale, now: number): void {
  sale.credential.checkChallenge?.(sale.requirement, now);
  checkTerms(sale, now);
}

/** Throws PaymentRefused unless the payment is for this offer. `now` in Unix seconds. */
function checkTerms(sale: Sale, now: number): void {
  const { scheme, call, credential, requirement, payment } = sale;
  if (call.endpoint.isOff) throw new PaymentRefused(NOT_OFFERED);
  scheme.checkAccepted(credential.accepted ?? requirement, requirement);
  scheme.check(payment, requirement, now);
}

/** 3. Settles an open payment, then returns the stored reply. 402: it failed, or buys nothing here. */
async function again(context: SaleContext, sale: Sale, known: Payment): Promise<Sold> {
  const { ledger, settling } = context;
  if (!isSameAuthorization(known, sale)) throw new PaymentRefused(ALREADY_USED);
  // A third party may have sent a reverted authorization since. So another presenter does not hear that it failed.
  if (isReverted(known)) throw new PaymentRefused(ALREADY_USED);
  refuseInFlight(known);
  const row = known.state === 'unknown' ? await orSettlementUnknown(() => settling.resume(known)) : known;
  if (row?.state === 'failed') throw refusedSettlement(row);
  if (row?.state !== 'settled') throw settlementUnknown();
  if (!(isSameRequest(row, sale) && isSameBuyer(row, sale))) throw new UsedElsewhere();
  const body = await orSettlementUnknown(() => ledger.redeliver(row.id));
  if (body) return soldOf(context, sale.scheme.receipt, row, body, row.price ?? row.amount);
  throw row.deliveredAt === null ? new AnswerGone(row) : new UsedElsewhere();
}

/** The evidence decides whether an authorization that reverted is sold for as a new one or has paid already. */
async function sellReverted(context: SaleContext, sale: Sale, known: Payment): Promise<Sold> {
  const { failures, reuse, ledger } = context;
  // It may have paid. So only the failures of this minute count.
  refuseFailure(failures.refusalOfMinute(payerOf(sale), sale.call.client));
  sale.reverted = known;
  if ((await reuse(sale, known)) === 'open') return sellUnused(context, sale);
  // It has paid. So its times and its payer no longer matter. It must only have paid for this call.
  if (!sale.scheme.checkPaid) checkPaidFor(sale);
  checkRoom(ledger);
  return serveAndSettle(context, sale, async () => {
    await sale.scheme.checkPaid?.(sale);
    return { checkedBlock: known.checkedBlock ?? 0, hasCode: false };
  });
}

async function sellUnused(context: SaleContext, sale: Sale): Promise<Sold> {
  // 4. Cheap checks and limits in memory.
  if (sale.reverted) checkTerms(sale, nowSeconds(context.clock));
  checkCapacity(context, sale);
  // `checkable` stands around 4 to 6: a source that does not answer counts against no buyer.
  const payer = await checkable(() => checkPayer(context, sale));
  if (!payer) return overtaken(context, sale);
  return serveAndSettle(context, sale, () => checkable(() => sale.scheme.verify(sale, payer)));
}

/** Throws TooMany when the payer or the client must wait, Unavailable when the rail or the store is not ready. */
function checkCapacity({ failures, ledger }: SaleContext, sale: Sale): void {
  const { status } = sale.scheme;
  checkFailures(failures, payerOf(sale), sale.call.client);
  const reason = status.refuses(sale.payment.authorization.from);
  if (reason) throw new TooMany('payer_refused', `payments of this payer are refused for now: ${reason}`, 3600);
  const shortage = status.unavailable();
  if (shortage) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${shortage}`);
  checkRoom(ledger);
}

/** For a payment that is charged as it is sold: its route, limits and space. `signer`: who signed it, in hex. */
export function admit({ failures, ledger }: SaleContext, signer: string, call: UsdcCall): void {
  if (call.endpoint.isOff) throw new PaymentRefused(NOT_OFFERED);
  checkFailures(failures, signer, call.client);
  checkRoom(ledger);
}

function checkRoom(ledger: Ledger): void {
  if (!ledger.hasRoom()) throw replyStoreFull();
}

/**
 * 4, in the ledger: earlier payments. 5. The signature. 6. The payer. Reserves nothing. Throws TooMany, 503
 * `ledger_unavailable`, and the scheme's. Failures count for the client, once signed also for the payer. Null: another
 * presentation was faster.
 */
async function checkPayer(context: SaleContext, sale: Sale): Promise<PayerReading | null> {
  const { failures } = context;
  const { client } = sale.call;
  let isAdmitted = false;
  let isSigned = false;
  try {
    await checkEarlier(context, sale);
    isAdmitted = true;
    const signed = await sale.scheme.checkSignature(sale);
    isSigned = true;
    return await sale.scheme.readPayer(sale, signed);
  } catch (error) {
    if (!sale.reverted && (await find(context, sale.key))) return null;
    if (isAdmitted && !isSigned && hasCostARead(error)) failures.noteUnproven(client);
    if (isSigned && isBuyersDoing(error, false)) failures.note(payerOf(sale), client);
    throw error;
  }
}

/** Throws TooMany: too many earlier payments are unknown, or this client's payers must have paid before. */
async function checkEarlier({ failures, unknown, ledger, soon }: SaleContext, sale: Sale): Promise<void> {
  const { client } = sale.call;
  await unknown.check(payerOf(sale), client);
  const waitSeconds = failures.newPayersAfterSeconds(client);
  if (waitSeconds <= 0 || (await soon(ledger.hasSettled(sale.key)))) return;
  const detail = 'settlements for this client have failed; only payers that have paid before are taken from it for now';
  throw new TooMany('client_refused', detail, waitSeconds);
}

/** What a payer hears that has too many payments open at once. */
export const OPEN_PAYMENTS = 'payer_open_payments';

// Another request was first, or the payer has too many open. A reverted one may be public: `charged: "unknown"`.
async function overtaken(context: SaleContext, sale: Sale): Promise<Sold> {
  const holder = await holderOf(context, sale);
  const known = await find(context, sale.key);
  refuseOtherHolder(holder, sale, known);
  if (known && !mayReuse(known, sale)) return again(context, sale, known);
  const refuse = async (): Promise<Sold> => {
    throw new TooMany(OPEN_PAYMENTS, 'this payer has too many payments open at once', 1);
  };
  return known ? chargedUnknown(refuse) : refuse();
}

async function serveAndSettle(context: SaleContext, sale: Sale, verify: () => Promise<Verified>): Promise<Sold> {
  const { ledger, serving } = context;
  const onId = (id: string): void => {
    sale.id = id;
    serving.add(id);
  };
  try {
    // 7. When the insert fails, the row may exist, or another presentation may have it and be charged.
    const reserved = await chargedUnknown(() => ledger.reserve(rowOf(sale), sale.reverted !== null, onId));
    if (!reserved) return await overtaken(context, sale);
    const verified = await serve(context, sale, verify);
    return await settleAndDeliver(context, sale, verified);
  } finally {
    serving.delete(sale.id);
  }
}

function rowOf(sale: Sale): Omit<NewPayment, 'id' | 'bootId' | 'reservedAt'> {
  const { call, credential, payment, key, requestHash, clientHash, identifier } = sale;
  const { value: amount, to: payTo, validAfter, validBefore } = payment.authorization;
  return {
    ...key,
    amount,
    payTo,
    validAfter,
    validBefore,
    authorizationHash: payment.authorizationHash,
    price: call.price,
    requestHash,
    clientHash,
    identifierHash: identifier?.hash ?? null,
    route: call.route,
    protocol: credential.protocol,
    channel: payment.channel ?? null,
  };
}

/** The store failed and may have stored the intent: when a connection breaks in a commit, nobody learns the result. */
class IntentInDoubt extends Error {}

/** 8. The last checks. 9-10. The handler runs, its reply is checked, and the client is still there. 11. The intent. */
async function serve(context: SaleContext, sale: Sale, verify: () => Promise<Verified>): Promise<Verified> {
  const { ledger, failures, log } = context;
  const { call } = sale;
  let verified: Verified | null = null;
  try {
    verified = await verify();
    sale.body = await call.run('sale', call.signal);
    if (call.signal.aborted) throw clientGone();
    await storeIntent(ledger, sale, verified);
    return verified;
  } catch (error) {
    const isDoubted = error instanceof IntentInDoubt;
    const reason = isDoubted ? error.cause : error;
    if (!isDoubted && isBuyersDoing(reason, verified !== null)) failures.note(payerOf(sale), call.client);
    const isReleased = await ledger.abandon(sale.id).catch((err) => {
      log.error({ err, payment: sale.id }, 'a reservation was not released');
      return false;
    });
    if (isReleased || !isDoubted) verified?.nothingSent?.();
    // Not released: the intent is stored, another process has the row, or the store does not answer.
    throw isReleased ? reason : settlementUnknown(reason);
  }
}

/** From here on, a crash charges the buyer only for a reply that can still be delivered. Throws IntentInDoubt. */
async function storeIntent(ledger: Ledger, { id, payment, body }: Sale, verified: Verified): Promise<void> {
  const { authorization, contractCall } = payment;
  const intent = {
    signature: authorization.signature,
    checkedBlock: verified.checkedBlock,
    payerHasCode: verified.hasCode,
    body,
    ...(contractCall && { calldata: contractCall.data }),
  };
  const stored = await ledger.storeIntent(id, intent).catch((cause) => {
    throw new IntentInDoubt('the intent was not stored for certain', { cause });
  });
  if (!stored) throw replyStoreFull();
}

/** 12. The settlement. 13. The last check of the amount, and the delivery. */
async function settleAndDeliver(context: SaleContext, sale: Sale, verified: Verified): Promise<Sold> {
  const { failures, unknown } = context;
  const { client, price } = sale.call;
  const payer = payerOf(sale);
  const end = failures.beginSettlement(payer, client);
  let movedNothing = false;
  try {
    const row = await orSettlementUnknown(() => settleRow(context, sale, verified));
    if (row?.state === 'settled') return soldOf(context, sale.scheme.receipt, row, sale.body, price);
    if (row?.state === 'unknown') unknown.note(sale.id, payer, client);
    if (row?.state !== 'failed') throw settlementUnknown();
    failures.note(payer, client);
    movedNothing = row.transaction !== null;
    throw refusedSettlement(row);
  } finally {
    end(movedNothing);
  }
}

async function settleRow(
  { ledger, settling }: SaleContext,
  { scheme, id, reverted, payment }: Sale,
  { checkedBlock, hasCode }: Verified,
): Promise<Payment | null> {
  if (reverted) {
    // An authorization that was tried before may have paid by now. So the evidence is read before it is sent again.
    const row = await ledger.get(id);
    return row && settling.resume(row);
  }
  const { authorization, contractCall: call = null } = payment;
  const intent: Intent = { id, authorization, call, fromBlock: checkedBlock, broadcast: false, hasCode };
  return settling.settle(intent, scheme.contract);
}
