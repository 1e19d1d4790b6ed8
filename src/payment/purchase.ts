import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { AppError, TooMany } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { LIVING_MS } from '../store/ports/instances.ts';
import type { Payment } from '../store/ports/sales.ts';
import { createAdmission, isBuyersDoing } from './admission.ts';
import { paymentKey } from './authorization.ts';
import { inDoubt, openUntilKnown, settlementUnknown } from './doubt.ts';
import type { Failures } from './failures.ts';
import {
  isReverted,
  isSameAuthorization,
  isSameBuyer,
  isSameRequest,
  mayHaveMoved,
  mayTakeOver,
} from './known-payment.ts';
import { hashClient, hashRequest, type Ledger } from './ledger.ts';
import { createReadSoon } from './ledger-patience.ts';
import type { Order, Presentation } from './order.ts';
import { hashIdentifier, identifierConflict } from './payment-identifier.ts';
import type { Credential } from './protocol.ts';
import type { RailFor, Verified } from './rail.ts';
import { type Delivery, deliver, refusedSettlement, Underpaid } from './receipt.ts';
import { PaymentRefused } from './refusal.ts';
import { IntentInDoubt, type Serve } from './serve.ts';
import type { Settlement } from './settlement.ts';
import { ALREADY_USED } from './settler.ts';
import { createTakeover } from './takeover.ts';

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

/** What is presented with a payment, and what is asked for it. */
interface Offer {
  readonly credential: Credential;
  readonly requirement: PaymentRequirements;
  readonly signal: AbortSignal;
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
  const takeover = createTakeover({ ledger, clock });
  const admission = createAdmission({ ledger, failures });

  async function purchase(
    endpoint: Endpoint<S>,
    plain: PaymentRequirements,
    presentation: Presentation,
  ): Promise<Delivery> {
    // 2. The parameters. Step 1, the header, was its protocol's.
    const { credential } = presentation;
    const order = readOrder(endpoint, presentation);
    // 3. What the ledger has; `soon` bounds each read (3d).
    const known = await soon(ledger.find(order.key));
    // 3a. The identifier: with another payload it is the buyer's mistake, whatever became of either payment.
    await checkIdentifier(order, known);
    // 3b-3c. A known authorization is judged by its row: a price or a time that has changed since must not turn it into a 402.
    if (known && !mayTakeOver(known, order)) return again(known, order);
    const offer = { credential, requirement: order.rail.requirement(plain), signal: presentation.signal };
    return known ? inDoubt(() => sellAgain(order, known, offer)) : sell(order, null, offer);
  }

  function readOrder(endpoint: Endpoint<S>, { credential, query, client, identity }: Presentation): Order<S> {
    const rail = railFor(credential.accepted);
    const params = parseParams(endpoint, query, true);
    endpoint.checkParams(params, sources);
    const { authorization, authorizationHash } = rail.read(credential.payload);
    return {
      ...{ endpoint, params, authorization, authorizationHash, rail, client },
      key: paymentKey(authorization, network, rail.contract),
      price: endpoint.price?.units ?? 0n,
      requestHash: hashRequest(listedPath(endpoint), params),
      clientHash: hashClient(authorization.nonce, identity),
      identifierHash: hashIdentifier(credential.extensions),
    };
  }

  /** What reverted before: the evidence decides whether it is sold for anew, or has paid. */
  async function sellAgain(order: Order<S>, known: Payment, offer: Offer): Promise<Delivery> {
    const { credential, requirement, signal } = offer;
    if ((await takeover(known, order, admission.asker(order, signal))) === 'open') return sell(order, known, offer);
    // It has paid: neither its time nor its payer matters any more, only that it is for this call.
    checkPaidFor(order, credential, requirement);
    admission.checkRoom();
    const verified = { checkedBlock: known.checkedBlock ?? 0, hasCode: false };
    return serveAndSettle(order, known, async () => verified, signal);
  }

  async function sell(order: Order<S>, known: Payment | null, offer: Offer): Promise<Delivery> {
    const { authorization, rail } = order;
    const { credential, requirement, signal } = offer;
    const asker = admission.asker(order, signal);
    // 4. Cheap checks and limits: in memory, but for one ledger read when the client's settlements failed.
    rail.checkAccepted(credential.accepted, requirement);
    rail.checkAuthorization(authorization, requirement, nowSeconds(clock));
    await admission.checkCapacity(order);
    // 5-6. The signature, and a look at the payer.
    const isAgain = known !== null;
    const seen = await admission.lookAtPayer(order, isAgain, asker);
    const verify = (id: string) => rail.verify(id, authorization, seen, { asker, isAgain });
    return serveAndSettle(order, known, verify, signal);
  }

  async function serveAndSettle(
    order: Order<S>,
    known: Payment | null,
    verify: (id: string) => Promise<Verified>,
    signal: AbortSignal,
  ): Promise<Delivery> {
    // 7. The reservation, by one insert.
    let tried = '';
    try {
      const id = await reserve(order, known, (given) => {
        tried = given;
        serving.add(given);
      });
      if (!id) return await lostReservation(order);
      // 8-11. The last checks, handler, reply: any failure gives the authorization back.
      const served = await serveReserved(id, order, () => verify(id), signal);
      // 12-13. Settle, then let the bytes go.
      return await settleAndDeliver(id, order, known, served);
    } finally {
      serving.delete(tried);
    }
  }

  function reserve(order: Order<S>, known: Payment | null, onId: (id: string) => void): Promise<string | null> {
    const { endpoint, authorizationHash, price, key, requestHash, clientHash, identifierHash } = order;
    const { value: amount, to: payTo, validAfter, validBefore } = order.authorization;
    const terms = { amount, payTo, validAfter, validBefore, authorizationHash, price, route: listedPath(endpoint) };
    return ledger.reserve({ ...key, ...terms, requestHash, clientHash, identifierHash }, known !== null, onId);
  }

  async function serveReserved(
    id: string,
    order: Order<S>,
    verify: () => Promise<Verified>,
    signal: AbortSignal,
  ): Promise<Served> {
    const reservedMs = clock.nowMs();
    const { authorization, client } = order;
    let isVerified = false;
    try {
      const verified = await verify();
      isVerified = true;
      return { ...verified, body: await serve(id, order, verified, signal) };
    } catch (error) {
      const isDoubted = error instanceof IntentInDoubt;
      const reason = isDoubted ? error.cause : error;
      if (!isDoubted && isBuyersDoing(reason, isVerified)) failures.note(bytesToHex(authorization.from), client);
      // A failing store must not hide why the call failed. Reconciliation releases the reservation later. So the reason is thrown, unless the
      // intent may be stored, or this process has run for so long that another may have taken its row over.
      const isGiven = await ledger.abandon(id).catch((err) => {
        log.error({ err, payment: id }, 'a reservation was not given back');
        return !isDoubted && clock.nowMs() - reservedMs < LIVING_MS;
      });
      // Not released: the intent is stored, or another process has the row. So the payment's outcome is unknown here.
      throw isGiven ? reason : settlementUnknown(reason);
    }
  }

  async function settleAndDeliver(
    id: string,
    order: Order<S>,
    known: Payment | null,
    served: Served,
  ): Promise<Delivery> {
    const { authorization, client } = order;
    const payer = bytesToHex(authorization.from);
    const end = failures.beginSettlement(payer, client);
    let movedNothing = false;
    try {
      const ended = await openUntilKnown(() => settleRow(id, order, known, served));
      if (ended?.state === 'settled') return handOut(ended, served.body, order.price);
      if (ended?.state !== 'failed') throw settlementUnknown();
      failures.note(payer, client);
      movedNothing = ended.transaction !== null;
      throw refusedSettlement(ended);
    } finally {
      end(movedNothing);
    }
  }

  async function settleRow(
    id: string,
    { authorization, rail }: Order<S>,
    known: Payment | null,
    { checkedBlock, hasCode }: Served,
  ): Promise<Payment | null> {
    const intent = { id, authorization, fromBlock: checkedBlock, broadcast: false, hasCode };
    if (!known) return settlement.settle(intent, rail.contract);
    // One that was tried before may be paid by now: the evidence is read before it is sent again.
    const row = await ledger.get(id);
    return row && settlement.resume(row);
  }

  /** Throws 409 when another payment holds the identifier. The reservation's insert enforces this; the check only names the reason. */
  async function checkIdentifier(order: Order<S>, known: Payment | null): Promise<void> {
    const holder = order.identifierHash && (await soon(ledger.findByIdentifier(order.identifierHash)));
    if (holder && !(isSameAuthorization(holder, order) && isSameRequest(holder, order)))
      throw identifierConflict(mayHaveMoved(known));
  }

  /**
   * After a failed insert: another request took the authorization or the identifier first, or the payer has too many payments open. An
   * authorization that has reverted meanwhile is public, as where it is known from the start.
   */
  async function lostReservation(order: Order<S>): Promise<Delivery> {
    const holder = await soon(ledger.find(order.key));
    await checkIdentifier(order, holder);
    if (holder && !mayTakeOver(holder, order)) return again(holder, order);
    const refuse = async (): Promise<Delivery> => {
      throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
    };
    return holder ? inDoubt(refuse) : refuse();
  }

  /** Steps 3b and 3c. The same authorization once more: its reply again, its end if it was open, or the reason against both. Other content: 402. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    if (!isSameAuthorization(known, order)) throw new PaymentRefused(ALREADY_USED);
    // Only its first presenter may use it again. A third party may have sent it since, so the answer does not say that it failed.
    if (isReverted(known)) throw new PaymentRefused(ALREADY_USED);
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

/** Throws 409 where a payment that has paid is presented for a call of other terms: it still buys what it was made for. */
function checkPaidFor<S>(
  { authorization, rail }: Order<S>,
  { accepted }: Credential,
  requirement: PaymentRequirements,
): void {
  const detail = 'this payment has been taken, for a call of other terms: present it for a call that costs as much';
  try {
    rail.checkAccepted(accepted, requirement);
  } catch (cause) {
    throw new AppError(409, 'payment_of_other_terms', detail, { charged: 'unknown', cause });
  }
  // What is said to be accepted is the client's word; what it signed was checked when it was first taken.
  if (authorization.value !== BigInt(requirement.amount))
    throw new AppError(409, 'payment_of_other_terms', detail, { charged: 'unknown' });
}

/** Throws 409 while the first presentation is being served: it may take the money at any moment. */
function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}
