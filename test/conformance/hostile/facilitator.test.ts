import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { until, untilReady } from '../../support/service/workers.ts';
import { errorOf, isPending, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';
import { CODE, newContractPayer } from '../../support/usdc/contract-payer.ts';
import { type LocalFacilitator, startLocalFacilitator } from '../../support/usdc/local-facilitator.ts';

/** Between two purchases of a buyer who waits for another answer. Each is signed, checked and recorded: one every 25 ms took most of the time. */
const AGAIN_MS = 250;

type Latch = ReturnType<typeof latchedEndpoint>;

let network: EmbeddedNetwork;
let facilitator: LocalFacilitator;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  facilitator = await startLocalFacilitator(network);
});
afterAll(async () => {
  await facilitator.stop();
  await network.stop();
});

/** A service that settles with the facilitator, and sells. */
async function startSeller({ endpoint }: Latch, more: Record<string, string>): Promise<Service> {
  const env = {
    SETTLER: 'facilitator',
    REMOTE_FACILITATOR_URL: facilitator.url,
    RELAYER_PRIVATE_KEY: '',
    PAYER_MAX_UNKNOWN: '4',
    CLIENT_MAX_UNKNOWN: '12',
    RECONCILE_INTERVAL_MS: '100',
    RECEIPT_POLL_MS: '50',
    ...more,
  };
  const service = await startService(network, { env, catalogue: [endpoint] });
  await untilReady(service);
  return service;
}

const untilRefused = (buy: () => Promise<Answer>) =>
  until('it is refused', async () => JSON.parse((await buy()).body).code === 'payer_refused', AGAIN_MS);

const isSent = ({ authorization }: Payment) => isPending(network, bytesToHex(authorization.nonce));

describeServices('a third party’s facilitator', (ledgerEnv) => {
  const latch = latchedEndpoint();
  let service: Service;
  beforeAll(async () => {
    const waits = { REMOTE_FACILITATOR_TIMEOUT_MS: '60000', SETTLE_WAIT_MS: '3000' };
    service = await startSeller(latch, { ...waits, ...(await ledgerEnv()) });
  });
  afterAll(() => service.stop());

  /** Presents a payment again while the service answers that settlements are late, as it may on a slow machine. Returns the final answer. */
  async function presentUntilAnswered(payment: Payment, from?: string): Promise<Answer> {
    let answer = await present(service.origin, latch.path, payment, from);
    const isAnswered = async () => {
      if (answer.status === 503) answer = await present(service.origin, latch.path, payment, from);
      return answer.status !== 503;
    };
    await until('it is answered', isAnswered, AGAIN_MS);
    return answer;
  }

  test('gets no further payment of a plain account that sets code while its payment is settled', async () => {
    const buyer = await newBuyer(network);
    const payment = await buyer.sign(service.origin, latch.path);
    latch.close();
    const answer = present(service.origin, latch.path, payment, '127.0.0.40');
    await until('it is served', () => latch.waiting() === 1);
    await network.pauseMining();
    latch.open();
    await until('it is sent', () => isSent(payment));
    // Stands for EIP-7702: the account's own code now refuses its signature.
    await network.rpc('anvil_setCode', [buyer.address, CODE.silent]);
    await network.resumeMining();
    expect((await answer).status).toBe(503);
    const next = async () =>
      present(service.origin, latch.path, await buyer.sign(service.origin, latch.path), '127.0.0.41');
    await untilRefused(next);
  });

  test('whose settlements stay open ends the new purchases of that payer, and never an answer that it is owed', async () => {
    facilitator.fault('claims success without a transaction');
    const payer = await newBuyer(network);
    const from = '127.0.0.50';
    const sign = () => payer.sign(service.origin, latch.path);
    const open = await Promise.all(Array.from({ length: 4 }, sign));
    for (const answer of await Promise.all(open.map((each) => present(service.origin, latch.path, each, from))))
      expect(answer.status).toBe(503);
    const refused = await present(service.origin, latch.path, await sign(), from);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      429,
      { code: 'unknown_payments', charged: false },
    ]);
    expect(refused.headers['retry-after']).toBe('10');
    facilitator.fault(null);
    for (const each of open) expect((await presentUntilAnswered(each, from)).status).toBe(200);
    const buys = async () => (await present(service.origin, latch.path, await sign(), from)).status === 200;
    await until('it buys again', buys, AGAIN_MS);
  });

  test('is not asked to settle for a payer that agrees only where gas costs nothing', async () => {
    const payer = await newContractPayer(network, CODE.agreesInFreeTrials);
    const answer = await presentUntilAnswered(await payer.sign(service.origin, latch.path));
    expect(errorOf(answer)).toEqual([402, 'invalid_exact_evm_transaction_simulation_failed']);
    const settles = facilitator.asked.filter(({ path }) => path === '/settle').map((asked) => JSON.stringify(asked));
    expect(settles.filter((asked) => asked.toLowerCase().includes(payer.address.toLowerCase()))).toEqual([]);
  });

  test('gets no authorization with a longer validity than clients sign for, because its outcome would stay open as long', async () => {
    const buyer = await newBuyer(network);
    const week = 604_900n;
    const now = BigInt(Math.floor(Date.now() / 1000));
    const far = await buyer.sign(service.origin, latch.path, { validBefore: now + week + 3600n });
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    expect(errorOf(await presentUntilAnswered(far))).toEqual([402, reason]);
    const near = await buyer.sign(service.origin, latch.path, { validBefore: now + week });
    expect((await presentUntilAnswered(near)).status).toBe(200);
  });
});

describeServices(
  'a third party’s facilitator, while contract payers refuse their settlements',
  (ledgerEnv, testMemory) => {
    const latch = latchedEndpoint();
    let service: Service;
    beforeAll(async () => {
      // The honest buyers are counted at their first try, so a slow machine has time for twenty settlements.
      const waits = { REMOTE_FACILITATOR_TIMEOUT_MS: '10000', SETTLE_WAIT_MS: '12000' };
      service = await startSeller(latch, { ...waits, ...(await ledgerEnv()) });
    });
    afterAll(() => service.stop());

    /** The number of ten honest buyers that are served at the first try. */
    async function servedOfTen(): Promise<number> {
      const payments = await Promise.all(
        Array.from({ length: 10 }, async () => (await newBuyer(network)).sign(service.origin, latch.path)),
      );
      const answers = await Promise.all(payments.map((payment) => present(service.origin, latch.path, payment)));
      return answers.filter(({ status }) => status === 200).length;
    }

    // Which payers are refused is in the service's memory. The suite above looks at one of them on every ledger.
    testMemory('still serves honest buyers, though the payers accept in simulation', async () => {
      const payers = await Promise.all(Array.from({ length: 6 }, () => newContractPayer(network, CODE.agrees)));
      const payments = await Promise.all(payers.map((payer) => payer.sign(service.origin, latch.path)));
      latch.close();
      // Each from its own address, because signature checks of contracts are limited per client and minute.
      const answers = payments.map((payment, at) => present(service.origin, latch.path, payment, `127.0.0.${20 + at}`));
      await until('all are served', () => latch.waiting() === payers.length);
      await network.pauseMining();
      latch.open();
      await until('all are sent', async () => (await Promise.all(payments.map(isSent))).every(Boolean));
      for (const payer of payers) await payer.become(CODE.silent);
      await network.resumeMining();
      expect(await servedOfTen()).toBe(10);
      for (const answer of await Promise.all(answers)) {
        expect(answer.status).not.toBe(200);
        if (answer.status === 503) expect(JSON.parse(answer.body)).toMatchObject({ charged: 'unknown' });
      }
      // They present again meanwhile, which does not stop the sale either.
      expect(await servedOfTen()).toBe(10);
      const refuse = async (payer: (typeof payers)[number], at: number) => {
        const next = async () =>
          present(service.origin, latch.path, await payer.sign(service.origin, latch.path), `127.0.0.${20 + at}`);
        // It is refused once the service has finished watching its settlement, shortly after the answer. Until then too many tries are 429 as well.
        await untilRefused(next);
        await payer.become(CODE.agrees);
        const { status, body } = await next();
        expect([status, JSON.parse(body).code]).toEqual([429, 'payer_refused']);
      };
      await Promise.all(payers.map(refuse));
    });
  },
);
