import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { AppError, TooMany, Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Payment } from '../store/ledger-port.ts';
import { decodeEip3009, decodePayment } from './header.ts';
import { hashClient, hashRequest, type Ledger } from './ledger.ts';
import type { Order, Presentation } from './order.ts';
import type { PayerFailures } from './payer-failures.ts';
import { hashIdentifier } from './payment-identifier.ts';
import { type Delivery, deliver, refusedSettlement } from './receipt.ts';
import { PaymentRefused } from './refusal.ts';
import { checkAccepted } from './requirements.ts';
import type { Serve } from './serve.ts';
import { type Authorization, checkAuthorization, paymentKey } from './usdc/authorization.ts';
import type { Settlement } from './usdc/settlement.ts';
import { REVERTED, type Settler } from './usdc/settler.ts';

interface PurchaseOptions<S> {
  ledger: Ledger;
  settlement: Settlement;
  settler: Settler;
  failures: PayerFailures;
  serve: Serve<S>;
  /** Throws PaymentRefused unless the payer signed. */
  checkSignature(authorization: Authorization): Promise<void>;
  clock: Clock;
  network: string;
  usdc: `0x${string}`;
}

/**
 * One paid request, in the order that the payment README numbers. Throws PaymentRefused (402), BadParameter (400) and other AppErrors;
 * none of them has moved money, except 503 `settlement_unknown`, which says so.
 */
export function createPurchase<S>(options: PurchaseOptions<S>) {
  const { ledger, settlement, settler, failures, serve, checkSignature, clock, network } = options;
  const contract = hexToBytes(options.usdc);

  return async function purchase(
    endpoint: Endpoint<S>,
    requirement: PaymentRequirements,
    presentation: Presentation,
  ): Promise<Delivery> {
    // 1-3. Header, parameters, cheap checks: no store, no chain, no cryptography.
    const envelope = decodePayment(presentation.header);
    const params = parseParams(endpoint, presentation.query, true);
    checkAccepted(envelope.accepted, requirement);
    const eip3009 = decodeEip3009(envelope.payload);
    const authorization = checkAuthorization(eip3009, requirement, nowSeconds(clock));
    const order: Order<S> = {
      endpoint,
      params,
      authorization,
      requestHash: hashRequest(listedPath(endpoint), params),
      clientHash: hashClient(authorization.nonce, presentation.client),
      identifierHash: hashIdentifier(envelope.extensions),
    };
    // 4. What the ledger knows of this authorization.
    const key = paymentKey(authorization, network, contract);
    const known = await ledger.find(key);
    if (known) refuseInFlight(known);
    // 5. The signature.
    await checkSignature(authorization);
    if (known && !mayTakeOver(known, order)) return again(known, order);
    // 6. The reservation, by one insert.
    checkCapacity(authorization);
    const { requestHash, clientHash, identifierHash } = order;
    const { value: amount, to: payTo, validAfter, validBefore } = authorization;
    const terms = { amount, payTo, validAfter, validBefore };
    const id = await ledger.reserve({ ...key, ...terms, requestHash, clientHash, identifierHash });
    if (!id) return lostReservation(await ledger.find(key), order);
    // 7-10. Chain, handler, reply: any failure gives the authorization back.
    const body = await reserved(id, order, known, presentation.signal);
    // 11-12. Settle, then let the bytes go.
    return settleAndDeliver(id, order, known, body);
  };

  function checkCapacity(authorization: Authorization): void {
    const payer = bytesToHex(authorization.from);
    const wait = failures.retryAfterSeconds(payer);
    if (wait > 0)
      throw new TooMany('payer_failures', 'too many of this payer’s calls failed uncharged; wait a little', wait);
    const reason = settler.unavailable();
    if (reason) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${reason}`);
    if (!ledger.hasRoom())
      throw new Unavailable('reply_store_full', 'no room to keep another reply; try again later', 30);
  }

  async function reserved(
    id: string,
    order: Order<S>,
    known: Payment | null,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    try {
      return await serve(id, order, known, signal);
    } catch (error) {
      failures.note(bytesToHex(order.authorization.from));
      await ledger.release(id);
      throw error;
    }
  }

  async function settleAndDeliver(
    id: string,
    order: Order<S>,
    known: Payment | null,
    body: Uint8Array,
  ): Promise<Delivery> {
    let ended: Payment | null = null;
    try {
      const row = await ledger.get(id);
      const intent = { id, authorization: order.authorization, fromBlock: row?.checkedBlock ?? 0 };
      // One that was on the chain before may be paid by now: look before sending it again.
      ended = known && row ? await settlement.resume(row) : await settlement.settle(intent);
    } catch (cause) {
      throw settlementUnknown(cause);
    }
    if (ended?.state === 'settled') return deliver(ended, body);
    if (ended?.state !== 'failed') throw settlementUnknown();
    failures.note(bytesToHex(order.authorization.from));
    throw refusedSettlement(ended);
  }

  /** Somebody else was faster, or the payer has too much open. */
  function lostReservation(holder: Payment | null, order: Order<S>): Promise<Delivery> {
    if (!holder) throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
    refuseInFlight(holder);
    return again(holder, order);
  }

  /** The same authorization once more: its reply again, its end if it was open, or why not. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    const payment = known.state === 'unknown' ? await settlement.resume(known) : known;
    if (payment?.state === 'failed') throw refusedSettlement(payment);
    if (payment?.state !== 'settled') throw settlementUnknown();
    const same = sameBuyer(payment, order) && equal(payment.requestHash, order.requestHash);
    const body = same ? await ledger.redeliver(payment.id) : null;
    if (!body) throw new PaymentRefused('payment_already_used');
    return deliver(payment, body);
  }
}

function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { retryAfterSeconds: 1 });
}

/** A reverted authorization is still good, but the chain shows it to everybody: only its first presenter may use it again. */
function mayTakeOver<S>(known: Payment, order: Order<S>): boolean {
  return known.state === 'failed' && known.reason === REVERTED && sameBuyer(known, order);
}

/** What the chain does not show: the address of the first presentation, or the payment identifier. */
function sameBuyer<S>(payment: Payment, order: Order<S>): boolean {
  if (equal(payment.clientHash, order.clientHash)) return true;
  return Boolean(payment.identifierHash && order.identifierHash && equal(payment.identifierHash, order.identifierHash));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the payment is on its way and its outcome not known yet; present the same payment again, it is never taken twice';
  return new AppError(503, 'settlement_unknown', detail, { charged: 'unknown', retryAfterSeconds: 2, cause });
}
