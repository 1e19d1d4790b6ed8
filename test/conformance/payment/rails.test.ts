import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BatchEvmScheme } from '@circle-fin/x402-batching/client';
import { x402Client } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { priceOf } from '../../support/prices.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until, untilReady } from '../../support/service/workers.ts';
import { balanceOf, decoded, newBuyer, present } from '../../support/usdc/buyer.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';
import { type LocalFacilitator, startLocalFacilitator } from '../../support/usdc/local-facilitator.ts';
import { headerOf, payloadOf, type Requirement } from '../../support/usdc/payments.ts';

const WALLET = `0x${'77'.repeat(20)}` as const;
const PATH = '/v1/paid/fees/estimate';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface Found {
  payments: { rail: string; state: string; transaction: string; block: number | null; explorerUrl: string | null }[];
}

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(async () => {
  await network.stop();
});

const lookup = async (service: Service, id: string): Promise<Found> =>
  JSON.parse((await service.get(`/v1/payments/${id}`)).body);

const readiness = async (service: Service) => {
  const { status, body } = await service.get('/readyz');
  const { ready = false, checks } = JSON.parse(body);
  return { status, ready, checks };
};

const spendable = () => ({
  allowedAssets: [{ network: 'eip155:5042' as const, asset: network.usdc, maxAmountPerPayment: '5000' }],
});

describe('a remote facilitator instead of our relayer', () => {
  let facilitator: LocalFacilitator;
  let service: Service;
  const start = async (env: Record<string, string> = {}): Promise<Service> => {
    const own = {
      SETTLER: 'facilitator',
      REMOTE_FACILITATOR_URL: facilitator.url,
      REMOTE_FACILITATOR_TOKEN: 'a-token',
      RELAYER_PRIVATE_KEY: '',
      SETTLE_WAIT_MS: '10000',
      RECONCILE_INTERVAL_MS: '200',
      RECEIPT_POLL_MS: '50',
      EXPLORER_URL: 'https://explorer.example',
    };
    const started = await startService(network, { env: { ...own, ...env } });
    await untilReady(started);
    return started;
  };
  beforeAll(async () => {
    facilitator = await startLocalFacilitator(network, 'a-token');
    service = await start();
  });
  afterAll(async () => {
    await service.stop();
    await facilitator.stop();
  });

  test('settles for the stock client without any key of ours, once and exactly', async () => {
    const { address, privateKey } = await newBuyer(network);
    const signer = privateKeyToAccount(bytesToHex(privateKey));
    const client = new x402Client().register('eip155:5042', new ExactEvmScheme(signer)).setSpendControls(spendable());
    const before = await balanceOf(network, address);
    const answer = await wrapFetchWithPayment(fetch, client)(service.origin + PATH);
    expect(answer.status).toBe(200);
    const receipt = JSON.parse(atob(String(answer.headers.get('payment-response'))));
    expect(before - (await balanceOf(network, address))).toBe(BigInt(receipt.amount));
    const { payments } = await lookup(service, receipt.transaction);
    expect(payments).toMatchObject([{ rail: 'usdc', state: 'settled', transaction: receipt.transaction }]);
    expect(payments[0]?.explorerUrl).toBe(`https://explorer.example/tx/${receipt.transaction}`);
    expect(payments[0]?.block).toBeGreaterThan(0);
  });

  test('is named in /readyz, which asks it instead of our relayer’s balance', async () => {
    expect(await readiness(service)).toMatchObject({
      status: 200,
      checks: { facilitator: { ok: true }, settlement: { ok: true } },
    });
  });

  test('that refuses costs nothing; one that never answers leaves the payment unknown until the chain shows it, and then the answer comes', async () => {
    const buyer = await newBuyer(network);
    facilitator.fault('refuses');
    const refused = await present(service.origin, PATH, await buyer.sign(service.origin, PATH));
    expect([refused.status, decoded(refused, 'payment-response').success]).toEqual([402, false]);
    facilitator.fault('hangs after');
    // It alone has a short time-out, which it waits for.
    const hasty = await start({ REMOTE_FACILITATOR_TIMEOUT_MS: '3000' });
    onTestFinished(hasty.stop);
    const payment = await buyer.sign(hasty.origin, PATH);
    const first = await present(hasty.origin, PATH, payment);
    facilitator.fault(null);
    // The money had moved. Either the chain showed it within the wait, or the same payment gets the answer later.
    let answer = first;
    await until('the answer is there', async () => {
      if (answer.status === 503) expect(JSON.parse(answer.body).charged).toBe('unknown');
      if (answer.status !== 200) answer = await present(hasty.origin, PATH, payment);
      return answer.status === 200;
    });
    expect(await balanceOf(network, buyer.address)).toBe(1_000_000n - BigInt(payment.requirement.amount));
  });
});

test('a facilitator that does not settle on our network makes the service unready, and says which', async () => {
  const other = await startGatewayStandIn(1, WALLET);
  const env = { SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: `${other.url}/v1/x402`, RECONCILE_INTERVAL_MS: '100' };
  const service = await startService(network, { env });
  await until(
    'the facilitator was asked',
    async () => !(await readiness(service)).checks.facilitator.detail.includes('not asked'),
  );
  expect(await readiness(service)).toMatchObject({
    status: 503,
    checks: { facilitator: { ok: false, detail: expect.stringMatching(/does not list this network/) } },
  });
  await service.stop();
  await other.stop();
});

describe('the Gateway beside our relayer', () => {
  let gateway: GatewayStandIn;
  let service: Service;
  const start = async (env: Record<string, string> = {}): Promise<Service> => {
    const own = {
      GATEWAY: 'on',
      GATEWAY_URL: gateway.url,
      GATEWAY_WALLET_ADDRESS: WALLET,
      RECONCILE_INTERVAL_MS: '200',
      RECEIPT_POLL_MS: '50',
      EXPLORER_URL: 'https://explorer.example',
    };
    const started = await startService(network, { env: { ...own, ...env } });
    await until('the Gateway is fine', async () => (await readiness(started)).checks.gateway?.detail === undefined);
    return started;
  };
  beforeAll(async () => {
    gateway = await startGatewayStandIn(network.chainId, WALLET);
    service = await start();
  });
  afterAll(async () => {
    await service.stop();
    await gateway.stop();
  });

  async function accepts(): Promise<Requirement[]> {
    return decoded(await service.get(PATH), 'payment-required').accepts as Requirement[];
  }

  /** A payment by a payer with this deposit in the Gateway and nothing on the chain. */
  async function batched(units: bigint, overrides?: Parameters<typeof signForGateway>[3]) {
    const { privateKey, address } = await newBuyer(network, 0n);
    gateway.deposit(address, units);
    const requirement = (await accepts())[1] as Requirement;
    const authorization = signForGateway(privateKey, requirement, WALLET, overrides);
    return { address, requirement, authorization, header: headerOf(payloadOf(authorization, requirement)) };
  }

  test('is a second entry of every challenge, and the plain one still sells', async () => {
    const [plain, second, ...more] = await accepts();
    expect(more).toEqual([]);
    expect(plain?.extra).toMatchObject({ name: 'USDC' });
    expect(second).toEqual({
      ...plain,
      extra: { name: 'GatewayWalletBatched', version: '1', verifyingContract: WALLET },
    });
    const buyer = await newBuyer(network);
    const sold = await present(service.origin, PATH, await buyer.sign(service.origin, PATH));
    expect([sold.status, decoded(sold, 'payment-response').transaction]).toEqual([200, expect.stringMatching(/^0x/)]);
    expect((await readiness(service)).checks.gateway).toEqual({ ok: true });
  });

  test('sells to Circle’s own client, once; its transfer is found by its id, and by its batch when there is one', async () => {
    const { privateKey, address } = await newBuyer(network, 0n);
    const account = privateKeyToAccount(bytesToHex(privateKey));
    const deposit = 2n * priceOf(PATH).units;
    gateway.deposit(address, deposit);
    const signTypedData = (typed: object) => account.signTypedData(typed as never);
    const scheme = new BatchEvmScheme({ address: account.address, signTypedData });
    const client = new x402Client(
      (_version, offered) =>
        offered.find(({ extra }) => extra?.name === 'GatewayWalletBatched') ?? (offered[0] as never),
    )
      .register('eip155:5042', scheme as never)
      .setSpendControls(spendable());
    const pay = wrapFetchWithPayment(fetch, client);
    const answer = await pay(service.origin + PATH);
    expect(answer.status).toBe(200);
    const receipt = JSON.parse(atob(String(answer.headers.get('payment-response'))));
    expect(receipt).toMatchObject({ success: true, payer: address, transaction: expect.stringMatching(UUID) });
    expect(gateway.depositOf(address)).toBe(deposit - BigInt(receipt.amount));
    const sent = await lookup(service, receipt.transaction);
    expect(sent.payments).toMatchObject([{ rail: 'usdc', state: 'settled', transaction: receipt.transaction }]);
    expect(sent.payments[0]).toMatchObject({ block: null, explorerUrl: null });
    const hash = gateway.batch();
    const isBatched = async () => (await lookup(service, receipt.transaction)).payments[0]?.transaction === hash;
    await until('the payment’s batch is known', isBatched);
    const [found] = (await lookup(service, receipt.transaction)).payments;
    expect(found).toMatchObject({ transaction: hash, explorerUrl: `https://explorer.example/tx/${hash}` });
    expect((await lookup(service, hash)).payments).toContainEqual(found);
  });

  const settlesAsked = () => gateway.asked.filter(({ path }) => path === '/v1/x402/settle').length;

  test('refuses before the handler a payment that the Gateway would refuse or has no deposit for, and after the handler one that it refused', async () => {
    const short = await batched(5000n, { validBefore: BigInt(Math.floor(Date.now() / 1000) + 3600) });
    const refused = await present(service.origin, PATH, short);
    expect(decoded(refused, 'payment-required').error).toBe('authorization_validity_too_short');
    const price = BigInt(short.requirement.amount);
    for (const deposit of [0n, price - 1n]) {
      const settles = settlesAsked();
      const poor = await present(service.origin, PATH, await batched(deposit));
      expect([poor.status, decoded(poor, 'payment-required').error]).toEqual([402, 'insufficient_balance']);
      expect([poor.headers['payment-response'], settlesAsked()]).toEqual([undefined, settles]);
    }
    gateway.fault('refuses');
    const payment = await batched(price);
    const unpaid = await present(service.origin, PATH, payment);
    gateway.fault(null);
    expect([unpaid.status, decoded(unpaid, 'payment-response')]).toMatchObject([
      402,
      { success: false, transaction: '' },
    ]);
    expect(gateway.depositOf(payment.address)).toBe(price);
    // The plain entry's extra with a Gateway signature, which is signed for another contract.
    const { authorization } = await batched(5000n);
    const [plain] = await accepts();
    const mixed = headerOf(payloadOf(authorization, plain as Requirement));
    const wrong = await present(service.origin, PATH, { header: mixed });
    expect(decoded(wrong, 'payment-required').error).toBe('invalid_exact_evm_signature');
  });

  test('that does not answer after it took the money leaves the payment unknown, and the same payment gets the answer', async () => {
    // It alone has a short time-out, which it waits for.
    const hasty = await start({ GATEWAY_TIMEOUT_MS: '3000', SETTLE_WAIT_MS: '5000' });
    onTestFinished(hasty.stop);
    const payment = await batched(5000n);
    const ask = async (): Promise<number> => {
      const { status, body } = await present(hasty.origin, PATH, payment);
      expect([200, 502, 503, 409]).toContain(status);
      // At a pause, the short time-out also ends requests before the sale. Then nothing is charged.
      if (status === 502)
        expect([JSON.parse(body).charged, gateway.depositOf(payment.address)]).toEqual([false, 5000n]);
      return status;
    };
    gateway.fault('hangs after');
    let status = 0;
    await until('the money has moved', async () => {
      status = await ask();
      return gateway.depositOf(payment.address) < 5000n;
    });
    gateway.fault(null);
    await until('the answer is there', async () => status === 200 || (await ask()) === 200);
    expect(gateway.depositOf(payment.address)).toBe(5000n - BigInt(payment.requirement.amount));
  });

  test('a payment that a kill -9 left open gets its answer from the next start', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'percall-rails-'));
    const [kept, left] = [await batched(5000n), await batched(5000n)];
    const env = {
      GATEWAY: 'on',
      GATEWAY_URL: gateway.url,
      GATEWAY_WALLET_ADDRESS: WALLET,
      RECONCILE_INTERVAL_MS: '200',
      RECEIPT_POLL_MS: '50',
    };
    const service = await createProcess(network, folder, env);
    await service.start();
    expect((await present(service.origin, PATH, kept)).status).toBe(200);
    gateway.fault('hangs after');
    const broken = present(service.origin, PATH, left).catch(() => null);
    await until('the money has moved', () => gateway.depositOf(left.address) < 5000n);
    await service.kill();
    gateway.fault(null);
    expect((await broken)?.status).not.toBe(200);
    await service.start();
    await until('the answer is there', async () => (await present(service.origin, PATH, left)).status === 200);
    expect((await present(service.origin, PATH, kept)).status).toBe(200);
    for (const { address, requirement } of [kept, left])
      expect(gateway.depositOf(address)).toBe(5000n - BigInt(requirement.amount));
    await service.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test('that does not answer sells nothing over it, charges nothing, and leaves the plain rail as it was', async () => {
    const payment = await batched(5000n);
    const off = await startService(network, {
      env: { GATEWAY: 'on', GATEWAY_URL: 'http://127.0.0.1:9', GATEWAY_WALLET_ADDRESS: WALLET },
    });
    const refused = await present(off.origin, PATH, payment);
    expect([refused.status, JSON.parse(refused.body).charged]).toEqual([503, false]);
    const buyer = await newBuyer(network);
    expect((await present(off.origin, PATH, await buyer.sign(off.origin, PATH))).status).toBe(200);
    await until(
      'the Gateway was asked',
      async () => (await readiness(off)).checks.gateway.detail !== 'no successful probe: not asked yet',
    );
    // A balancer reads the status: the plain rail sells. The member says that this rail does not.
    expect(await readiness(off)).toMatchObject({ status: 200, ready: true, checks: { gateway: { ok: false } } });
    await off.stop();
    expect(gateway.depositOf(payment.address)).toBe(5000n);
  });
});
