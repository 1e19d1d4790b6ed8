import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import type { Verdict } from '../../../src/payment/usdc/evidence.ts';
import { createGatewayRail } from '../../../src/payment/usdc/gateway-rail.ts';
import { openGateway } from '../../../src/payment/usdc/open-gateway.ts';
import { createRails } from '../../../src/payment/usdc/rails.ts';
import type { Settler } from '../../../src/payment/usdc/settler.ts';
import { createUpstreams } from '../../../src/upstream/http.ts';
import { signForGateway } from '../../support/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../support/gateway-stand-in.ts';
import { type Asked, startStandIn } from '../../support/http-stand-in.ts';
import { newKey, signAuthorization, USDC } from '../../support/payments.ts';

const seller = newKey();
const WALLET = `0x${'77'.repeat(20)}` as const;
const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: seller.address, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
const problemsOf = (env: Record<string, string>): readonly string[] => {
  try {
    loadConfig({ ...MINIMUM, ...env });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe('the configuration of the rails', () => {
  test('is our own relayer and no Gateway unless it says otherwise', () => {
    expect(loadConfig(MINIMUM).rails).toEqual({ remote: null, gateway: null });
  });

  test('knows Circle’s services for Arc and its test network, and asks a custom network for what it cannot know', () => {
    const circle = { SETTLER: 'facilitator', REMOTE_FACILITATOR_MODE: 'circle', REMOTE_FACILITATOR_TOKEN: 'k' };
    const { remote, gateway } = loadConfig({ ...MINIMUM, ...circle, GATEWAY: 'on' }).rails;
    expect(remote).toMatchObject({ mode: 'circle', url: 'https://api.circle.com/v1/facilitator/x402', token: 'k' });
    expect(gateway).toMatchObject({
      url: 'https://gateway-api.circle.com',
      wallet: '0x77777777dcc4d5a8b6e418fd04d8997ef11000ee',
      token: null,
    });
    const custom = { NETWORK: 'custom', CHAIN_ID: '1', RPC_URLS: 'http://127.0.0.1:1', USDC_ADDRESS: USDC };
    expect(problemsOf({ ...custom, ...circle, GATEWAY: 'on' })).toEqual([
      expect.stringMatching(/^REMOTE_FACILITATOR_URL is missing/),
      expect.stringMatching(/^GATEWAY_URL is missing/),
      expect.stringMatching(/^GATEWAY_WALLET_ADDRESS is missing/),
    ]);
  });

  test.each([
    [{ SETTLER: 'facilitator' }, /^REMOTE_FACILITATOR_URL is missing/],
    [{ SETTLER: 'somebody' }, /^SETTLER: relayer or facilitator/],
    [{ SETTLER: 'facilitator', REMOTE_FACILITATOR_MODE: 'circle' }, /exactly one of them/],
    [
      {
        ...{ SETTLER: 'facilitator', REMOTE_FACILITATOR_MODE: 'circle', REMOTE_FACILITATOR_TOKEN: 'k' },
        REMOTE_FACILITATOR_SELLER_KEY: `0x${'2'.repeat(64)}`,
      },
      /exactly one of them/,
    ],
    [
      {
        ...{ SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: 'http://127.0.0.1:1' },
        REMOTE_FACILITATOR_SELLER_KEY: `0x${'2'.repeat(64)}`,
      },
      /^REMOTE_FACILITATOR_SELLER_KEY is set/,
    ],
    [{ GATEWAY_TOKEN: 'a b' }, /^GATEWAY_TOKEN: a token without spaces/],
  ])('%j is told as a problem', (env, problem) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(problem)]);
  });
});

describe('the rails', () => {
  let gateway: GatewayStandIn;
  let facilitator: Awaited<ReturnType<typeof startStandIn>>;
  let kinds: unknown = [];
  beforeAll(async () => {
    gateway = await startGatewayStandIn(5042, WALLET);
    facilitator = await startStandIn(async ({ path }: Asked) =>
      path === '/supported' ? { json: { kinds } } : { status: 404, json: {} },
    );
  });
  afterAll(async () => {
    await gateway.stop();
    await facilitator.stop();
  });

  const relayer: Settler = { settle: () => [], unavailable: () => 'the relayer itself', stop: async () => {} };
  const evidence = { lookup: async (): Promise<Verdict> => ({ kind: 'open' }) };
  const nowhere = { due: async () => [], note: async () => {}, batchOf: async () => null, paymentsIn: async () => [] };

  async function open(env: Record<string, string>) {
    const { rails: config, network } = loadConfig({ ...MINIMUM, ...env });
    const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
    const opened = { network, publicOrigin: 'https://a.test', upstreams, clock: systemClock };
    const gateway = config.gateway && openGateway(config.gateway, opened);
    const rails = createRails({
      ...{ remote: config.remote, gateway, network, seller: seller.address, evidence, upstreams, transfers: nowhere },
      ...{ publicOrigin: 'https://a.test', userAgent: 'percall/test', relayer: () => relayer, clock: systemClock },
      noteBroadcast: async () => new Set(),
      ...{ pollMs: 10, waitMs: 100, log: { info: () => {}, warn: () => {}, error: () => {} } },
    });
    const close = async () => {
      await rails.stop();
      await upstreams.close();
    };
    return { rails, gateway: gateway && createGatewayRail(gateway, { unavailable: () => null }), close };
  }

  const remote = () => ({ SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: facilitator.url });
  const batched = () => ({ GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: WALLET });

  test('are the relayer alone by default, and nothing is probed', async () => {
    const { rails, close } = await open({});
    expect(rails.direct.settler.unavailable()).toBe('the relayer itself');
    expect([rails.gateway, await rails.probe()]).toEqual([null, {}]);
    await close();
  });

  test('are told apart by the contract that was signed for; a row of a rail that is off belongs to none', async () => {
    const on = await open({ ...remote(), ...batched() });
    const off = await open({});
    expect(on.rails.of(hexToBytes(USDC))).toBe(on.rails.direct);
    expect(on.rails.of(hexToBytes(WALLET))).toBe(on.rails.gateway);
    expect(on.rails.direct.settler.unavailable()).toBeNull();
    expect(off.rails.of(hexToBytes(WALLET))).toBeNull();
    await Promise.all([on.close(), off.close()]);
  });

  test('are well when /supported lists what we sell for, and say why where it does not', async () => {
    const { rails, close } = await open({ ...remote(), ...batched() });
    const exact = { x402Version: 2, scheme: 'exact', network: 'eip155:5042' };
    kinds = [exact];
    expect(await rails.probe()).toEqual({ facilitator: { ok: true }, gateway: { ok: true } });
    const elsewhere = [
      { ...exact, x402Version: 1 },
      { ...exact, network: 'eip155:1' },
      { ...exact, scheme: 'upto' },
      { ...exact, extra: { name: 'GatewayWalletBatched' } },
    ];
    for (const kind of elsewhere) {
      kinds = [kind];
      expect((await rails.probe()).facilitator).toEqual({ ok: false, detail: expect.stringMatching(/does not list/) });
    }
    kinds = 'none';
    expect((await rails.probe()).facilitator?.ok).toBe(false);
    await close();
    const wrong = await open({ ...batched(), GATEWAY_WALLET_ADDRESS: `0x${'78'.repeat(20)}` });
    expect(await wrong.rails.probe()).toEqual({ gateway: { ok: false, detail: expect.any(String) } });
    await wrong.close();
    const away = await open({ GATEWAY: 'on', GATEWAY_URL: 'http://127.0.0.1:1', GATEWAY_WALLET_ADDRESS: WALLET });
    expect((await away.rails.probe()).gateway?.ok).toBe(false);
    await away.close();
  });

  test('ask the Gateway before a handler runs, and refuse in its words', async () => {
    const { gateway: rail, close } = await open(batched());
    const requirement = {
      ...{ scheme: 'exact', network: 'eip155:5042', amount: '1000', asset: USDC, payTo: seller.address },
      ...{ maxTimeoutSeconds: 604_900, extra: {} },
    };
    const { privateKey } = newKey();
    const signal = new AbortController().signal;
    const good = signForGateway(privateKey, requirement, WALLET);
    await rail?.checkSignature(good, signal);
    await rail?.verify('id', good, null, signal);
    const plain = signAuthorization(privateKey, requirement);
    await expect(rail?.checkSignature(plain, signal)).rejects.toThrow('invalid_exact_evm_signature');
    await expect(rail?.verify('id', plain, null, signal)).rejects.toThrow('invalid_signature');
    await close();
  });

  test('take the trial’s key only when it is the seller’s', async () => {
    const trial = (key: Uint8Array) => ({
      ...{ ...remote(), REMOTE_FACILITATOR_MODE: 'circle' },
      REMOTE_FACILITATOR_SELLER_KEY: bytesToHex(key),
    });
    await expect(open(trial(newKey().privateKey))).rejects.toThrow(/is not the key of SELLER_ADDRESS/);
    const { rails, close } = await open(trial(seller.privateKey));
    expect(rails.direct.settler.unavailable()).toBeNull();
    await close();
  });
});
