import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { TooMany, Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { NewPayment, Payment, PaymentKey } from '../store/ports/payments.ts';
import type { Order, PaidRequest, Presentation } from './call.ts';
import {
  checkPaidFor,
  createReuse,
  isReverted,
  isSameAuthorization,
  isSameBuyer,
  isSameRequest,
  mayReuse,
  refuseInFlight,
  refuseOtherHolder,
  usedElsewhere,
} from './known-payment.ts';
import { createReadSoon, hashClient, hashRequest, type Ledger, type ReadSoon } from './ledger.ts';
import { type Failures, hasCostARead, isBuyersDoing, type UnknownPayments } from './limits.ts';
import type { Credential } from './protocol.ts';
import { hashIdentifier } from './protocols/x402/http.ts';
import type {
  Asker,
  PaidProof,
  PayerReading,
  PaymentCommand,
  PurchaseRail,
  RailFor,
  SignedPayment,
  Verified,
} from './rail.ts';
import { type Delivery, goneOf, handOut, refusedSettlement } from './receipt.ts';
import {
  chargedUnknown,
  checkable,
  NOT_OFFERED,
  orSettlementUnknown,
  PaymentRefused,
  replyStoreFull,
  settlementUnknown,
} from './refusal.ts';
import { clientGone, runEndpoint } from './run-endpoint.ts';
import { ALREADY_USED, type Intent, paymentKey } from './settler.ts';
import type { Settling } from './settling.ts';

// Sells one paid request. A failure after the reservation releases it, is the settlement's written end, or says that
// the outcome is unknown. The steps are those of README.md: 2 the request, 3 the known row, 4-6 terms, limits and
// payer, 7 the reservation, 8-11 the handler and the stored intent, 12-13 settlement and delivery. A command leaves
// this path before step 2, a proof of a payment after it (`createDirectSale`).

interface PurchaseOptions<S> {
  ledger: Ledger;
  settling: Pick<Settling, 'settle' | 'resume'>;
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

interface Presented {
  readonly credential: Credential;
  readonly requirement: PaymentRequirements;
  readonly signal: AbortSignal;
}

interface Served extends Verified {
  readonly body: Uint8Array;
}

/** Throws PaymentRefused (402), BadParameter (400), AppErrors. No money was taken unless `charged` says otherwise. */
export function createPurchase<S>(options: PurchaseOptions<S>) {
  const { ledger, settling, railFor, failures, unknown, serve, clock, log } = options;
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
    // 3. The ledger's row. A new payment is checked (4) right after this read, so that no row is written in between.
    const found = await find(order.key);
    const shown = { credential, requirement, signal };
    if (!found) checkNew(order, shown, nowSeconds(clock));
    // 3a. An identifier of another payload is the buyer's mistake, in any state. Otherwise its holder is this payment.
    const holder = await holderOf(order);
    refuseOtherHolder(holder, order, found);
    const known = found ?? holder;
    // 3b-3c. A price or a time that has changed since must not turn the answer to a known authorization into a 402.
    if (known && !mayReuse(known, order)) return again(known, order);
    return known ? chargedUnknown(() => sellAgain(order, known, shown)) : sell(order, null, shown);
  }

  /** The evidence decides whether an authorization that reverted is sold for as a new one or has paid already. */
  async function sellAgain(order: Order<S>, known: Payment, shown: Presented): Promise<Delivery> {
    const { requirement, signal } = shown;
    if ((await reuse(known, order, admission.askAgain(order, signal))) === 'open') return sell(order, known, shown);
    // It has paid. So its times and its payer no longer matter. It must only have paid for this call.
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
    const seen = await checkable(() => admission.readPayer(order, isAgain, asker));
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
    // 7. When the insert fails, the row may exist, or another presentation may have it and be charged.
    let tried = '';
    try {
      const id = await chargedUnknown(() =>
        ledger.reserve(reservationOf(order), known !== null, (given) => {
          tried = given;
          serving.add(given);
        }),
      );
      if (!id) return await lostReservation(order);
      // 8-11. After a failure the reservation is released, if the store can.
      const served = await serveReserved(id, order, () => verify(id), signal);
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
      if (isReleased || !isDoubted) verified?.nothingSent?.();
      // Not released: the intent is stored, another process has the row, or the store does not answer.
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
      const ended = await orSettlementUnknown(() => settleRow(id, order, known, served));
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
    if (!known) return settling.settle(intentOf(id, order, served), order.rail.contract);
    // An authorization that was tried before may have paid by now. So the evidence is read before it is sent again.
    const row = await ledger.get(id);
    return row && settling.resume(row);
  }

  /** The payment that holds the identifier. The insert enforces that there is one; this read only names the reason. */
  const holderOf = async ({ identifierHash }: Order<S>): Promise<Payment | null> =>
    identifierHash && soon(ledger.findByIdentifier(identifierHash));

  // Another request was first, or the payer has too many open. A reverted one may be public: `charged: "unknown"`.
  async function lostReservation(order: Order<S>): Promise<Delivery> {
    const holder = await holderOf(order);
    const known = await find(order.key);
    refuseOtherHolder(holder, order, known);
    if (known && !mayReuse(known, order)) return again(known, order);
    const refusal = await chargedUnknown(async () => order.rail.whyNotReserved?.(order.payment));
    if (refusal) throw refusal;
    const refuse = async (): Promise<Delivery> => {
      throw new TooMany('payer_open_payments', 'this payer has too many payments open at once', 1);
    };
    return known ? chargedUnknown(refuse) : refuse();
  }

  /** 3b-3c. Settles an open payment, then returns the stored reply. 402: it failed, or buys nothing here. */
  async function again(known: Payment, order: Order<S>): Promise<Delivery> {
    if (!isSameAuthorization(known, order)) throw new PaymentRefused(ALREADY_USED);
    // A third party may have sent a reverted authorization since. So another presenter does not hear that it failed.
    if (isReverted(known)) throw new PaymentRefused(ALREADY_USED);
    refuseInFlight(known);
    const payment = known.state === 'unknown' ? await orSettlementUnknown(() => settling.resume(known)) : known;
    if (payment?.state === 'failed') throw refusedSettlement(payment, order.rail);
    if (payment?.state !== 'settled') throw settlementUnknown();
    if (!(isSameRequest(payment, order) && isSameBuyer(payment, order))) throw await usedElsewhere(order, payment);
    const body = await orSettlementUnknown(() => ledger.redeliver(payment.id));
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

/** Checks a payment that the ledger does not know. One that answers a challenge must answer an open one of ours. */
function checkNew(order: Order<never>, shown: Presented, now: number): void {
  shown.credential.checkChallenge?.(shown.requirement, now);
  checkTerms(order, shown, now);
}

function createOrderReader<S>({ sources, network }: { sources: S; network: string }) {
  return {
    /** The parameters and the payment identifier. Throws BadParameter. */
    readRequest: (
      endpoint: Endpoint<S>,
      rail: PurchaseRail,
      { credential, query, client }: Presentation,
    ): PaidRequest<S> => {
      const params = parseParams(endpoint, query);
      endpoint.checkParams(params, sources);
      return {
        endpoint,
        params,
        rail,
        client,
        protocol: credential.protocol,
        price: endpoint.price?.units ?? 0n,
        requestHash: hashRequest(listedPath(endpoint), params),
        identifierHash: credential.identifierHash ?? hashIdentifier(credential.extensions),
        isSingleUse: credential.identifierHash !== undefined,
      };
    },
    orderOf: (request: PaidRequest<S>, payment: SignedPayment, { identity }: Presentation): Order<S> => {
      const { authorization, authorizationHash } = payment;
      return {
        ...request,
        payment,
        authorization,
        authorizationHash,
        key: paymentKey(authorization, network, request.rail.contract),
        clientHash: hashClient(authorization.nonce, identity),
      };
    },
  };
}

function reservationOf(order: Order<never>): Omit<NewPayment, 'id' | 'bootId' | 'reservedAt'> {
  const { endpoint, payment, authorization, authorizationHash, key, price, protocol } = order;
  const { value: amount, to: payTo, validAfter, validBefore } = authorization;
  const { requestHash, clientHash, identifierHash } = order;
  return {
    ...key,
    amount,
    payTo,
    validAfter,
    validBefore,
    authorizationHash,
    price,
    requestHash,
    clientHash,
    identifierHash,
    route: listedPath(endpoint),
    protocol,
    channel: payment.channel ?? null,
  };
}

function intentOf(id: string, { authorization, payment }: Order<never>, { checkedBlock, hasCode }: Verified): Intent {
  return { id, authorization, call: payment.call ?? null, fromBlock: checkedBlock, broadcast: false, hasCode };
}

interface ServeOptions<S> {
  ledger: Ledger;
  sources: S;
  handlerTimeoutMs: number;
}

/** The store failed and may have stored the intent: when a connection breaks in a commit, nobody learns the result. */
export class IntentInDoubt extends Error {}

/** Returns the reply. When it throws, nothing is kept, except perhaps on IntentInDoubt. The caller releases. */
type Serve<S> = (id: string, order: Order<S>, verified: Verified, signal: AbortSignal) => Promise<Uint8Array>;

const callOf = <S>({ payment: { call } }: Order<S>) => call && { calldata: call.data };

/** Steps 9 to 11: the handler, the reply's check, the stored intent. */
export function createServe<S>(options: ServeOptions<S>): Serve<S> {
  const { ledger, sources, handlerTimeoutMs } = options;

  return async (id, order, { checkedBlock, hasCode }, signal) => {
    const body = await runEndpoint(order.endpoint, order.params, { sources, timeoutMs: handlerTimeoutMs, signal });
    if (signal.aborted) throw clientGone();
    const intent = {
      signature: order.authorization.signature,
      checkedBlock,
      payerHasCode: hasCode,
      body,
      ...callOf(order),
    };
    const stored = await ledger.storeIntent(id, intent).catch((cause) => {
      throw new IntentInDoubt('the intent was not stored for certain', { cause });
    });
    if (!stored) throw replyStoreFull();
    return body;
  };
}

interface AdmissionOptions {
  ledger: Pick<Ledger, 'hasRoom' | 'hasSettled'>;
  failures: Failures;
  unknown: Pick<UnknownPayments, 'check'>;
  find(key: PaymentKey): Promise<Payment | null>;
  soon: ReadSoon;
}

/** Steps 4 to 6: the limits and the payer checks before the reservation. They write nothing. */
function createAdmission({ ledger, failures, unknown, find, soon }: AdmissionOptions) {
  function checkRoom(): void {
    if (!ledger.hasRoom()) throw replyStoreFull();
  }

  const asker = ({ client }: Pick<Order<never>, 'client'>, signal: AbortSignal): Asker => ({
    client,
    signal,
    hasFailed: failures.hasFailed(client),
  });

  function checkFailures(payer: Uint8Array, client: string): void {
    const refusal = failures.refusal(bytesToHex(payer), client);
    if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
  }

  return {
    checkRoom,

    checkFailures,

    asker,

    /** For a payment that is known here and may have paid: only the failures of this minute count. Throws TooMany. */
    askAgain<S>(order: Order<S>, signal: AbortSignal): Asker {
      const refusal = failures.refusalOfMinute(bytesToHex(order.authorization.from), order.client);
      if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
      return asker(order, signal);
    },

    /** Throws TooMany when the payer or the client must wait, Unavailable when the rail or the store is not ready. */
    checkCapacity<S>({ authorization: { from }, rail: { status }, client }: Order<S>): void {
      checkFailures(from, client);
      const reason = status.refuses?.(from);
      if (reason) throw new TooMany('payer_refused', `payments of this payer are refused for now: ${reason}`, 3600);
      const shortage = status.unavailable();
      if (shortage) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${shortage}`);
      checkRoom();
    },

    readPayer: createReadPayer({ ledger, failures, unknown, find, soon }),
  };
}

function createEarlierCheck({ ledger, failures, unknown, soon }: AdmissionOptions) {
  /** Throws TooMany: too many of them are unknown, or only payers that have paid before may pay from this client. */
  return async <S>({ authorization: { from }, client, key }: Order<S>): Promise<void> => {
    await unknown.check(bytesToHex(from), client);
    const waitSeconds = failures.newPayersAfterSeconds(client);
    if (waitSeconds <= 0 || (await soon(ledger.hasSettled(key)))) return;
    const detail =
      'settlements for this client have failed; only payers that have paid before are taken from it for now';
    throw new TooMany('client_refused', detail, waitSeconds);
  };
}

function createReadPayer(options: AdmissionOptions) {
  const { failures, find } = options;
  const checkEarlier = createEarlierCheck(options);

  /**
   * Earlier payments, then the signature, then the payer. Throws TooMany, 503 `ledger_unavailable`, and the rail's.
   * Failures count for the client, once signed also for the payer. Null: another presentation was faster.
   */
  return async <S>(order: Order<S>, isAgain: boolean, asker: Asker): Promise<PayerReading | null> => {
    const { payment, rail, price, key } = order;
    let isAdmitted = false;
    let isSigned = false;
    try {
      await checkEarlier(order);
      isAdmitted = true;
      const signed = await rail.checkSignature(payment, asker);
      isSigned = true;
      return await rail.readPayer(payment, asker, { signed, isAgain, price });
    } catch (error) {
      if (!isAgain && (await find(key))) return null;
      if (isAdmitted && !isSigned && hasCostARead(error)) failures.noteUnproven(asker.client);
      if (isSigned && isBuyersDoing(error, false)) failures.note(bytesToHex(payment.authorization.from), asker.client);
      throw error;
    }
  };
}

interface DirectSaleOptions<S> {
  admission: ReturnType<typeof createAdmission>;
  failures: Failures;
  sources: S;
  handlerTimeoutMs: number;
}

/** Payments that need no settlement, and commands. Their rails do the work, under the limits of every payment. */
function createDirectSale<S>({ admission, failures, sources, handlerTimeoutMs }: DirectSaleOptions<S>) {
  return {
    redeem: (
      proof: PaidProof,
      request: PaidRequest<S>,
      requirement: PaymentRequirements,
      { credential, identity, signal }: Presentation,
    ): Promise<Delivery> => {
      const { endpoint, params, price, requestHash, identifierHash, client } = request;
      let isVerified = false;
      const sold = proof.redeem({
        accepted: credential.accepted ?? requirement,
        requirement,
        route: listedPath(endpoint),
        price,
        requestHash,
        identifierHash,
        identity,
        protocol: credential.protocol,
        asker: admission.asker(request, signal),
        admit: () => {
          if (endpoint.isOff) throw new PaymentRefused(NOT_OFFERED);
          admission.checkFailures(proof.signer, client);
          admission.checkRoom();
        },
        run: () => {
          isVerified = true;
          return runEndpoint(endpoint, params, { sources, timeoutMs: handlerTimeoutMs, signal });
        },
      });
      return sold.catch((error) => {
        if (!isBuyersDoing(error, isVerified)) throw error;
        // Until the endpoint runs, any client could have named this signer.
        if (isVerified) failures.note(bytesToHex(proof.signer), client);
        else failures.noteUnproven(client);
        throw error;
      });
    },

    /** A refused command counts like a refused payment. Throws BadParameter for a malformed payment identifier. */
    carryOut: async (
      command: PaymentCommand,
      requirement: PaymentRequirements,
      { credential, client, identity, signal }: Presentation,
    ): Promise<Delivery> => {
      const identifierHash = hashIdentifier(credential.extensions);
      admission.checkFailures(command.signer, client);
      const accepted = credential.accepted ?? requirement;
      const asker = { ...admission.asker({ client }, signal), identity, identifierHash };
      return command.run(accepted, requirement, asker).catch((error) => {
        if (isBuyersDoing(error, false)) failures.noteUnproven(client);
        throw error;
      });
    },
  };
}
