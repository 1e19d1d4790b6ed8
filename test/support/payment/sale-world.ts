import { onTestFinished } from 'vitest';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Query } from '../../../src/catalogue/params.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { AppError, UpstreamFailed } from '../../../src/errors.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { createReuse } from '../../../src/payment/known-payment.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createFailures, createUnknownPayments } from '../../../src/payment/limits.ts';
import type { Credential } from '../../../src/payment/protocol.ts';
import { decodePayment } from '../../../src/payment/protocols/x402/http.ts';
import type { PayerReading, Sale, SignedScheme } from '../../../src/payment/rail.ts';
import { plainReceipt, soldOf } from '../../../src/payment/receipt.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { createSales, sellSigned } from '../../../src/payment/sale.ts';
import { type Authorization, type Found, type Intent, REVERTED } from '../../../src/payment/settler.ts';
import { checkAccepted, readSigned } from '../../../src/payment/usdc/authorization.ts';
import { storesOver } from '../../../src/store/open.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { createOffer } from '../../../src/wiring/surfaces.ts';
import { openMemoryLedger } from '../ledger/fresh-ledger.ts';
import { hash32, reservation } from '../ledger/ledger-rows.ts';
import { openMemory } from '../ledger/memory-ledger.ts';
import { createManualClock } from '../manual-clock.ts';
import { latchedEndpoint } from '../service/latch.ts';
import { moodyEndpoint } from '../service/moody-endpoint.ts';
import { TERMS } from '../service/terms.ts';
import { headerOf, newKey, payloadOf, type Requirement, signAuthorization, USDC } from '../usdc/payments.ts';
import { runningByPurpose, usdcCallOf } from './call.ts';

// The sale of signed payments over the real ledger, with a scripted scheme and settling. This file alone knows the
// functions that sell: its tests speak of calls, payments and outcomes.

export const CLIENT = '192.0.2.1';
/** What the latched and the moody endpoint cost, in base units. */
export const PRICE = 1000n;
/** The length of their replies: a reply store of this size is full after one sale. */
export const REPLY_BYTES = 22;
export const TRANSACTION = Buffer.alloc(32, 0xab);
/** No limit on failed calls. */
export const NO_LIMITS = { payer: 0, client: 0, clientSettlements: 0 };
/** Tests hold a handler while they present other payments: no such run takes too long. */
const HANDLER_MS = 60_000;

export const LACKS_MONEY = new PaymentRefused('invalid_exact_evm_insufficient_balance');
export const NONCE_USED = new PaymentRefused('invalid_exact_evm_nonce_already_used');
export const CHAIN_AWAY = new UpstreamFailed('chain', 'away');
const DISK_AWAY = new AppError(503, 'ledger_unavailable', 'the disk is away', { retryAfterSeconds: 5 });
/** A step of the store that fails. */
export const storeFails = (error: Error = DISK_AWAY) => {
  return (): Promise<never> => Promise.reject(error);
};

/** How a settlement ends: with so many units paid, in another way, or by an error. */
type End = bigint | 'reverted' | 'not sent' | 'used elsewhere' | 'unknown' | 'row gone' | Error;
const EVIDENCE = {
  unused: { kind: 'open' },
  paid: { kind: 'settled', transaction: TRANSACTION, block: 9, paid: PRICE },
  'used elsewhere': { kind: 'failed', reason: NONCE_USED.reason },
  unread: { kind: 'unknown' },
} as const satisfies Record<string, Found>;

type Priced = { readonly endpoint: Endpoint<Sources> };

/** A call, by default of the latched endpoint by the usual client. */
interface CallOptions {
  of?: Priced;
  query?: Query;
  client?: string;
  /** What the client proves to be, by default its address. */
  identity?: string;
  signal?: AbortSignal;
}

/** A payment, by default x402's for the latched endpoint, by a new key and without an identifier. */
interface SignOptions {
  of?: Priced;
  key?: ReturnType<typeof newKey>;
  /** The payment that is repeated, with these members changed after it was signed. */
  like?: Signed;
  change?: Partial<Authorization>;
  value?: bigint;
  /** x402's payment identifier. */
  identifier?: string;
  /** What the client says that it accepts, where that is not the offer. */
  accepts?: Partial<Requirement>;
  /** The challenge that it answers, over MPP. It is the identifier too. */
  challenge?: { id: string; isMadeUp?: boolean };
}

interface Signed {
  readonly authorization: Authorization;
  readonly credential: Credential;
}

interface SaleOptions {
  limits?: Parameters<typeof createFailures>[0];
  storeBytes?: number;
  /** Payments that a payer may have open. */
  maxOpen?: number;
  network?: string;
  contract?: `0x${string}`;
  /** The database of another world: this one is then a second instance over it. */
  over?: ReturnType<typeof openDatabase>;
}

/** A sold answer, or what was thrown in its place. */
interface Outcome extends Partial<Omit<AppError, 'message'>>, Partial<Pick<PaymentRefused, 'reason' | 'settlement'>> {
  readonly answer?: unknown;
  readonly message?: string;
  readonly receipt?: object;
  readonly at?: number | null;
  onSent?(): Promise<void>;
}

function openDatabase() {
  const db = openMemoryLedger();
  const database = { db, stores: storesOver(openMemory(db)) };
  onTestFinished(async () => {
    await database.stores.close();
    db.close();
  });
  return database;
}

/** What a test has the scheme and the settling say, and what they were asked. */
function openScript() {
  /** Where there is an error, it is thrown. */
  const says = {
    signature: null as Error | null,
    payer: null as Error | null,
    verify: null as Error | null,
    evidence: 'unused' as keyof typeof EVIDENCE,
    /** Why nothing can be settled. */
    shortage: null as string | null,
    /** Why this payer is refused. */
    refuses: null as string | null,
    settles: PRICE as End,
    looksUp: 'unknown' as End,
  };
  /** What was asked of the ledger, the scheme and the settling, in this order. */
  const asked: string[] = [];
  const holds = new Map<string, { arrived(): void; go: Promise<void>; fault: Error | null }>();

  async function step(name: Step, usual: Error | null = null): Promise<void> {
    asked.push(name);
    const held = holds.get(name);
    holds.delete(name);
    held?.arrived();
    await held?.go;
    const fault = held ? held.fault : usual;
    if (fault) throw fault;
  }

  /** The next payment that comes to this step waits there until `go`. Then it fails with `fault`. */
  function hold(name: Step, fault: Error | null = null) {
    const [arrived, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    holds.set(name, { arrived: arrived.resolve, go: go.promise, fault });
    return { arrived: arrived.promise, go: go.resolve };
  }

  /** `heard`: with what the scheme was asked. `taken.back`: how often it was told that nothing was sent. */
  return { says, asked, step, hold, heard: [] as object[], handed: [] as Intent[], taken: { back: 0 } };
}

type Step = 'signature' | 'payer' | 'verify' | 'settle';
type Script = ReturnType<typeof openScript>;

function scriptedScheme({ says, asked, heard, step, taken }: Script, contract: Uint8Array): SignedScheme {
  const readAt = (block: number): PayerReading => ({ used: false, balance: 0n, hasCode: false, block });
  const hear = (name: string, { asker: { client, hasFailed, signal } }: Sale, more: object = {}) =>
    void heard.push({ step: name, client, hasFailed, isLeft: signal.aborted, ...more });
  const termsOf = ({ reverted, call: { price } }: Sale) => ({ isAgain: reverted !== null, price });
  return {
    contract,
    status: { unavailable: () => says.shortage, refuses: () => says.refuses },
    read: (payload) => readSigned(payload, contract),
    checkAccepted,
    requirement: (plain) => plain,
    check: () => void asked.push('terms'),
    checkSignature: async (sale) => {
      hear('signature', sale);
      await step('signature', says.signature);
      return readAt(5);
    },
    readPayer: async (sale, signed) => {
      hear('payer', sale, { signedAt: signed?.block, ...termsOf(sale) });
      await step('payer', says.payer);
      return readAt(6);
    },
    verify: async (sale, seen) => {
      hear('verify', sale, { seenAt: seen.block, ...termsOf(sale) });
      await step('verify', says.verify);
      return { checkedBlock: 7, hasCode: true, nothingSent: () => void taken.back++ };
    },
    review: async (sale, _known, mayLookUp) => {
      asked.push('review');
      hear('review', sale, { mayLookUp: mayLookUp() });
      return EVIDENCE[says.evidence];
    },
    receipt: plainReceipt,
  };
}

function scriptedSettling({ says, asked, handed, step }: Script, ledger: Ledger) {
  async function end(id: string, how: End): Promise<Payment | null> {
    if (how instanceof Error) throw how;
    if (how === 'row gone') return null;
    if (how === 'reverted') await ledger.noteBroadcast([{ id, transaction: TRANSACTION }]);
    if (how === 'reverted' || how === 'not sent') await ledger.failed(id, REVERTED);
    else if (how === 'used elsewhere') await ledger.failed(id, NONCE_USED.reason);
    else if (how === 'unknown') await ledger.unknown(id);
    else await ledger.settled(id, TRANSACTION, 9, how);
    return ledger.get(id);
  }
  return {
    settle: async (intent: Intent) => {
      handed.push(intent);
      await step('settle');
      return end(intent.id, says.settles);
    },
    resume: ({ id }: Payment) => {
      asked.push('look up');
      return end(id, says.looksUp);
    },
  };
}

/** `store`: a test may put a step of its own in the place of any. `live` has the steps of now, and notes three of them. */
function openStore({ asked }: Script, payments: LedgerStore) {
  const noted: Record<string, string> = { find: 'row', findByIdentifier: 'identifier', reserve: 'reserve' };
  const store = { ...payments };
  const get = (_: LedgerStore, name: keyof LedgerStore) => {
    return (...given: never[]) => {
      if (noted[name]) asked.push(noted[name]);
      return (store[name] as (...given: never[]) => unknown)(...given);
    };
  };
  return { store, live: new Proxy(store, { get: get as never }) };
}

/** `asked` notes that the challenge is checked. */
function sign(asked: string[], options: SignOptions & { of: Priced }): Signed {
  const { of, key = newKey(), like, change = {}, value, identifier: id, accepts = {}, challenge } = options;
  const requirement = requirementOf(of) as unknown as Requirement;
  const made = like?.authorization ?? signAuthorization(key.privateKey, requirement, value ? { value } : {});
  const authorization = { ...made, ...change };
  const extensions = id ? { 'payment-identifier': { info: { id } } } : undefined;
  const x402 = decodePayment(headerOf(payloadOf(authorization, { ...requirement, ...accepts }, extensions)));
  if (!challenge) return { authorization, credential: x402 };
  const checkChallenge = () => {
    asked.push('challenge');
    if (challenge.isMadeUp) throw new PaymentRefused('invalid_challenge');
  };
  const { payload } = x402;
  const identifier = () => ({ hash: hash32(challenge.id), isSingleUse: true });
  return { authorization, credential: { protocol: 'mpp', accepted: null, payload, identifier, checkChallenge } };
}

const requirementOf = ({ endpoint }: Priced) => createOffer(endpoint as never, TERMS).requirement;

export function openSale(options: SaleOptions = {}) {
  const { network = TERMS.network, contract = USDC, storeBytes = 1000, maxOpen = 0, over = openDatabase() } = options;
  const { limits = { payer: 3, client: 5, clientSettlements: 1 } } = options;
  const script = openScript();
  const { says, asked, hold } = script;
  const clock = createManualClock(Date.now());
  const [latch, moody] = [latchedEndpoint(), moodyEndpoint('/test/moody', '0.001')];
  const alerts: string[] = [];
  const { store, live } = openStore(script, over.stores.payments);
  const keeping = { storeBytes, keepSeconds: 900, maxDeliveries: 5, maxOpen };
  const ledger = createLedger({ store: live, clock, bootId: 'boot', ...keeping });
  const failures = createFailures(limits, clock);
  const scheme = scriptedScheme(script, hexToBytes(contract));
  const running = runningByPurpose<Sources>(HANDLER_MS);
  const sales = createSales({
    ledger,
    settling: scriptedSettling(script, ledger),
    failures,
    unknown: createUnknownPayments({ ledger, limits: { payer: 2, client: 3 }, clock }),
    clock,
    network,
    log: { info: () => {}, warn: () => {}, error: (_detail, message) => void alerts.push(message) },
  });
  const signed = (how: SignOptions = {}) => sign(asked, { of: latch, ...how });

  /** Presents a payment for a call. What is thrown is returned. */
  async function sell(call: CallOptions = {}, payment: Signed = signed(call)): Promise<Outcome> {
    const { of = latch, client = CLIENT } = call;
    const asking = { ...call, client };
    try {
      const asked = usdcCallOf(of.endpoint, requirementOf(of), { asking, running });
      const { body, ...sold } = await sellSigned(sales, scheme, asked, payment.credential);
      return { answer: JSON.parse(Buffer.from(body).toString()), ...sold };
    } catch (error) {
      return error as Outcome;
    }
  }

  /** A payment whose row has this state. `go` lets one go on that is still being served. */
  async function paymentThatIs(state: Standing, call: CallOptions = {}, payment = signed(call)) {
    const { arrived, go } = hold(state === 'reserved' ? 'verify' : 'settle');
    if (state in ENDS) go();
    says.settles = ENDS[state] ?? PRICE;
    const first = sell(call, payment);
    await (state in ENDS ? first : arrived);
    says.settles = PRICE;
    return { payment, first, go };
  }

  return {
    ...script,
    sell,
    sign: signed,
    paymentThatIs,
    row: ({ authorization: { from, nonce } }: Signed) =>
      over.stores.payments.find({ network, contract: hexToBytes(contract), payer: from, nonce }),
    rows: async () => Object.values(await ledger.countByState()).reduce((sum, count) => sum + count, 0),
    /** Writes members of all rows as an earlier version of the service, or another way to pay, left them. */
    rewrite: (set: string) => over.db.exec(`UPDATE usdc_payments SET ${set}`),
    alerts,
    failures,
    store,
    clock,
    latch,
    moody,
    isServed: (id: string) => sales.serving.has(id),
    database: over,
  };
}

const ENDS: Partial<Record<Standing, End>> = {
  unknown: 'unknown',
  settled: PRICE,
  reverted: 'reverted',
  failed: 'used elsewhere',
};
/** Where a payment stands. `failed`: for good. */
export type Standing = 'reserved' | 'settling' | 'unknown' | 'settled' | 'reverted' | 'failed';

/** Reviews of reverted authorizations, by name and without a sale around them. */
export function openReviews(evidence: keyof typeof EVIDENCE) {
  /** For each review, whether it might look the evidence up. */
  const mays: boolean[] = [];
  const ledger = { ruleOut: async () => true };
  const reuse = createReuse(createManualClock(1_800_000_000_000), ledger);
  const review: SignedScheme['review'] = async (_sale, _known, mayLookUp) => {
    mays.push(mayLookUp());
    return EVIDENCE[evidence];
  };
  const known = { ...reservation('a', 'a'), state: 'failed' } as unknown as Payment;
  const saleOf = (name: string) => ({ scheme: { review }, payment: { authorizationHash: hash32(name) } }) as Sale;
  const present = (name: string) => reuse(saleOf(name), known).catch((error: unknown) => error);
  return { present, mays };
}

/** The last check before an answer leaves, by itself: what becomes of the answer to a row of these members. */
export function lastCheck(members: Partial<Payment>, price: bigint): unknown {
  const plain = { signature: null, payerHasCode: false, checkedBlock: 1, transaction: TRANSACTION, block: 9 };
  const end = { reason: null, endedAt: 2, deliveries: 0, deliveredAt: null, channel: null, calldata: null };
  const settled = { state: 'settled' as const, amount: PRICE, charged: PRICE };
  const payment = { ...reservation('a', 'a'), ...plain, ...end, ...settled, ...members } as Payment;
  const kit = { ledger: { delivered: async () => true }, log: { error: () => {} } };
  try {
    return soldOf(kit, plainReceipt, payment, Buffer.from('{}'), price);
  } catch (error) {
    return error;
  }
}
