import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { TooMany } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment, PaymentKey } from '../store/ports/sales.ts';
import { createAdmission, isBuyersDoing } from './admission.ts';
import { createDirectSale } from './direct-sale.ts';
import { checkable, inDoubt, openUntilKnown, settlementUnknown } from './doubt.ts';
import type { Failures } from './failures.ts';
import { checkPaidFor, refuseInFlight, refuseOtherHolder, usedElsewhere } from './known-answers.ts';
import { isReverted, isSameAuthorization, isSameBuyer, isSameRequest, mayReuse } from './known-payment.ts';
import type { Ledger } from './ledger.ts';
import { createReadSoon } from './ledger-timeout.ts';
import type { Order, Presentation } from './order.ts';
import { createOrderReader } from './order-reader.ts';
import { intentOf, reservationOf } from './order-rows.ts';
import type { Credential } from './protocol.ts';
import type { RailFor, Verified } from './rail.ts';
import { type Delivery, goneOf, handOut, refusedSettlement } from './receipt.ts';
import { NOT_OFFERED, PaymentRefused } from './refusal.ts';
import { createReuse } from './reuse.ts';
import { IntentInDoubt, type Serve } from './serve.ts';
import type { Settlement } from './settlement.ts';
import { ALREADY_USED } from './settler.ts';
import type { UnknownPayments } from './unknown-payments.ts';

interface PurchaseOptions<S> {
  ledger: Ledger;
  settlement: Pick<Settlement, 'settle' | 'resume'>;
  railFor: RailFor;
  failures: Failures;
  unknown: UnknownPayments;
  serve: Serve<S>;
  sources: S;
  handlerTimeoutMs: number;
  clock: Clock;
  network: string;
  log: { error(detail: object, message: string): void };
}

/** A payment as the buyer presented it, and the requirement that it must meet. */
interface Presented {
  readonly credential: Credential;
  readonly requirement: PaymentRequirements;
  readonly signal: AbortSignal;
}

/** A served order: its reply, and what the last checks found about the payer. */
interface Served extends Verified {
  readonly body: Uint8Array;
}

/**
 * Sells one paid request, in the order of the steps in README.md. `purchase` throws PaymentRefused (402), BadParameter (400) and other AppErrors.
 * `charged` says what became of the money: without it, or with `false`, this request took none.
 */
export function createPurchase<S>(options: PurchaseOptions<S>) {
  const { ledger, settlement, railFor, failures, unknown, serve, clock, log } = options;
  const serving = new Set<string>();
  const soon = createReadSoon(clock);
  const orders = createOrderReader<S>(options);
  const reuse = createReuse({ ledger, clock });
  const find = (key: PaymentKey): Promise<Payment | null> => soon(ledger.find(key));
  const admission = createAdmission({ ledger, failures, unknown, find, soon });
  const direct = createDirectSale({ ...options, admission });

  async function purchase(
    endpoint: Endpoint<S>,
    plain: PaymentRequirements,
    presentation: Presentation,
  ): Promise<Delivery> {
    const { credential, signal } = presentation;
    const rail = railFor(credential.accepted ?? plain);
    const requirement = rail.requirement(plain);
    const command = rail.readCommand?.(credential.payload);
    if (command) return direct.carryOut(command, requirement, presentation);
    // 2. The parameters. The protocol did step 1, the header.
    const request = orders.readRequest(endpoint, rail, presentation);
    const payment = rail.read(credential.payload);
    if (payment.kind === 'paid') return direct.redeem(payment, request, requirement, presentation);
    const order = orders.orderOf(request, payment, presentation);
    // 3. The ledger's row. `soon` bounds each read (3d). The challenge and the terms of a new payment (4) are checked right after this read, so that no
    //    row is written in between.
    const found = await find(order.key);
    const shown = { credential, requirement, signal };
    if (!found) checkNew(order, shown, nowSeconds(clock));
    // 3a. The identifier. Using it for another payload is the buyer's mistake, whatever the state of either payment. Else its holder is this payment.
    const holder = await holderOf(order);
    refuseOtherHolder(holder, order, found);
    const known = found ?? holder;
    // 3b-3c. The row of a known authorization decides. A price or a time that has changed since must not turn the answer into a 402.
    if (known && !mayReuse(known, order)) return again(known, order);
    return known ? inDoubt(() => sellAgain(order, known, shown)) : sell(order, null, shown);
  }

  /** Sells for an authorization that reverted before. The evidence decides whether it is sold as a new one or has paid already. */
  async function sellAgain(order: Order<S>, known: Payment, shown: Presented): Promise<Delivery> {
    const { requirement, signal } = shown;
    if ((await reuse(known, order, admission.askAgain(order, signal))) === 'open') return sell(order, known, shown);
    // The authorization has paid. So its times and its payer no longer matter. It must only have paid for this call.
    const { rail, payment, price } = order;
    if (!rail.checkPaid) checkPaidFor(order, requirement);
    admission.checkRoom();
    const verified = { checkedBlock: known.checkedBlock ?? 0, hasCode: false };
    const verify = async (): Promise<Verified> => {
      await rail.checkPaid?.(payment, price, admission.asker(order, signal));
      return verified;
    };
    return serveAndSettle(order, known, verify, signal);
  }

  async function sell(order: Order<S>, known: Payment | null, shown: Presented): Promise<Delivery> {
    const { payment, rail, price } = order;
    const asker = admission.asker(order, shown.signal);
    // 4-6. Cheap checks and limits in memory, the payer's earlier payments, the signature, and a read of the payer.
    if (known) checkTerms(order, shown, nowSeconds(clock));
    admission.checkCapacity(order);
    const isAgain = known !== null;
    const seen = await checkable(() => admission.lookAtPayer(order, isAgain, asker));
    if (!seen) return lostReservation(order);
    const verify = (id: string) => checkable(() => rail.verify(id, payment, seen, { asker, isAgain, price }));
    return serveAndSettle(order, known, verify, shown.signal);
  }

  async function serveAndSettle(
    order: Order<S>,
    known: Payment | null,
    verify: (id: string) => Promise<Verified>,
    signal: AbortSignal,
  ): Promise<Delivery> {
    // 7. The reservation, by one insert. When it fails, the row may exist, or another presentation may have it and be charged.
    let tried = '';
    try {
      const id = await inDoubt(() =>
        ledger.reserve(reservationOf(order), known !== null, (given) => {
          tried = given;
          serving.add(given);
        }),
      );
      if (!id) return await lostReservation(order);
      // 8-11. The last checks, the handler, the reply. After a failure the reservation is released, if the store can.
      const served = await serveReserved(id, order, () => verify(id), signal);
      // 12-13. Settle, then deliver the reply.
      return await settleAndDeliver(id, order, known, served);
    } finally {
      serving.delete(tried);
    }
  }

  async function serveReserved(
    id: string,
    order: Order<S>,
    verify: () => Promise<Verified>,
    signal: AbortSignal,
  ): Promise<Served> {
    const { authorization, client } = order;
    let verified: Verified | null = null;
    try {
      verified = await verify();
      return { ...verified, body: await serve(id, order, verified, signal) };
    } catch (error) {
      const isDoubted = error instanceof IntentInDoubt;
      const reason = isDoubted ? error.cause : error;
      if (!isDoubted && isBuyersDoing(reason, verified !== null)) failures.note(bytesToHex(authorization.from), client);
      const isReleased = await ledger.abandon(id).catch((err) => {
        log.error({ err, payment: id }, 'a reservation was not released');
        return false;
      });
      if (isReleased || !isDoubted) verified?.uncount?.();
      // Not released: the intent is stored, another process has the row, or the store does not answer. So the payment's outcome is unknown here.
      throw isReleased ? reason : settlementUnknown(reason);
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
      if (ended?.state === 'settled') return handOut(options, ended, served.body, order);
      if (ended?.state === 'unknown') unknown.note(id, payer, client);
      if (ended?.state !== 'failed') throw settlementUnknown();
      failures.note(payer, client);
      movedNothing = ended.transaction !== null;
      throw refusedSettlement(ended, order.rail);
    } finally {
      end(movedNothing);
    }
  }

  async function settleRow(id: string, order: Order<S>, known: Payment | null, served: Served) {
    if (!known) return settlement.settle(intentOf(id, order, served), order.rail.contract);
    // An authorization that was tried before may have paid by now. So the evidence is read before it is sent again.
    const row = await ledger.get(id);
    return row && settlement.resume(row);
  }

  /** The payment that holds the identifier. The insert enforces that there is one. This read only names the reason. */
  const holderOf = async ({ identifierHash }: Order<S>): Promise<Payment | null> =>
    identifierHash && soon(ledger.findByIdentifier(identifierHash));

  /**
   * Answers a request whose insert failed or would fail: another request was first, or the payer has too many payments open. An authorization that
   * reverted meanwhile may be public, so its refusal says `charged: "unknown"`.
   */
  async function lostReservation(order: Order<S>): Promise<Delivery> {
    const holder = await holderOf(order);
    const known = await find(order.key);
    refuseOtherHolder(holder, order, known);
    if (known && !mayReuse(known, order)) return again(known, order);
    const refusal = await inDoubt(async () => order.rail.whyNotReserved?.(order.payment));
    if (refusal) throw refusal;
    const refuse = async (): Promise<Delivery> => {
      throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
    };
    return known ? inDoubt(refuse) : refuse();
  }

  /** Steps 3b and 3c. Settles an open payment, then returns the stored reply. 402: it failed, buys nothing here, or has other content. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    if (!isSameAuthorization(known, order)) throw new PaymentRefused(ALREADY_USED);
    // A third party may have sent a reverted authorization since, so the answer to another presenter does not say that it failed.
    if (isReverted(known)) throw new PaymentRefused(ALREADY_USED);
    refuseInFlight(known);
    const payment = known.state === 'unknown' ? await openUntilKnown(() => settlement.resume(known)) : known;
    if (payment?.state === 'failed') throw refusedSettlement(payment, order.rail);
    if (payment?.state !== 'settled') throw settlementUnknown();
    if (!(isSameRequest(payment, order) && isSameBuyer(payment, order))) throw await usedElsewhere(order, payment);
    const body = await openUntilKnown(() => ledger.redeliver(payment.id));
    if (!body) throw payment.deliveredAt === null ? goneOf(payment, order.rail) : await usedElsewhere(order, payment);
    return handOut(options, payment, body, { price: payment.price ?? payment.amount, rail: order.rail });
  }

  return { purchase, isServed: (id: string): boolean => serving.has(id) };
}

/** Throws PaymentRefused unless the payment is for this offer. `now` in Unix seconds. */
function checkTerms(
  { endpoint, rail, payment }: Order<never>,
  { credential, requirement }: Presented,
  now: number,
): void {
  if (endpoint.isOff) throw new PaymentRefused(NOT_OFFERED);
  rail.checkAccepted(credential.accepted ?? requirement, requirement);
  rail.check(payment, requirement, now);
}

/** The same for a payment that the ledger does not know. One that answers a challenge must answer an open one of ours. */
function checkNew(order: Order<never>, shown: Presented, now: number): void {
  shown.credential.checkChallenge?.(shown.requirement, now);
  checkTerms(order, shown, now);
}
