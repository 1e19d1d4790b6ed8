import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { AppError, BadParameter, TooMany, Unavailable, UpstreamFailed } from '../../../src/errors.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createFailures, createUnknownPayments, type Failures } from '../../../src/payment/limits.ts';
import type { Credential } from '../../../src/payment/protocol.ts';
import { decodePayment } from '../../../src/payment/protocols/x402/http.ts';
import type { PurchaseRail, Verified } from '../../../src/payment/rail.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { createPurchase, createServe } from '../../../src/payment/sale.ts';
import type { Found } from '../../../src/payment/settler.ts';
import { type Intent, REVERTED } from '../../../src/payment/settler.ts';
import { checkAccepted, readSigned } from '../../../src/payment/usdc/authorization.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { createOffer } from '../../../src/wiring/surfaces.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { TERMS } from '../../support/service/terms.ts';
import { headerOf, newKey, payloadOf, type Requirement, signAuthorization, USDC } from '../../support/usdc/payments.ts';

const HASH = Buffer.alloc(32, 0xab);
const CLIENT = '192.0.2.1';
const LIMITS = { payer: 3, client: 5, clientSettlements: 1 };
/** Tests hold the latch while other payments are presented: no such run takes too long. */
const HANDLER_MS = 60_000;
const REFUSED = { name: 'PaymentRefused', reason: 'payment_already_used' };

const fail = (error: Error): never => {
  throw error;
};
/** An end after which there is no row. */
const GONE = Symbol('gone');
type End = (id: string) => Promise<unknown>;

let folder: string;
let store: LedgerStore;
let ledger: Ledger;
let clock: ManualClock;
let failures: Failures;
/** What the rail and its settler say, and which of them was asked. */
let shortage: string | null;
let refused: string | null;
let status: PurchaseRail['status'];
let signature: () => Promise<void>;
let reviewed: Found;
let readPayer: () => Promise<void>;
let verified: () => Promise<Verified>;
let asked: string[];
/** The context that the rail got with each question. */
let reported: object[];
/** How a settlement ends, for a fresh intent and for a row that is looked up first. */
let settle: End;
let resume: End;
let errors: string[];
/** What was handed to be settled. */
let handed: Intent[];
let latch: ReturnType<typeof latchedEndpoint>;
let moody: ReturnType<typeof moodyEndpoint>;
let reservations: number;
let shop: ReturnType<typeof open>;

const paid = (units: bigint) => (id: string) => ledger.settled(id, HASH, 9, units);
const reverted = async (id: string) => {
  await ledger.noteBroadcast([{ id, transaction: HASH }]);
  await ledger.failed(id, REVERTED);
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'purchase-'));
  const opened = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  reservations = 0;
  store = {
    ...opened,
    reserve: (...given) => {
      reservations += 1;
      return opened.reserve(...given);
    },
  };
  clock = createManualClock(Date.now());
  failures = createFailures(LIMITS, clock);
  [shortage, refused, asked, errors, handed] = [null, null, [], [], []];
  status = { unavailable: () => shortage, refuses: () => refused };
  signature = async () => {};
  reviewed = { kind: 'open' };
  reported = [];
  readPayer = async () => {};
  verified = async () => ({ checkedBlock: 7, hasCode: true });
  [latch, moody] = [latchedEndpoint(), moodyEndpoint('/test/moody', '0.001')];
  ledger = openLedger();
  shop = open();
  settle = paid(1000n);
  resume = async () => {};
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

function openLedger({ storeBytes = 1000, maxOpen = 0 } = {}): Ledger {
  return createLedger({ store, clock, bootId: 'boot', storeBytes, keepSeconds: 900, maxDeliveries: 5, maxOpen });
}

function open() {
  const rail: PurchaseRail = {
    contract: hexToBytes(USDC),
    status,
    read: (payload) => readSigned(payload, hexToBytes(USDC)),
    checkAccepted,
    requirement: (plain) => plain,
    check: () => void asked.push('terms'),
    checkSignature: async () => {
      asked.push('signature');
      await signature();
      return null;
    },
    review: async (_authorization, _known, { asker }) => {
      reported.push({ review: asker.client, isLeft: asker.signal.aborted });
      return reviewed;
    },
    readPayer: async (_authorization, asker, { signed, isAgain }) => {
      asked.push('readPayer');
      reported.push({ readPayer: asker.client, signed, isAgain });
      await readPayer();
      return { used: false, balance: 0n, hasCode: false, block: 0 };
    },
    verify: async (_id, _authorization, seen, { asker, isAgain }) => {
      asked.push('verify');
      reported.push({ verify: asker.client, isSeen: seen.block === 0, isAgain });
      return verified();
    },
  };
  const after = async (id: string, end: End): Promise<Payment | null> => {
    const isGone = (await end(id)) === GONE;
    return isGone ? null : ledger.get(id);
  };
  return createPurchase<Sources>({
    ledger,
    handlerTimeoutMs: HANDLER_MS,
    settling: {
      settle: (intent) => {
        handed.push(intent);
        return after(intent.id, settle);
      },
      resume: ({ id }) => after(id, resume),
    },
    railFor: () => rail,
    failures,
    unknown: createUnknownPayments({ ledger, limits: { payer: 2, client: 3 }, clock }),
    serve: createServe({ ledger, sources: {} as Sources, handlerTimeoutMs: HANDLER_MS }),
    sources: {} as Sources,
    clock,
    network: TERMS.network,
    log: { error: (_detail, message) => void errors.push(message) },
  });
}

/** A payment for this endpoint, by a fresh key unless another is given. */
function sign(
  of: { endpoint: typeof latch.endpoint } = latch,
  { key = newKey(), nonce = randomBytes(32), identifier = '' } = {},
) {
  const requirement = createOffer(of.endpoint as never, TERMS).requirement as unknown as Requirement;
  const authorization = signAuthorization(key.privateKey, requirement, { nonce });
  const extensions = identifier ? { 'payment-identifier': { info: { id: identifier } } } : undefined;
  const header = headerOf(payloadOf(authorization, requirement, extensions));
  return { requirement, authorization, key, nonce, header };
}

type Signed = ReturnType<typeof sign>;

/** Presents a payment; what is thrown is returned. */
async function present(
  { header, requirement }: Pick<Signed, 'header' | 'requirement'>,
  { of = latch as { endpoint: typeof latch.endpoint }, client = CLIENT, query = {} } = {},
): Promise<unknown> {
  const asker = { client, identity: client, signal: new AbortController().signal };
  const presentation = { credential: decodePayment(header), query, ...asker };
  return shop.purchase(of.endpoint, requirement as never, presentation).catch((error: unknown) => error);
}
const delivered = (answer: unknown): unknown => JSON.parse(String((answer as { body: Buffer }).body));
/** The next payment waits where its payer is looked at, until it is let go. Then it is refused, if `refusal` is given. */
function heldAtLook(refusal?: Error) {
  const [arrived, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  readPayer = async () => {
    readPayer = async () => {};
    arrived.resolve();
    await go.promise;
    if (refusal) throw refusal;
  };
  return { arrived: arrived.promise, go: go.resolve };
}
const rowOf = ({ authorization: { from, nonce } }: Signed) =>
  ledger.find({ network: TERMS.network, contract: hexToBytes(USDC), payer: from, nonce });

describe('a payment', () => {
  test('is checked in the order of what the checks cost, served, settled and delivered', async () => {
    const payment = sign();
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 1 });
    expect(asked).toEqual(['terms', 'signature', 'readPayer', 'verify']);
    expect(await rowOf(payment)).toMatchObject({
      state: 'settled',
      amount: 1000n,
      price: 1000n,
      charged: 1000n,
      checkedBlock: 7,
      payerHasCode: true,
    });
  });

  test('with another requirement than the offer’s costs nothing but the header', async () => {
    const payment = sign();
    const cheaper = { ...payment.requirement, amount: '1' };
    const header = headerOf(payloadOf(payment.authorization, cheaper));
    expect(await present({ ...payment, header })).toBeInstanceOf(PaymentRefused);
    expect(asked).toEqual([]);
  });
});

describe('a payment that answers a challenge', () => {
  /** The ledger's reads, by the column that they look in. */
  const reads = () => {
    const seen: string[] = [];
    const { find, findByIdentifier } = store;
    store.find = (key) => find(key).finally(() => seen.push('payment'));
    store.findByIdentifier = (hash) => findByIdentifier(hash).finally(() => seen.push('identifier'));
    ledger = openLedger();
    shop = open();
    return seen;
  };
  const presentAnswer = async ({ header, requirement }: Signed, checkChallenge: () => void) => {
    const credential: Credential = {
      protocol: 'mpp',
      accepted: null,
      payload: decodePayment(header).payload,
      identifierHash: randomBytes(32),
      checkChallenge,
    };
    const asker = { client: CLIENT, identity: CLIENT, signal: new AbortController().signal };
    const presentation = { credential, query: {}, ...asker };
    return shop.purchase(latch.endpoint, requirement as never, presentation).catch((error: unknown) => error);
  };

  test('that was made up is refused after one read of the ledger, as a payment without a challenge is', async () => {
    const seen = reads();
    const answer = await presentAnswer(sign(), () => fail(new PaymentRefused('invalid_challenge')));
    expect(answer).toMatchObject({ reason: 'invalid_challenge' });
    expect([seen, asked]).toEqual([['payment'], []]);
  });

  test('is looked for under its identifier once its challenge is good, and judged by its row once it is known', async () => {
    const [seen, payment] = [reads(), sign()];
    let checks = 0;
    expect(await presentAnswer(payment, () => void checks++)).toHaveProperty('body');
    expect([checks, seen]).toEqual([1, ['payment', 'identifier']]);
    await presentAnswer(payment, () => fail(new Error('a known payment needs no open challenge')));
    expect(seen).toEqual(['payment', 'identifier', 'payment', 'identifier']);
  });
});

describe('a call that is malformed', () => {
  test('with a parameter that the route does not know is refused before anything is asked: a typo is not paid for', async () => {
    expect(await present(sign(), { query: { tga: 'a' } })).toMatchObject({ status: 400, charged: false });
    expect(asked).toEqual([]);
  });

  test('with a parameter that this configuration does not offer is refused as well', async () => {
    const endpoint = {
      ...latch.endpoint,
      checkParams: () => fail(new BadParameter([{ path: 'tag', message: 'is off' }])),
    };
    const of = { endpoint };
    expect(await present(sign(of), { of })).toMatchObject({ status: 400, errors: [{ path: 'tag' }] });
    expect(asked).toEqual([]);
  });
});

describe('an intent', () => {
  test('is passed to the settler as never broadcast, with what was read of its payer', async () => {
    const payment = sign();
    await present(payment);
    const { from, nonce } = payment.authorization;
    expect(handed).toMatchObject([{ fromBlock: 7, broadcast: false, hasCode: true, authorization: { from, nonce } }]);
  });

  test('whose row is gone when it should have ended is unknown', async () => {
    settle = (id) => ledger.abandon(id);
    expect(await present(sign())).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
  });
});

describe('a reservation', () => {
  test('is known to be served from before its row can be there until its answer, so that no reconciliation gives it up meanwhile', async () => {
    const seen: boolean[] = [];
    const reserve = store.reserve;
    store.reserve = (row, ...rest) => {
      seen.push(shop.isServed(row.id));
      return reserve(row, ...rest);
    };
    ledger = openLedger();
    shop = open();
    const payment = sign();
    latch.close();
    const started = latch.started();
    const answer = present(payment);
    await started;
    const { id } = (await rowOf(payment)) as Payment;
    seen.push(shop.isServed(id));
    latch.open();
    await answer;
    expect([...seen, shop.isServed(id)]).toEqual([true, true, false]);
  });

  test('of a payer who has too much open is refused, and tried again in a second', async () => {
    ledger = openLedger({ maxOpen: 1 });
    shop = open();
    const key = newKey();
    latch.close();
    const started = latch.started();
    const first = present(sign(latch, { key }));
    await started;
    expect(await present(sign(latch, { key }))).toMatchObject({
      status: 429,
      code: 'payer_open_payments',
      retryAfterSeconds: 1,
      charged: false,
    });
    latch.open();
    expect(await first).toHaveProperty('body');
  });

  test('that the same payment won on another connection gives its answer here too', async () => {
    const payment = sign();
    const { arrived, go } = heldAtLook();
    const slow = present(payment);
    await arrived;
    const fast = await present(payment);
    go();
    expect(delivered(await slow)).toEqual(delivered(fast));
    expect(latch.runs()).toBe(1);
  });

  test.each([
    new PaymentRefused('invalid_exact_evm_nonce_already_used'),
    new PaymentRefused('invalid_exact_evm_insufficient_balance'),
    new TooMany('payer_short_of_funds', 'the balance was too low a moment ago', 3),
    new Unavailable('chain_busy', 'the chain cannot be read now'),
  ])('that the same payment won is not refused because the chain shows that it has paid: %s', async (refusal) => {
    const payment = sign();
    const { arrived, go } = heldAtLook(refusal);
    const slow = present(payment);
    await arrived;
    const fast = await present(payment);
    go();
    expect(delivered(await slow)).toEqual(delivered(fast));
    expect([latch.runs(), failures.hasFailed(CLIENT)]).toEqual([1, false]);
  });

  test('that no payment won is refused, and counts as a failure', async () => {
    const { arrived, go } = heldAtLook(new PaymentRefused('invalid_exact_evm_nonce_already_used'));
    const slow = present(sign());
    await arrived;
    go();
    expect(await slow).toMatchObject({ name: 'PaymentRefused', reason: 'invalid_exact_evm_nonce_already_used' });
    expect([latch.runs(), failures.hasFailed(CLIENT)]).toEqual([0, true]);
  });

  test('that the same payment won, and that reverted then, is not reused unseen, nor said to have cost nothing', async () => {
    const payment = sign();
    const { arrived, go } = heldAtLook();
    const slow = present(payment);
    await arrived;
    settle = reverted;
    await present(payment);
    go();
    expect(await slow).toMatchObject({ status: 429, code: 'payer_open_payments', charged: 'unknown' });
    expect([latch.runs(), (await rowOf(payment))?.state]).toEqual([1, 'failed']);
  });
});

describe('a payment identifier', () => {
  const identifier = 'order-0123456789abcdef';
  const CONFLICT = { status: 409, code: 'payment_identifier_conflict', charged: false };

  test('stands for one payload: with another authorization or another request it is a conflict', async () => {
    const payment = sign(latch, { identifier });
    expect(await present(payment)).toHaveProperty('body');
    asked.length = 0;
    expect(await present(sign(latch, { identifier }))).toMatchObject(CONFLICT);
    // It was paid for its own request: what became of that is not said to be nothing.
    expect(await present(payment, { query: { tag: 'another' } })).toMatchObject({ ...CONFLICT, charged: 'unknown' });
    expect(asked).toEqual(['terms']);
  });

  test('lets its own payload have the answer again, from any address', async () => {
    const payment = sign(latch, { identifier });
    const first = await present(payment);
    expect(delivered(await present(payment, { client: '192.0.2.2' }))).toEqual(delivered(first));
  });

  test('that another payment took while this one was looked at is a conflict too', async () => {
    const { arrived, go } = heldAtLook();
    const slow = present(sign(latch, { identifier }));
    await arrived;
    expect(await present(sign(latch, { identifier }))).toHaveProperty('body');
    go();
    expect(await slow).toMatchObject(CONFLICT);
  });

  test('is asked for only where one came: payments without it are no conflict', async () => {
    expect(await present(sign())).toHaveProperty('body');
    expect(await present(sign())).toHaveProperty('body');
  });
});

describe('a reservation that cannot be given back', () => {
  /** The store fails to release a row, and the payment could not be verified. */
  function stuck(release: LedgerStore['release'] = () => Promise.reject(new Error('the disk is away'))) {
    store.release = release;
    ledger = openLedger();
    shop = open();
    verified = async () => fail(new UpstreamFailed('chain', 'away'));
  }

  test('leaves the outcome unknown, because another process may be selling for the same payment', async () => {
    stuck();
    expect(await present(sign())).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
    expect(errors).toEqual(['a reservation was not released']);
  });

  test('takes back what was counted for it, because nothing was sent', async () => {
    stuck();
    let takenBack = 0;
    verified = async () => ({ checkedBlock: 7, hasCode: false, nothingSent: () => void takenBack++ });
    moody.fail();
    expect(await present(sign(moody), { of: moody })).toMatchObject({ code: 'settlement_unknown' });
    expect(takenBack).toBe(1);
  });

  test('because another process took it over is not said to have cost nothing', async () => {
    stuck(async () => false);
    expect(await present(sign())).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
    expect(errors).toEqual([]);
  });

  test('after a store that failed to keep the intent, and may have kept it, leaves the outcome unknown', async () => {
    stuck();
    verified = async () => ({ checkedBlock: 7, hasCode: false });
    store.move = () => Promise.reject(new Unavailable('ledger_unavailable', 'the disk is away'));
    ledger = openLedger();
    shop = open();
    expect(await present(sign())).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
  });

  test('is no matter where it was given back after all: then the store’s own failure is the answer', async () => {
    store.move = () => Promise.reject(new AppError(503, 'ledger_unavailable', 'the disk is away'));
    ledger = openLedger();
    shop = open();
    const key = newKey();
    expect(await present(sign(latch, { key }))).toMatchObject({ code: 'ledger_unavailable', charged: false });
    for (let at = 0; at < 2; at++) failures.note(key.address, CLIENT);
    expect(failures.refusal(key.address, CLIENT)).toBeNull();
  });
});

describe('a ledger that does not answer before the reservation or in it leaves the outcome unknown', () => {
  const AWAY = new AppError(503, 'ledger_unavailable', 'the ledger does not answer', { retryAfterSeconds: 5 });
  const UNKNOWN = { status: 503, code: 'ledger_unavailable', charged: 'unknown', retryAfterSeconds: 5 };
  const away = () => Promise.reject(AWAY);

  test('in the insert, while another presentation of the same payment is charged', async () => {
    const payment = sign();
    const { reserve } = store;
    store.reserve = async () => {
      store.reserve = reserve;
      expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 1 });
      return away();
    };
    expect(await present(payment)).toMatchObject(UNKNOWN);
    expect(await rowOf(payment)).toMatchObject({ state: 'settled', charged: 1000n });
  });

  test('in the read whether the payer has paid before', async () => {
    store.hasSettled = away;
    ledger = openLedger();
    shop = open();
    failures.beginSettlement('some payer', CLIENT)(true);
    expect(await present(sign())).toMatchObject(UNKNOWN);
  });

  test('in the reads of the payer’s unknown payments', async () => {
    const { get } = store;
    let isAway = false;
    store.get = (id) => (isAway ? away() : get(id));
    ledger = openLedger();
    shop = open();
    const key = newKey();
    settle = (id) => ledger.unknown(id);
    for (let at = 0; at < 2; at++) await present(sign(latch, { key }));
    isAway = true;
    expect(await present(sign(latch, { key }))).toMatchObject(UNKNOWN);
  });
});

describe('a payment that another presentation has bought since its row was read', () => {
  /** The other presentation, of another client. */
  const sellElsewhere = async (payment: Signed): Promise<void> => {
    expect(await present(payment, { client: '192.0.2.2' })).toHaveProperty('body');
  };
  /** The other presentation is sold between the two reads of this one. `then` runs after it. */
  function sellBeforeIdentifierIsRead(payment: Signed, then = () => {}): void {
    const { findByIdentifier } = store;
    store.findByIdentifier = async (hash) => {
      store.findByIdentifier = findByIdentifier;
      ledger = openLedger();
      shop = open();
      await sellElsewhere(payment);
      then();
      return findByIdentifier(hash);
    };
    ledger = openLedger();
    shop = open();
  }

  test('has its answer, although nothing can be settled by the time that its identifier is read', async () => {
    const payment = sign(latch, { identifier: 'order-one-of-this-test' });
    sellBeforeIdentifierIsRead(payment, () => {
      shortage = 'the chain is away';
    });
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 1 });
  });

  test('under its identifier for another request is a conflict that says unknown', async () => {
    const payment = sign(latch, { identifier: 'order-three-of-this-test' });
    sellBeforeIdentifierIsRead(payment);
    expect(await present(payment, { query: { tag: 'another' } })).toMatchObject({
      status: 409,
      code: 'payment_identifier_conflict',
      charged: 'unknown',
    });
  });

  test('has its answer, although its payer had not paid before when that was read', async () => {
    const payment = sign(latch, { identifier: 'order-two-of-this-test' });
    failures.beginSettlement('some payer', CLIENT)(true);
    store.hasSettled = async () => {
      await sellElsewhere(payment);
      return false;
    };
    ledger = openLedger();
    shop = open();
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 1 });
  });
});

describe('before anything is spent on a payment', () => {
  const stopped = { asked: ['terms'], rows: 0 };
  const spent = async () => ({ asked, rows: (await ledger.countByState()).reserved });

  test('a payer and a client that failed too often wait', async () => {
    const { address } = newKey();
    for (let at = 0; at < 5; at++) failures.note(address, CLIENT);
    expect(await present(sign())).toMatchObject({ status: 429, code: 'client_failures', retryAfterSeconds: 60 });
    expect(await spent()).toEqual(stopped);
    expect(await present(sign(), { client: '192.0.2.2' })).toHaveProperty('body');
  });

  test('a settler without refused payers is not asked', async () => {
    status = { unavailable: () => shortage };
    shop = open();
    expect(await present(sign())).toHaveProperty('body');
  });

  test('a payer that the settler refuses must wait for an hour', async () => {
    refused = 'its payments cost gas';
    expect(await present(sign())).toMatchObject({ status: 429, code: 'payer_refused', retryAfterSeconds: 3600 });
    expect(await spent()).toEqual(stopped);
  });

  test('nothing is sold while nothing can be settled', async () => {
    shortage = 'the relayer is short of gas';
    expect(await present(sign())).toMatchObject({ status: 503, code: 'settlement_unavailable' });
    expect(await spent()).toEqual(stopped);
  });

  test('nothing is sold while no reply can be kept', async () => {
    ledger = openLedger({ storeBytes: 0 });
    shop = open();
    expect(await present(sign())).toMatchObject({ status: 503, code: 'reply_store_full', retryAfterSeconds: 30 });
    expect(await spent()).toEqual(stopped);
  });

  test('a client whose settlements failed brings no new payers, but those that have paid before', async () => {
    const known = newKey();
    expect(await present(sign(latch, { key: known }))).toHaveProperty('body');
    failures.beginSettlement('some payer', CLIENT)(true);
    asked.length = 0;
    expect(await present(sign())).toMatchObject({ status: 429, code: 'client_refused', retryAfterSeconds: 86_400 });
    expect(await spent()).toEqual(stopped);
    expect(await present(sign(latch, { key: known }))).toHaveProperty('body');
    expect(await present(sign(), { client: '192.0.2.2' })).toHaveProperty('body');
  });
});

describe('what fails uncharged', () => {
  /** How often one payer may present this before it must wait. */
  const triesBefore = async (code: string, options?: Parameters<typeof present>[1]) => {
    const key = newKey();
    for (let tries = 0; tries < 12; tries++) {
      const answer = await present(sign(latch, { key }), options);
      if ((answer as { code?: string }).code === code) return tries;
    }
    return null;
  };

  test('because the payer did not sign counts against the client alone', async () => {
    signature = async () => {
      throw new PaymentRefused('invalid_exact_evm_signature');
    };
    expect(await triesBefore('payer_failures')).toBeNull();
    failures = createFailures(LIMITS, clock);
    shop = open();
    expect(await triesBefore('client_failures')).toBe(5);
  });

  test('because the chain could not be asked for a signature counts against no client', async () => {
    signature = async () => {
      throw new UpstreamFailed('chain', 'away');
    };
    expect(await triesBefore('client_failures')).toBeNull();
  });

  test('because too many contracts were asked for their signature counts against the client: their code was looked for', async () => {
    signature = async () => {
      throw new TooMany('contract_signatures', 'wait', 1);
    };
    expect(await triesBefore('client_failures')).toBe(5);
  });

  test('because the payer has not the money counts against payer and client, and writes nothing', async () => {
    readPayer = async () => {
      throw new PaymentRefused('invalid_exact_evm_insufficient_balance');
    };
    expect(await triesBefore('payer_failures')).toBe(3);
    expect(reservations).toBe(0);
    failures = createFailures(LIMITS, clock);
    shop = open();
    readPayer = async () => {
      throw new UpstreamFailed('chain', 'away');
    };
    expect(await triesBefore('payer_failures')).toBeNull();
  });

  test('because the payment could not be settled counts against payer and client', async () => {
    verified = async () => {
      throw new PaymentRefused('invalid_exact_evm_insufficient_balance');
    };
    expect(await triesBefore('payer_failures')).toBe(3);
  });

  test('because the chain or the service could not look counts against no payer and no client', async () => {
    for (const error of [new UpstreamFailed('chain', 'away'), new Unavailable('chain_busy', 'busy')]) {
      verified = async () => {
        throw error;
      };
      expect(await triesBefore('payer_failures')).toBeNull();
    }
  });

  test('because the endpoint failed after the payment was verified counts, for work was done for nothing', async () => {
    moody.fail();
    expect(await triesBefore('payer_failures', { of: moody })).toBe(3);
  });

  test('because the service was short of something after that counts against no payer and no client', async () => {
    moody.fail(new Unavailable('upstream_busy', 'busy'));
    expect(await triesBefore('payer_failures', { of: moody })).toBeNull();
    ledger = openLedger({ storeBytes: 3 });
    shop = open();
    // The reply does not fit.
    expect(await triesBefore('payer_failures')).toBeNull();
  });

  test('gives its reservation back, so that the same authorization may buy again', async () => {
    moody.fail();
    const payment = sign(moody);
    expect(await present(payment, { of: moody })).toMatchObject({ status: 502, charged: false });
    expect(await rowOf(payment)).toBeNull();
    moody.recover();
    expect(await present(payment, { of: moody })).toHaveProperty('body');
  });
});

describe('payments whose outcome is unknown', () => {
  const WAITING = { status: 429, code: 'unknown_payments', charged: false, retryAfterSeconds: 10 };
  beforeEach(() => {
    settle = (id) => ledger.unknown(id);
  });

  test('of one payer end its new purchases at the limit, and none of another payer’s', async () => {
    const key = newKey();
    for (let at = 0; at < 2; at++) expect(await present(sign(latch, { key }))).toMatchObject({ status: 503 });
    asked.length = 0;
    expect(await present(sign(latch, { key }))).toMatchObject(WAITING);
    expect([asked, latch.runs()]).toEqual([['terms'], 2]);
    settle = paid(1000n);
    expect(await present(sign())).toHaveProperty('body');
  });

  test('of one client end its new purchases at the limit, whatever payers it names', async () => {
    for (let at = 0; at < 3; at++) await present(sign());
    expect(await present(sign())).toMatchObject(WAITING);
    settle = paid(1000n);
    expect(await present(sign(), { client: '192.0.2.2' })).toHaveProperty('body');
  });

  test('are counted for a /48 as well, which may have four times as many as a client', async () => {
    const networks = Array.from({ length: 13 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    const answers = [];
    for (const client of networks) answers.push(await present(sign(), { client }));
    expect(answers.slice(0, 12).map((answer) => (answer as { status: number }).status)).toEqual(Array(12).fill(503));
    expect(answers[12]).toMatchObject(WAITING);
    expect(await present(sign(), { client: '2001:db8:2:1::/64' })).toMatchObject({ status: 503 });
  });

  test('are never refused their own answer, and free their places when they end', async () => {
    const key = newKey();
    const payments = [sign(latch, { key }), sign(latch, { key })];
    for (const payment of payments) await present(payment);
    const next = sign(latch, { key });
    expect(await present(next)).toMatchObject(WAITING);
    resume = paid(1000n);
    expect(await present(payments[0] as Signed)).toHaveProperty('body');
    settle = paid(1000n);
    // The rows are read again once a second.
    expect(await present(next)).toMatchObject(WAITING);
    await clock.advance(1000);
    expect(await present(next)).toHaveProperty('body');
  });
});

describe('a settlement that moved nothing', () => {
  test('and was sent counts against payer and client, and against the client’s new payers for a day', async () => {
    settle = reverted;
    const key = newKey();
    expect(await present(sign(latch, { key }))).toMatchObject({ reason: REVERTED, settlement: { success: false } });
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(86_400);
    failures.note(key.address, CLIENT);
    failures.note(key.address, CLIENT);
    expect(failures.refusal(key.address, CLIENT)?.code).toBe('payer_failures');
  });

  test('and was not sent has cost no gas: new payers are taken', async () => {
    settle = (id) => ledger.failed(id, REVERTED);
    const key = newKey();
    expect(await present(sign(latch, { key }))).toMatchObject({ reason: REVERTED });
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
    for (let at = 0; at < 2; at++) failures.note(key.address, CLIENT);
    expect(failures.refusal(key.address, CLIENT)?.code).toBe('payer_failures');
  });

  test.each<[string, End]>([
    ['is open', (id) => ledger.unknown(id)],
    [
      'cannot be read',
      async () => {
        throw new Error('the disk is away');
      },
    ],
  ])('that %s is unknown, and counts against no payer and no client', async (_, end) => {
    settle = end;
    const key = newKey();
    expect(await present(sign(latch, { key }))).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
    expect([failures.refusal(key.address, CLIENT), failures.newPayersAfterSeconds(CLIENT)]).toEqual([null, 0]);
  });
});

describe('the last check before an answer leaves', () => {
  test('holds it back where less was paid than it costs, and an operator hears of it', async () => {
    settle = paid(999n);
    expect(await present(sign())).toMatchObject({ status: 500, code: 'underpaid', charged: 'unknown' });
    expect(errors).toEqual(['ALERT: an answer was held back because less was paid']);
  });

  test('holds it back at every later presentation as well', async () => {
    settle = paid(999n);
    const payment = sign();
    await present(payment);
    expect(await present(payment)).toMatchObject({ code: 'underpaid' });
    expect(errors).toHaveLength(2);
  });

  test('lets it go where enough was paid, again and again, without another look', async () => {
    const payment = sign();
    const first = await present(payment);
    resume = async () => fail(new Error('it has ended'));
    expect(delivered(await present(payment))).toEqual(delivered(first));
    expect(errors).toEqual([]);
  });
});

describe('a price below what was signed', () => {
  test('is what later deliveries are judged by as well', async () => {
    const cheap = latchedEndpoint('/test/cheap', '0.0008');
    const payment = sign();
    settle = paid(900n);
    expect(await present(payment, { of: cheap })).toHaveProperty('body');
    expect(await rowOf(payment)).toMatchObject({ amount: 1000n, price: 800n, charged: 900n });
    expect(await present(payment, { of: cheap })).toHaveProperty('body');
  });
});

describe('the same key with any other content', () => {
  /** Another authorization under the nonce of the first. */
  const twisted = (payment: Signed): Signed => {
    const authorization = { ...payment.authorization, validBefore: payment.authorization.validBefore + 1n };
    return { ...payment, authorization, header: headerOf(payloadOf(authorization, payment.requirement)) };
  };

  test.each<[string, () => Promise<Signed>]>([
    [
      'reserved',
      async () => {
        const payment = sign();
        latch.close();
        const started = latch.started();
        void present(payment);
        await started;
        return payment;
      },
    ],
    [
      'unknown',
      async () => {
        settle = (id) => ledger.unknown(id);
        const payment = sign();
        await present(payment);
        return payment;
      },
    ],
    [
      'settled',
      async () => {
        const payment = sign();
        await present(payment);
        return payment;
      },
    ],
    [
      'failed',
      async () => {
        settle = reverted;
        const payment = sign();
        await present(payment);
        return payment;
      },
    ],
  ])('is used, while the first is %s', async (state, make) => {
    const payment = await make();
    expect((await rowOf(payment))?.state).toBe(state);
    asked.length = 0;
    expect(await present(twisted(payment))).toMatchObject(REFUSED);
    expect([asked, (await rowOf(payment))?.state]).toEqual([[], state]);
    latch.open();
  });
});

describe('the same payment', () => {
  test('while it is served on another connection is in flight, and may be taken at any moment', async () => {
    const payment = sign();
    latch.close();
    const started = latch.started();
    const first = present(payment);
    await started;
    expect(await present(payment)).toMatchObject({
      status: 409,
      code: 'payment_in_flight',
      charged: 'unknown',
      retryAfterSeconds: 1,
    });
    latch.open();
    expect(await first).toHaveProperty('body');
  });

  test('while it is settled is in flight as well', async () => {
    const [settling, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    settle = async (id) => {
      settling.resolve();
      await end.promise;
      return paid(1000n)(id);
    };
    const payment = sign();
    const first = present(payment);
    await settling.promise;
    expect((await rowOf(payment))?.state).toBe('settling');
    expect(await present(payment)).toMatchObject({ status: 409, code: 'payment_in_flight', charged: 'unknown' });
    end.resolve();
    expect(await first).toHaveProperty('body');
  });

  test('for another request, or by another client, after it was paid is used', async () => {
    const payment = sign();
    await present(payment);
    expect(await present(payment, { query: { tag: 'another' } })).toMatchObject(REFUSED);
    expect(await present(payment, { client: '192.0.2.2' })).toMatchObject(REFUSED);
  });

  test('whose row is gone when it was looked up is unknown', async () => {
    settle = (id) => ledger.unknown(id);
    const payment = sign();
    await present(payment);
    resume = async () => GONE;
    expect(await present(payment)).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
  });

  test('whose outcome is unknown is looked up, and delivered where it was paid', async () => {
    settle = (id) => ledger.unknown(id);
    const payment = sign();
    await present(payment);
    expect(await present(payment)).toMatchObject({ code: 'settlement_unknown' });
    resume = paid(1000n);
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 1 });
  });
});

test('the rail gets the client, the result of the signature check, and that this is the first presentation', async () => {
  await present(sign());
  expect(reported).toEqual([
    { readPayer: CLIENT, signed: null, isAgain: false },
    { verify: CLIENT, isSeen: true, isAgain: false },
  ]);
});

describe('a payment that has reverted', () => {
  async function once(of: { endpoint: typeof latch.endpoint } = latch, identifier = ''): Promise<Signed> {
    settle = reverted;
    const payment = sign(of, { identifier });
    await present(payment, { of });
    failures = createFailures({ payer: 0, client: 0, clientSettlements: 0 }, clock);
    shop = open();
    return payment;
  }

  test('buys again for its first presenter, after a look at the evidence', async () => {
    const payment = await once();
    settle = async () => {
      throw new Error('it must be looked up first');
    };
    resume = paid(1000n);
    reported.length = 0;
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 2 });
    expect(reported).toEqual([
      { review: CLIENT, isLeft: false },
      { readPayer: CLIENT, signed: null, isAgain: true },
      { verify: CLIENT, isSeen: true, isAgain: true },
    ]);
  });

  test('and that a third party has paid since is stored as it was checked before, as of a plain account', async () => {
    const payment = await once();
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    resume = paid(1000n);
    expect(await present(payment)).toHaveProperty('body');
    expect(await rowOf(payment)).toMatchObject({ state: 'settled', checkedBlock: 7, payerHasCode: false });
  });

  test('and that a third party has paid since buys nothing that cannot be kept', async () => {
    const payment = await once();
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    ledger = openLedger({ storeBytes: 0 });
    shop = open();
    expect(await present(payment)).toMatchObject({ status: 503, code: 'reply_store_full', charged: 'unknown' });
    // The endpoint has run for the first presentation alone.
    expect([latch.runs(), (await rowOf(payment))?.state]).toEqual([1, 'failed']);
  });

  test('is served where a third party has paid it since, whatever its time and its payer: only the call must be the same', async () => {
    const payment = await once(moody);
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    resume = paid(1000n);
    [refused, shortage] = ['a ban', 'late'];
    readPayer = () => Promise.reject(new Error('it has paid'));
    asked.length = 0;
    moody.fail();
    expect(await present(payment, { of: moody })).toMatchObject({ status: 502, charged: 'unknown' });
    moody.recover();
    expect(await present(payment, { of: moody })).toHaveProperty('body');
    expect([asked, latch.runs()]).toEqual([[], 0]);
  });

  test('buys nothing for another request, because a third party at the same address may present it', async () => {
    const payment = await once();
    expect(await present(payment, { of: moody })).toMatchObject(REFUSED);
    expect(await present(payment, { query: { tag: 'other' } })).toMatchObject(REFUSED);
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    expect(await present(payment, { of: moody })).toMatchObject(REFUSED);
    expect(await rowOf(payment)).toMatchObject({ state: 'failed', reason: REVERTED });
    resume = paid(1000n);
    expect(delivered(await present(payment))).toEqual({ tag: 'none', run: 2 });
  });

  test('and that has an identifier buys nothing without it, not even from the same address', async () => {
    const payment = await once(latch, 'order-17-of-the-buyer');
    const { authorization, requirement } = payment;
    const copied = { ...payment, header: headerOf(payloadOf(authorization, requirement)) };
    resume = paid(1000n);
    expect(await present(copied)).toMatchObject(REFUSED);
    expect(await present(payment, { client: '192.0.2.2' })).toHaveProperty('body');
  });

  test('and that a third party has paid since runs failing calls no more often than any payment, and is never refused for a day', async () => {
    const payment = await once(moody);
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    resume = paid(1000n);
    failures = createFailures({ payer: 2, client: 0, clientSettlements: 1 }, clock);
    shop = open();
    // The settlement that moved nothing counts for the day; it must not keep an answer back that is paid for.
    failures.beginSettlement(bytesToHex(payment.authorization.from), CLIENT)(true);
    for (let at = 0; at < 2; at++) {
      moody.fail();
      expect(await present(payment, { of: moody })).toMatchObject({ status: 502, charged: 'unknown' });
    }
    reported.length = 0;
    const waiting = { status: 429, code: 'payer_failures', charged: 'unknown', retryAfterSeconds: 60 };
    expect(await present(payment, { of: moody })).toMatchObject(waiting);
    // Refused before any look at the evidence, which may cost requests.
    expect(reported).toEqual([]);
    moody.recover();
    await clock.advance(60_000);
    expect(await present(payment, { of: moody })).toHaveProperty('body');
  });

  test('is not said to have cost nothing where it has paid and is presented for a call of another price, whatever it says to accept', async () => {
    const payment = await once();
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    const requirement = { ...payment.requirement, amount: '2000' };
    const pretending = headerOf(payloadOf(payment.authorization, requirement));
    for (const header of [payment.header, pretending])
      expect(await present({ header, requirement })).toMatchObject({
        status: 409,
        code: 'payment_of_other_terms',
        charged: 'unknown',
        // To present the same one for the same call, as other failures advise, would be in vain.
        message: expect.stringMatching(/present it for a call with the same price$/),
      });
    expect((await rowOf(payment))?.state).toBe('failed');
  });

  test('and that a third party has paid since is served for what was signed, whatever the client says that it accepts', async () => {
    const payment = await once();
    reviewed = { kind: 'settled', transaction: HASH, block: 9, paid: 1000n };
    resume = paid(1000n);
    const odd = headerOf(payloadOf(payment.authorization, { ...payment.requirement, maxTimeoutSeconds: 1 }));
    expect(delivered(await present({ ...payment, header: odd }))).toEqual({ tag: 'none', run: 2 });
  });

  test('ends where it was used elsewhere since, and is never looked up again', async () => {
    const payment = await once();
    reviewed = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' };
    expect(await present(payment)).toMatchObject({ reason: 'invalid_exact_evm_nonce_already_used' });
    reviewed = { kind: 'open' };
    expect(await present(payment)).toMatchObject({ reason: 'invalid_exact_evm_nonce_already_used' });
    expect(await rowOf(payment)).toMatchObject({ state: 'failed', reason: 'invalid_exact_evm_nonce_already_used' });
  });

  test('stays unknown while the evidence does not answer', async () => {
    const payment = await once();
    reviewed = { kind: 'unknown' };
    expect(await present(payment)).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
  });

  test('is refused as used to every other client, because a third party may have sent it since', async () => {
    const payment = await once();
    expect(await present(payment, { client: '192.0.2.2' })).toMatchObject({ reason: 'payment_already_used' });
    expect((await rowOf(payment))?.state).toBe('failed');
  });

  test.each<[string, () => void, object]>([
    [
      'while the payer must wait',
      () => {
        refused = 'its payments cost gas';
      },
      { status: 429, code: 'payer_refused' },
    ],
    [
      'while nothing can be settled',
      () => {
        shortage = 'late';
      },
      { status: 503, code: 'settlement_unavailable' },
    ],
    [
      'while the chain is away',
      () => {
        verified = async () => {
          throw new UpstreamFailed('chain', 'away');
        };
      },
      { status: 503, code: 'settlement_unavailable' },
    ],
    [
      'to an endpoint that fails',
      () => {
        moody.fail();
      },
      { status: 502 },
    ],
  ])('and is presented %s is not said to have cost nothing', async (_, breakIt, expected) => {
    const payment = await once(moody);
    breakIt();
    expect(await present(payment, { of: moody })).toMatchObject({ ...expected, charged: 'unknown' });
    expect((await rowOf(payment))?.state).toBe('failed');
  });
});
