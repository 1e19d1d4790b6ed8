import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { AppError, TooMany, Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { LIVING_MS } from '../store/instances-port.ts';
import type { Payment } from '../store/ledger-port.ts';
import { inDoubt, openUntilKnown, settlementUnknown } from './doubt.ts';
import type { Failures } from './failures.ts';
import { decodeEip3009, decodePayment, type Envelope } from './header.ts';
import { isSameAuthorization, isSameBuyer, isSameRequest, mayTakeOver } from './known-payment.ts';
import { hashClient, hashRequest, type Ledger } from './ledger.ts';
import { createReadSoon } from './ledger-patience.ts';
import type { Order, Presentation } from './order.ts';
import { hashIdentifier, identifierConflict } from './payment-identifier.ts';
import { type Delivery, deliver, refusedSettlement, Underpaid } from './receipt.ts';
import { PaymentRefused } from './refusal.ts';
import { checkAccepted } from './requirements.ts';
import { IntentInDoubt, type Serve } from './serve.ts';
import { hashAuthorization, paymentKey } from './usdc/authorization.ts';
import type { Asker, Look, RailFor, Verified } from './usdc/purchase-rail.ts';
import type { Settlement } from './usdc/settlement.ts';
import { ALREADY_USED } from './usdc/settler.ts';

interface PurchaseOptions<S> {
  ledger: Ledger;
  settlement: Pick<Settlement, 'settle' | 'resume'>;
  railFor: RailFor;
  failures: Failures;
  serve: Serve<S>;
  sources: S;
  clock: Clock;
  network: string;
  log: { error(detail: object, message: string): void };
}

/** A served order: its bytes, and what was learned of the payer before. */
interface Served extends Verified {
  readonly body: Uint8Array;
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
    // 1-2. Header and parameters.
    const envelope = decodePayment(presentation.header);
    const order = readOrder(endpoint, envelope, presentation);
    // 3. A known authorization is judged by its row: a price or a time that has changed since must not turn it into a 402.
    // Before that, the identifier: with another payload it is a buyer's mistake, whatever became of either.
    await checkIdentifier(order);
    const known = await soon(ledger.find(order.key));
    if (known && !mayTakeOver(known, order)) return again(known, order);
    const requirement = order.rail.requirement(plain);
    const sale = () => sell(order, known, { envelope, requirement }, presentation.signal);
    return known ? inDoubt(sale) : sale();
  }

  function readOrder(endpoint: Endpoint<S>, envelope: Envelope, { query, client, identity }: Presentation): Order<S> {
    const rail = railFor(envelope.accepted);
    const params = parseParams(endpoint, query, true);
    endpoint.checkParams(params, sources);
    const authorization = decodeEip3009(envelope.payload);
    return {
      ...{ endpoint, params, authorization, rail, client },
      key: paymentKey(authorization, network, rail.contract),
      authorizationHash: hashAuthorization(authorization, rail.contract),
      price: endpoint.price?.units ?? 0n,
      requestHash: hashRequest(listedPath(endpoint), params),
      clientHash: hashClient(authorization.nonce, identity),
      identifierHash: hashIdentifier(envelope.extensions),
    };
  }

  async function sell(
    order: Order<S>,
    known: Payment | null,
    { envelope, requirement }: { envelope: Envelope; requirement: PaymentRequirements },
    signal: AbortSignal,
  ): Promise<Delivery> {
    const { authorization, rail, client } = order;
    // 4. Cheap checks, and who must wait: nothing of ours is spent yet.
    checkAccepted(envelope.accepted, requirement);
    rail.checkAuthorization(authorization, requirement, nowSeconds(clock));
    await checkCapacity(order);
    // 5-6. The signature, and a look at the payer.
    const seen = await lookAtPayer(order, known, { client, signal });
    // 7. The reservation, by one insert.
    let tried = '';
    try {
      const id = await reserve(order, known, (given) => {
        tried = given;
        serving.add(given);
      });
      if (!id) return await lostReservation(order);
      // 8-11. The last checks, handler, reply: any failure gives the authorization back.
      const served = await serveReserved(id, order, known, seen, { client, signal });
      // 12-13. Settle, then let the bytes go.
      return await settleAndDeliver(id, order, known, served);
    } finally {
      serving.delete(tried);
    }
  }

  async function lookAtPayer({ authorization, rail }: Order<S>, known: Payment | null, asker: Asker): Promise<Look> {
    const signed = await rail.checkSignature(authorization, asker).catch((error) => {
      if (error instanceof PaymentRefused) failures.noteUnproven(asker.client);
      throw error;
    });
    return rail.look(authorization, known, asker, signed).catch((error) => {
      if (isBuyersDoing(error, false)) failures.note(bytesToHex(authorization.from), asker.client);
      throw error;
    });
  }

  async function checkCapacity({ authorization: { from }, rail: { settler }, client, key }: Order<S>): Promise<void> {
    const refusal = failures.refusal(bytesToHex(from), client);
    if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
    const reason = settler.refuses?.(from);
    if (reason) throw new TooMany('payer_refused', `payments of this payer are not taken for now: ${reason}`, 3600);
    const shortage = settler.unavailable();
    if (shortage) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${shortage}`);
    if (!ledger.hasRoom())
      throw new Unavailable('reply_store_full', 'no room to keep another reply; try again later', 30);
    const waitSeconds = failures.newPayersAfterSeconds(client);
    if (waitSeconds > 0 && !(await ledger.hasSettled(key))) {
      const detail =
        'settlements for this client have failed; only payers that have paid before are taken from it for now';
      throw new TooMany('client_refused', detail, waitSeconds);
    }
  }

  function reserve(order: Order<S>, known: Payment | null, onId: (id: string) => void): Promise<string | null> {
    const { authorization, authorizationHash, price, key, requestHash, clientHash, identifierHash } = order;
    const { value: amount, to: payTo, validAfter, validBefore } = authorization;
    const terms = { amount, payTo, validAfter, validBefore, authorizationHash, price };
    return ledger.reserve({ ...key, ...terms, requestHash, clientHash, identifierHash }, known !== null, onId);
  }

  async function serveReserved(
    id: string,
    order: Order<S>,
    known: Payment | null,
    seen: Look,
    asker: Asker,
  ): Promise<Served> {
    const reservedMs = clock.nowMs();
    const { authorization, rail, client } = order;
    let isVerified = false;
    try {
      const verified = await rail.verify(id, authorization, known, seen, asker);
      isVerified = true;
      return { ...verified, body: await serve(id, order, verified, asker.signal) };
    } catch (error) {
      const isDoubted = error instanceof IntentInDoubt;
      const reason = isDoubted ? error.cause : error;
      if (!isDoubted && isBuyersDoing(reason, isVerified)) failures.note(bytesToHex(authorization.from), client);
      // An unreadable store must not hide why the call failed; reconciliation gives the reservation back later. Unless nobody knows whether it was
      // taken: then another process that took this one for dead may have sold it.
      const isGiven = await ledger.abandon(id).catch((err) => {
        log.error({ err, payment: id }, 'a reservation was not given back');
        return !isDoubted && clock.nowMs() - reservedMs < LIVING_MS;
      });
      // Kept after all and not taken back, or taken by a process that took this one for dead: what becomes of the payment is not known here.
      throw isGiven ? reason : settlementUnknown(reason);
    }
  }

  async function settleAndDeliver(
    id: string,
    order: Order<S>,
    known: Payment | null,
    { body, checkedBlock, hasCode }: Served,
  ): Promise<Delivery> {
    const { authorization, rail, client } = order;
    const ended = await openUntilKnown(async () => {
      const intent = { id, authorization, fromBlock: checkedBlock, broadcast: false, hasCode };
      if (!known) return settlement.settle(intent, rail.contract);
      // One that was on the chain before may be paid by now: look before sending it again.
      const row = await ledger.get(id);
      return row && settlement.resume(row);
    });
    if (ended?.state === 'settled') return handOut(ended, body, order.price);
    if (ended?.state !== 'failed') throw settlementUnknown();
    failures.note(bytesToHex(authorization.from), client);
    if (ended.transaction !== null) failures.noteSettlement(client);
    throw refusedSettlement(ended);
  }

  /** An identifier that is held stands for one payload only. The reservation is what decides; this tells why it was lost, or will be. */
  async function checkIdentifier(order: Order<S>): Promise<void> {
    const holder = order.identifierHash && (await soon(ledger.findByIdentifier(order.identifierHash)));
    if (holder && !(isSameAuthorization(holder, order) && isSameRequest(holder, order))) throw identifierConflict();
  }

  /** Another request was faster, or the payer has too much open. One that has reverted meanwhile is public, as where it is known from the start. */
  async function lostReservation(order: Order<S>): Promise<Delivery> {
    await checkIdentifier(order);
    const holder = await soon(ledger.find(order.key));
    if (holder && !mayTakeOver(holder, order)) return again(holder, order);
    const refuse = async (): Promise<Delivery> => {
      throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
    };
    return holder ? inDoubt(refuse) : refuse();
  }

  /** The same authorization once more: its reply again, its end if it was open, or why not. With any other content it is another one. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    if (!isSameAuthorization(known, order)) throw new PaymentRefused(ALREADY_USED);
    refuseInFlight(known);
    const payment = known.state === 'unknown' ? await openUntilKnown(() => settlement.resume(known)) : known;
    if (payment?.state === 'failed') throw refusedSettlement(payment);
    if (payment?.state !== 'settled') throw settlementUnknown();
    const body =
      isSameRequest(payment, order) && isSameBuyer(payment, order)
        ? await openUntilKnown(() => ledger.redeliver(payment.id))
        : null;
    if (!body) throw new PaymentRefused(ALREADY_USED);
    return handOut(payment, body, payment.price ?? payment.amount);
  }

  function handOut(payment: Payment, body: Uint8Array, price: bigint): Delivery {
    try {
      return deliver(payment, body, price);
    } catch (error) {
      if (error instanceof Underpaid) log.error({ err: error }, 'ALERT: an answer was held back because less was paid');
      throw error;
    }
  }

  return { purchase, isServed: (id: string): boolean => serving.has(id) };
}

/** Whether a failure before the intent counts against the buyer: a refused payment does, and work that was done for nothing; our own shortage does not. */
function isBuyersDoing(error: unknown, isVerified: boolean): boolean {
  if (error instanceof PaymentRefused) return true;
  return isVerified && !(error instanceof Unavailable);
}

/** The first presentation is still at it, and may take the money at any moment. */
function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}
