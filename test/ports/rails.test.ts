import { describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../src/errors.ts';
import { createFailures } from '../../src/payment/failures.ts';
import { createLedger } from '../../src/payment/ledger.ts';
import { createLookup } from '../../src/payment/lookup.ts';
import type { Credential } from '../../src/payment/protocol.ts';
import { createPurchase } from '../../src/payment/purchase.ts';
import type { Delivery } from '../../src/payment/receipt.ts';
import { PaymentRefused } from '../../src/payment/refusal.ts';
import { createServe } from '../../src/payment/serve.ts';
import { createSettlement } from '../../src/payment/settlement.ts';
import { describeLedgers, useLedger } from '../support/ledger/ledger-adapters.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createToyRail } from '../support/rails/toy-rail.ts';
import { moodyEndpoint } from '../support/service/moody-endpoint.ts';

const LOG = { info: () => {}, warn: () => {}, error: () => {} };
const PRICE = {
  scheme: 'exact',
  network: 'eip155:5042',
  amount: '500',
  asset: '0x',
  payTo: '0x',
  maxTimeoutSeconds: 60,
  extra: {},
} as const;
const CLIENT = 'a';
const MINUTE_MS = 60_000;

describeLedgers('what every rail is sold under', (adapter) => {
  const ledgers = useLedger(adapter);
  const clock = createManualClock(Date.now());

  /** A shop with one rail over the ledger, as one process has it: another one is the process after a kill. */
  function openShop(
    rail: ReturnType<typeof createToyRail>,
    endpoint: ReturnType<typeof moodyEndpoint>['endpoint'],
    bootId = 'one',
  ) {
    const { payments: store, transfers, lightning: claims } = ledgers.stores;
    const limits = { storeBytes: 1e6, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    const ledger = createLedger({ store, clock, bootId, ...limits });
    const settlement = createSettlement({
      ledger,
      railOf: () => rail.settling,
      clock,
      waitMs: 2000,
      log: LOG,
    });
    const failures = createFailures({ payer: 0, client: 0, clientSettlements: 0 }, clock);
    const sources = {} as never;
    const { purchase } = createPurchase<never>({
      ...{ ledger, settlement, failures, sources, clock, network: rail.network, log: LOG },
      railFor: () => rail.purchase,
      serve: createServe({ ledger, sources, handlerTimeoutMs: 5000 }),
    });
    const present = (credential: Credential, { tag = 'x', client = CLIENT } = {}): Promise<Delivery> =>
      purchase(endpoint as never, PRICE, {
        credential,
        query: { tag },
        client,
        identity: client,
        signal: new AbortController().signal,
      });
    return {
      ledger,
      settlement,
      present,
      lookup: createLookup({ payments: store, transfers, claims, lightningNetworks: [], explorerUrl: null }),
    };
  }

  function open() {
    const moody = moodyEndpoint();
    let shop: ReturnType<typeof openShop>;
    const rail = createToyRail(() => shop.ledger);
    shop = openShop(rail, moody.endpoint);
    /** A round of maintenance, after the pause that an open row is given. */
    const reconcile = async () => {
      await clock.advance(MINUTE_MS);
      await shop.settlement.reconcile(() => false);
      await shop.settlement.idle();
    };
    const restart = async () => {
      shop = openShop(rail, moody.endpoint, 'two');
      await shop.ledger.recover();
      await reconcile();
    };
    return {
      moody,
      rail,
      reconcile,
      restart,
      shop: () => shop,
      present: (...of: Parameters<typeof shop.present>) => shop.present(...of),
    };
  }

  const requirement = { ...PRICE };
  const textOf = ({ body }: Delivery) => Buffer.from(body).toString();
  const reasonOf = (asked: Promise<unknown>) =>
    asked.then(
      () => 'sold',
      (error: { reason?: string; code?: string }) => error.reason ?? error.code,
    );

  describe.each([['toy', open]] as const)('%s', (_name, openRail) => {
    test('one payment buys exactly one answer, and its receipt says what was paid', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement);
      const { receipt, ...sold } = await present(payment);
      expect(JSON.parse(textOf(sold as Delivery))).toEqual({ tag: 'x', run: 1 });
      expect(receipt).toMatchObject({
        success: true,
        amount: '500',
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      });
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('the same payment for the same request gets the same bytes again, uncharged', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement, 5000n);
      const first = textOf(await present(payment));
      expect(textOf(await present(payment))).toBe(first);
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('a settled payment buys nothing for another request, nor for another client', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement, 5000n);
      await present(payment);
      expect(await reasonOf(present(payment, { tag: 'y' }))).toBe('payment_already_used');
      expect(await reasonOf(present(payment, { client: 'b' }))).toBe('payment_already_used');
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('a failing call costs nothing, and the same payment buys the next one', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement);
      moody.fail(new UpstreamFailed('test', 'moody'), 1);
      expect(await reasonOf(present(payment))).toBe('upstream_failed');
      expect(rail.moved(payment)).toBe(0);
      expect(JSON.parse(textOf(await present(payment)))).toMatchObject({ run: 2 });
      expect(rail.moved(payment)).toBe(1);
    });

    test('of many presentations at once, one is served', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement, 5000n);
      const answers = await Promise.all(Array.from({ length: 16 }, () => reasonOf(present(payment))));
      expect(answers.filter((answer) => answer === 'sold').length).toBeGreaterThan(0);
      expect(answers.every((answer) => answer === 'sold' || answer === 'payment_in_flight')).toBe(true);
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('a payer without the money is refused before the ledger knows it', async () => {
      const { rail, moody, shop, present } = openRail();
      const payment = rail.pay(requirement, 499n);
      expect(await reasonOf(present(payment))).toBe('toy_insufficient_balance');
      expect([await shop().ledger.find(rail.keyOf(payment)), moody.runs()]).toEqual([null, 0]);
    });

    test('what a payer promised before counts against its balance', async () => {
      const { rail, present } = openRail();
      const [one, two] = [rail.pay(requirement), rail.pay(requirement, 0n)];
      // The second payment is signed by the first one's payer.
      const payload = { ...one.payload, nonce: two.payload.nonce, signature: rail.signAs(one, two) };
      const answers = await Promise.all([one, { ...one, payload }].map((payment) => reasonOf(present(payment))));
      expect(answers.sort()).toEqual(['sold', 'toy_insufficient_balance']);
    });

    test('terms, amount and signature that are not right are refused by name', async () => {
      const { rail, moody, present } = openRail();
      const payment = rail.pay(requirement);
      const changed = (payload: object, accepted = payment.accepted) =>
        reasonOf(present({ accepted, payload: { ...payment.payload, ...payload } }));
      expect(await changed({}, { ...payment.accepted, scheme: 'exact' })).toBe('No matching payment requirements');
      expect(await changed({ value: '1' })).toBe('toy_wrong_amount');
      expect(await changed({ signature: '0x00' })).toBe('toy_signature');
      expect([rail.moved(payment), moody.runs()]).toEqual([0, 0]);
    });

    test('a refused settlement is 402 with its reason, and the very same payment may be presented again', async () => {
      const { rail, present } = openRail();
      const payment = rail.pay(requirement);
      rail.bank.refuses = true;
      const refusal = await present(payment).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(PaymentRefused);
      expect((refusal as PaymentRefused).settlement).toMatchObject({ success: false, transaction: '' });
      rail.bank.refuses = false;
      await present(payment);
      expect(rail.moved(payment)).toBe(1);
    });

    test('a settlement of unknown end is no 402: the buyer comes back and is served, and the money has moved once', async () => {
      const { rail, moody, reconcile, present } = openRail();
      const payment = rail.pay(requirement);
      rail.bank.losesAnswers = true;
      const failure = await present(payment).catch((error: unknown) => error);
      expect(failure).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
      rail.bank.losesAnswers = false;
      await reconcile();
      expect(JSON.parse(textOf(await present(payment)))).toMatchObject({ run: 1 });
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('after a crash behind the settlement the next process serves what was paid', async () => {
      const { rail, moody, restart, present } = openRail();
      const payment = rail.pay(requirement);
      rail.bank.losesAnswers = true;
      await present(payment).catch(() => {});
      rail.bank.losesAnswers = false;
      await restart();
      expect(JSON.parse(textOf(await present(payment)))).toMatchObject({ run: 1 });
      expect([rail.moved(payment), moody.runs()]).toEqual([1, 1]);
    });

    test('nothing is sold while the rail cannot settle', async () => {
      const { rail, moody, present } = openRail();
      rail.bank.isAway = true;
      expect(await reasonOf(present(rail.pay(requirement)))).toBe('settlement_unavailable');
      expect(moody.runs()).toBe(0);
    });

    test('the lookup finds the payment by its nonce, with its end', async () => {
      const { rail, shop, present } = openRail();
      const payment = rail.pay(requirement);
      await present(payment);
      const { payments } = await shop().lookup(String(payment.payload.nonce));
      expect(payments).toMatchObject([{ amount: '500', state: 'settled', transaction: expect.stringMatching(/^0x/) }]);
    });
  });
});
