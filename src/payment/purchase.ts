import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { AppError, TooMany, Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { LIVING_MS } from '../store/instances-port.ts';
import type { Payment, PaymentKey } from '../store/ledger-port.ts';
import { decodeEip3009, decodePayment } from './header.ts';
import { hashClient, hashRequest, type Ledger } from './ledger.ts';
import { createReadSoon } from './ledger-patience.ts';
import type { Order, Presentation } from './order.ts';
import type { PayerFailures } from './payer-failures.ts';
import { hashIdentifier, identifierConflict } from './payment-identifier.ts';
import { type Delivery, deliver, refusedSettlement } from './receipt.ts';
import { PaymentRefused } from './refusal.ts';
import { checkAccepted } from './requirements.ts';
import { IntentInDoubt, type Serve, type Served } from './serve.ts';
import { paymentKey } from './usdc/authorization.ts';
import type { RailFor } from './usdc/purchase-rail.ts';
import type { Settlement } from './usdc/settlement.ts';
import { REVERTED } from './usdc/settler.ts';

interface PurchaseOptions<S> {
  ledger: Ledger;
  settlement: Pick<Settlement, 'settle' | 'resume'>;
  railFor: RailFor;
  failures: PayerFailures;
  serve: Serve<S>;
  sources: S;
  clock: Clock;
  network: string;
  log: { error(detail: object, message: string): void };
}

/**
 * One paid request, in the order that the payment README numbers. `purchase` throws PaymentRefused (402), BadParameter (400) and other
 * AppErrors; none of them has moved money, except those that say `charged: "unknown"`.
 */
export function createPurchase<S>(options: PurchaseOptions<S>) {
  const { ledger, settlement, railFor, failures, serve, sources, clock, network, log } = options;
  const serving = new Set<string>();
  const soon = createReadSoon(clock);

  async function purchase(
    endpoint: Endpoint<S>,
    plain: PaymentRequirements,
    presentation: Presentation,
  ): Promise<Delivery> {
    const { signal } = presentation;
    // 1-2. Header and parameters.
    const envelope = decodePayment(presentation.header);
    const rail = railFor(envelope.accepted);
    const params = parseParams(endpoint, presentation.query, true);
    endpoint.checkParams(params, sources);
    const authorization = decodeEip3009(envelope.payload);
    const order: Order<S> = {
      endpoint,
      params,
      authorization,
      rail,
      key: paymentKey(authorization, network, rail.contract),
      requestHash: hashRequest(listedPath(endpoint), params),
      clientHash: hashClient(authorization.nonce, presentation.client),
      identifierHash: hashIdentifier(envelope.extensions),
    };
    // 3. A known authorization is judged by its row: a price or a time that has changed since must not turn it into a 402.
    // Before that, the identifier: with another payload it is a buyer's mistake, whatever became of either.
    await checkIdentifier(order);
    const known = await soon(ledger.find(order.key));
    if (known && !mayTakeOver(known, order)) return again(known, order);
    // 4-5. Cheap checks, then the signature.
    const requirement = rail.requirement(plain);
    checkAccepted(envelope.accepted, requirement);
    rail.checkAuthorization(authorization, requirement, nowSeconds(clock));
    await rail.checkSignature(authorization, signal);
    // 6. The reservation, by one insert.
    checkCapacity(order);
    let tried = '';
    try {
      const id = await reserve(order, known, (given) => {
        tried = given;
        serving.add(given);
      });
      if (!id) return await lostReservation(order);
      // 7-10. Chain or Gateway, handler, reply: any failure gives the authorization back.
      const served = await serveReserved(id, order, known, signal);
      // 11-12. Settle, then let the bytes go.
      return await settleAndDeliver(id, order, known, served);
    } finally {
      serving.delete(tried);
    }
  }

  function checkCapacity({ authorization: { from }, rail: { settler } }: Order<S>): void {
    const wait = failures.retryAfterSeconds(bytesToHex(from));
    if (wait > 0)
      throw new TooMany('payer_failures', 'too many of this payer’s calls failed uncharged; wait a little', wait);
    const refusal = settler.refuses?.(from);
    if (refusal) throw new TooMany('payer_refused', `payments of this payer are not taken for now: ${refusal}`, 3600);
    const reason = settler.unavailable();
    if (reason) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${reason}`);
    if (!ledger.hasRoom())
      throw new Unavailable('reply_store_full', 'no room to keep another reply; try again later', 30);
  }

  function reserve(order: Order<S>, known: Payment | null, onId: (id: string) => void): Promise<string | null> {
    const { authorization, key, requestHash, clientHash, identifierHash } = order;
    const { value: amount, to: payTo, validAfter, validBefore } = authorization;
    const terms = { amount, payTo, validAfter, validBefore };
    return ledger.reserve({ ...key, ...terms, requestHash, clientHash, identifierHash }, known !== null, onId);
  }

  async function serveReserved(
    id: string,
    order: Order<S>,
    known: Payment | null,
    signal: AbortSignal,
  ): Promise<Served> {
    const reservedMs = clock.nowMs();
    try {
      return await serve(id, order, known, signal);
    } catch (error) {
      failures.note(bytesToHex(order.authorization.from));
      const isDoubted = error instanceof IntentInDoubt;
      const reason = isDoubted ? error.cause : error;
      // An unreadable store must not hide why the call failed; reconciliation gives the reservation back later. Unless nobody knows whether it was
      // taken: then whoever held this process for dead may have sold it.
      const isGiven = await ledger.abandon(id).catch((err) => {
        log.error({ err, payment: id }, 'a reservation was not given back');
        return !isDoubted && clock.nowMs() - reservedMs < LIVING_MS;
      });
      // Kept after all and not taken back, or taken by whoever held this process for dead: what becomes of the payment is not known here.
      throw isGiven ? reason : settlementUnknown(reason);
    }
  }

  async function settleAndDeliver(
    id: string,
    order: Order<S>,
    known: Payment | null,
    served: Served,
  ): Promise<Delivery> {
    const { authorization, rail } = order;
    const ended = await openUntilKnown(async () => {
      const intent = { id, authorization, fromBlock: served.checkedBlock, broadcast: false };
      if (!known) return settlement.settle(intent, rail.contract);
      // One that was on the chain before may be paid by now: look before sending it again.
      const row = await ledger.get(id);
      return row && settlement.resume(row);
    });
    if (ended?.state === 'settled') return deliver(ended, served.body);
    if (ended?.state !== 'failed') throw settlementUnknown();
    failures.note(bytesToHex(authorization.from));
    throw refusedSettlement(ended);
  }

  /** An identifier that is held stands for one payload only. The reservation is what decides; this tells why it was lost, or will be. */
  async function checkIdentifier(order: Order<S>): Promise<void> {
    const holder = order.identifierHash && (await soon(ledger.findByIdentifier(order.identifierHash)));
    if (holder && !(sameKey(holder, order.key) && samePayload(holder, order))) throw identifierConflict();
  }

  /** Somebody else was faster, or the payer has too much open. */
  async function lostReservation(order: Order<S>): Promise<Delivery> {
    await checkIdentifier(order);
    const holder = await soon(ledger.find(order.key));
    if (holder && !mayTakeOver(holder, order)) return again(holder, order);
    throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
  }

  /** The same authorization once more: its reply again, its end if it was open, or why not. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    refuseInFlight(known);
    const payment = known.state === 'unknown' ? await openUntilKnown(() => settlement.resume(known)) : known;
    if (payment?.state === 'failed') throw refusedSettlement(payment);
    if (payment?.state !== 'settled') throw settlementUnknown();
    const body =
      samePayload(payment, order) && sameBuyer(payment, order)
        ? await openUntilKnown(() => ledger.redeliver(payment.id))
        : null;
    if (!body) throw new PaymentRefused('payment_already_used');
    return deliver(payment, body);
  }

  return { purchase, isServed: (id: string): boolean => serving.has(id) };
}

/** From a stored intent on, a failure of ours says nothing about the money: the answer is 503 `settlement_unknown`, whatever failed. */
async function openUntilKnown<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw settlementUnknown(cause);
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

/** The same terms for the same request, of an authorization that is known to be the same. */
function samePayload<S>(payment: Payment, order: Order<S>): boolean {
  const { value, to, validAfter, validBefore } = order.authorization;
  const terms = payment.amount === value && payment.validAfter === validAfter && payment.validBefore === validBefore;
  return terms && equal(payment.payTo, to) && equal(payment.requestHash, order.requestHash);
}

function sameKey(a: PaymentKey, b: PaymentKey): boolean {
  const onSameChain = a.network === b.network && equal(a.contract, b.contract);
  return onSameChain && equal(a.payer, b.payer) && equal(a.nonce, b.nonce);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the payment is on its way and its outcome not known yet; present the same payment again, it is never taken twice';
  return new AppError(503, 'settlement_unknown', detail, { charged: 'unknown', retryAfterSeconds: 2, cause });
}
