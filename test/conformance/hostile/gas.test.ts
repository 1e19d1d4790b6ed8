import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keccak256, toBytes } from 'viem';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { artifacts } from '../../../dev/contracts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { until, untilReady } from '../../support/service/workers.ts';
import { balanceOf, errorOf, isPending, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';
import { CODE, newContractPayer } from '../../support/usdc/contract-payer.ts';

/** The storage slot from which `StoppedUsdc` reads the blocklisted account. */
const BLOCKED_SLOT = keccak256(toBytes('percall.test.blocked'));
let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
});
afterAll(async () => {
  await network.stop();
});
const codeOf = (answer: Answer) => [answer.status, JSON.parse(answer.body).code];

describeServices('our relayer', (ledgerEnv, testMemory) => {
  const latch = latchedEndpoint();
  let service: Service;
  const env = { RECEIPT_POLL_MS: '50', RECONCILE_INTERVAL_MS: '100' };
  beforeEach(async () => {
    service = await startService(network, { env: { ...env, ...(await ledgerEnv()) }, catalogue: [latch.endpoint] });
    await untilReady(service);
    return () => service.stop();
  });

  const sent = async () => Number(await network.rpc('eth_getTransactionCount', [network.relayer.address, 'latest']));
  const gasOf = async () => BigInt(await network.rpc<string>('eth_getBalance', [network.relayer.address, 'latest']));
  const buy = (payment: Payment) => present(service.origin, latch.path, payment);

  /** Presents payments together, and runs `act` between the checks and the settlement. */
  async function whileServed(payments: readonly Payment[], act: () => Promise<unknown>): Promise<Answer[]> {
    latch.close();
    const answers = payments.map(buy);
    await until('all are served', () => latch.waiting() === payments.length);
    await act();
    latch.open();
    return Promise.all(answers);
  }

  test('refuses an account with code for a day when its lone transaction moved nothing, however little gas it used', async () => {
    const payer = await newContractPayer(network, CODE.agrees);
    const payment = await payer.sign(service.origin, latch.path);
    await network.pauseMining();
    const answer = buy(payment);
    await until('it is sent', () => isPending(network, bytesToHex(payment.authorization.nonce)));
    await payer.become(CODE.silent);
    await network.resumeMining();
    expect(errorOf(await answer)).toEqual([402, 'invalid_exact_evm_transaction_failed']);
    await payer.become(CODE.agrees);
    const before = await sent();
    const next = await payer.sign(service.origin, latch.path);
    await until('it is refused', async () => (await buy(next)).status === 429);
    expect(codeOf(await buy(next))).toEqual([429, 'payer_refused']);
    expect(await sent()).toBe(before);
    const honest = await newContractPayer(network, CODE.agrees);
    expect((await buy(await honest.sign(service.origin, latch.path))).status).toBe(200);
  });

  test('sends nothing for an account with code that agrees only where gas costs nothing', async () => {
    const payer = await newContractPayer(network, CODE.agreesInFreeTrials);
    const before = [await sent(), await gasOf()];
    const answer = await buy(await payer.sign(service.origin, latch.path));
    expect(errorOf(answer)).toEqual([402, 'invalid_exact_evm_transaction_simulation_failed']);
    expect([await sent(), await gasOf()]).toEqual(before);
  });

  test('sends nothing for an account with code that withdraws its consent while the call is served', async () => {
    const payer = await newContractPayer(network, CODE.agrees);
    const before = await sent();
    const payment = await payer.sign(service.origin, latch.path);
    const [answer] = await whileServed([payment], () => payer.become(CODE.silent));
    expect(errorOf(answer!)).toEqual([402, 'invalid_exact_evm_transaction_failed']);
    expect(await sent()).toBe(before);
  });

  test('refuses an authorization that could expire before it is settled, and sells for one that could not', async () => {
    const before = await sent();
    const buyer = await newBuyer(network);
    const inSeconds = (seconds: number) => BigInt(Math.floor(Date.now() / 1000) + seconds);
    // 15 s for a handler, 20 s for a settlement, 6 s of margin.
    const short = await buyer.sign(service.origin, latch.path, { validBefore: inSeconds(39) });
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    expect(errorOf(await buy(short))).toEqual([402, reason]);
    const enough = await buyer.sign(service.origin, latch.path, { validBefore: inSeconds(50) });
    expect((await buy(enough)).status).toBe(200);
    expect(await sent()).toBe(before + 1);
  });

  // Whether the token is shut is in the service's memory.
  testMemory.each([
    ['is paused', () => `0x${'00'.repeat(32)}`],
    ['refuses the seller', () => `0x${network.seller.slice(2).toLowerCase().padStart(64, '0')}`],
  ])(
    'stops the sale when the token %s, after at most one transaction, and the 503 names the reason',
    async (_state, blocked) => {
      const buyers = await Promise.all(Array.from({ length: 4 }, () => newBuyer(network)));
      const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, latch.path)));
      const before = await sent();
      const running = await network.rpc<string>('eth_getCode', [network.usdc, 'latest']);
      await network.rpc('anvil_setStorageAt', [network.usdc, BLOCKED_SLOT, blocked()]);
      await network.rpc('anvil_setCode', [network.usdc, artifacts.StoppedUsdc.runtime]);
      expect((await buy(payments[0]!)).status).toBe(402);
      await until('the sale has stopped', async () => (await service.get('/readyz')).status === 503);
      for (const payment of payments.slice(1)) {
        const answer = await buy(payment);
        expect(codeOf(answer)).toEqual([503, 'settlement_unavailable']);
        expect(JSON.parse(answer.body).detail).toContain('token is paused, or refuses the seller');
      }
      expect(await sent()).toBeLessThanOrEqual(before + 1);
      await network.rpc('anvil_setCode', [network.usdc, running]);
      await untilReady(service);
      // None of these buyers caused the failure.
      for (const payment of payments) expect((await buy(payment)).status).toBe(200);
      for (const buyer of buyers) expect(await balanceOf(network, buyer.address)).toBe(999_000n);
    },
  );
});

describeServices('a day’s budget for settlements that fail', (ledgerEnv) => {
  const latch = latchedEndpoint();

  test('once spent, stops sales to accounts with code only, also after a restart', async () => {
    const ledger = await ledgerEnv();
    // A lone revert costs about 0.001 USDC here.
    const env = { RELAYER_DAILY_FAILURES_USDC: '0.0001', RECEIPT_POLL_MS: '50', ...ledger };
    const dataDir = mkdtempSync(join(tmpdir(), 'percall-failures-'));
    const open = () => startService(network, { env, catalogue: [latch.endpoint], dataDir });
    const first = await open();
    const buyer = await newBuyer(network, 1000n);
    latch.close();
    const failing = buyer.sign(first.origin, latch.path).then((payment) => present(first.origin, latch.path, payment));
    await until('it is served', () => latch.waiting() === 1);
    await network.fundUsdc(buyer.address, -1000n);
    latch.open();
    expect(errorOf(await failing)).toEqual([402, 'invalid_exact_evm_transaction_failed']);

    async function expectClosedToCode(origin: string): Promise<void> {
      const payer = await newContractPayer(network, CODE.agrees);
      const refused = await present(origin, latch.path, await payer.sign(origin, latch.path));
      expect(codeOf(refused)).toEqual([503, 'settlement_unavailable']);
      const plain = await newBuyer(network);
      expect((await present(origin, latch.path, await plain.sign(origin, latch.path))).status).toBe(200);
    }
    await expectClosedToCode(first.origin);
    await first.stop();
    const again = await open();
    await untilReady(again);
    await expectClosedToCode(again.origin);
    await again.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
