import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { openChannels } from '../../../src/payment/channels/rail.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { createFailures, createUnknownPayments } from '../../../src/payment/limits.ts';
import type { UsdcRail } from '../../../src/payment/rail.ts';
import { openRelayer } from '../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import { createSales } from '../../../src/payment/sale.ts';
import type { Found, Relayer } from '../../../src/payment/settler.ts';
import { type ChainCheck, createContractBudget } from '../../../src/payment/usdc/checks.ts';
import type { Evidence } from '../../../src/payment/usdc/evidence.ts';
import { settleRequest } from '../../../src/payment/usdc/facilitator.ts';
import { gatewayExtra, gatewayInfo, openGatewayRail } from '../../../src/payment/usdc/gateway.ts';
import { NOTHING_SPENT } from '../../../src/store/ports/stores.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import { openSettling } from '../../../src/wiring/payments.ts';
import { contractsOf, openRails, RAILS, type RailKit, railNames } from '../../../src/wiring/rails.ts';
import { openClient } from '../../support/chain/client.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';
import { quiet } from '../../support/quiet.ts';
import { type Answered, type Asked, startStandIn } from '../../support/upstream/http-stand-in.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';
import { newKey, plainRequirement, USDC } from '../../support/usdc/payments.ts';
import { randomIntent } from '../../support/usdc/token-node.ts';

const seller = newKey();
const WALLET = `0x${'77'.repeat(20)}` as const;
const requirement = plainRequirement(seller.address);
const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: seller.address, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
const TIMES = { RECEIPT_POLL_MS: '10', SETTLE_WAIT_MS: '100' };
/** A chain whose provider refuses every connection: these tests need none. */
const NO_CHAIN = openClient({ rpcUrls: ['http://127.0.0.1:1'], chainId: 5042, timeoutMs: 1000 });
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
    expect(loadConfig(MINIMUM).rails).toEqual({ remote: null, gateway: null, channels: null, exactFrom: 0n });
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
        SETTLER: 'facilitator',
        REMOTE_FACILITATOR_MODE: 'circle',
        REMOTE_FACILITATOR_TOKEN: 'k',
        REMOTE_FACILITATOR_SELLER_KEY: `0x${'2'.repeat(64)}`,
      },
      /exactly one of them/,
    ],
    [
      {
        SETTLER: 'facilitator',
        REMOTE_FACILITATOR_URL: 'http://127.0.0.1:1',
        REMOTE_FACILITATOR_SELLER_KEY: `0x${'2'.repeat(64)}`,
      },
      /^REMOTE_FACILITATOR_SELLER_KEY is set/,
    ],
    [{ GATEWAY_TOKEN: 'a b' }, /^GATEWAY_TOKEN: a token without spaces/],
  ])('%j is reported as a problem of the configuration', (env, problem) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(problem)]);
  });
});

describe('the rails', () => {
  let gateway: GatewayStandIn;
  let facilitator: Awaited<ReturnType<typeof startStandIn>>;
  let kinds: unknown = [];
  let signers: unknown = {};
  let answer: (asked: Asked) => Promise<Answered>;
  beforeEach(() => {
    answer = async () => ({ status: 404, json: {} });
    [shut, tried, signers] = [null, 0, {}];
  });
  beforeAll(async () => {
    gateway = await startGatewayStandIn(5042, WALLET);
    facilitator = await startStandIn(async (asked: Asked) =>
      asked.path === '/supported' ? { json: { kinds, signers, extensions: [] } } : answer(asked),
    );
  });
  afterAll(async () => {
    await NO_CHAIN.close();
    await gateway.stop();
    await facilitator.stop();
  });

  /** Why the token lets nothing through, and how often it was tried. */
  let shut: string | null = null;
  let tried = 0;
  const reads: string[] = [];
  const token = {
    check: async () => {
      tried += 1;
      return shut === null;
    },
    refusal: () => shut,
    refresh: async () => {},
  };
  const evidence = { lookup: async (): Promise<Found> => ({ kind: 'open' }) };
  const check = { read: async () => ({ used: reads.push('read') > 0, balance: 0n, hasCode: false, block: 0 }) };
  const transfers = {
    due: async () => [],
    note: async () => {},
    get: async () => null,
    batchOf: async () => null,
    paymentsIn: async () => [],
  };
  const noteBroadcast = async (entries: { id: string }[]) => new Set(entries.map(({ id }) => id));
  const WELL = { unavailable: () => null, cannotSend: () => null, refuses: () => null, refusesCode: () => null };

  async function open(env: Record<string, string>) {
    const config = loadConfig({ ...MINIMUM, ...TIMES, ...env });
    const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
    const outgoing = { upstreams, userAgent: 'percall/test' };
    const folder = mkdtempSync(join(tmpdir(), 'open-rails-'));
    const db = openTestLedger(join(folder, 'ledger.db'));
    const { payments: store, ...stores } = storesOf(db);
    const limits = { storeBytes: 1e9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    const ledger = createLedger({ store, clock: systemClock, bootId: 'boot', ...limits });
    const spending = { add: async () => {}, spentOn: async () => NOTHING_SPENT };
    const { relayerPrivateKey: key } = config;
    const failures = createFailures(config.failureLimits, systemClock);
    const unknown = createUnknownPayments({ ledger, limits: config.unknownLimits, clock: systemClock });
    const nothing = { settle: async () => null, resume: async () => null };
    const network = config.network.caip2;
    const parts = {
      ...stores,
      config,
      sales: createSales({ ledger, settling: nothing, failures, unknown, clock: systemClock, network, log: quiet }),
      chain: NO_CHAIN,
      wallet: key && createWallet(key, 5042),
      ledger,
      spending,
      transfers,
      outgoing,
      // Of these the rails use what is given here, and nothing else.
      evidence: evidence as unknown as Evidence,
      check: check as unknown as ChainCheck,
      token,
      clock: systemClock,
      log: quiet,
      balanceContracts: contractsOf(config, 'takesFromBalance'),
      contracts: createContractBudget(systemClock),
    } satisfies RailKit;
    const rails = openRails(parts, () => WELL);
    const relayer = (): Relayer => {
      if (!parts.wallet) throw new Error('this test has no relayer');
      return openRelayer({ ...parts, wallet: parts.wallet, incomeToday: async () => 0n, noteBroadcast });
    };
    const [direct, batched] = rails.map((rail) => rail.openSettler({ noteBroadcast, relayer }));
    if (!direct) throw new Error('no rail');
    const settlings: ReturnType<typeof openSettling>[] = [];
    const settling = () => {
      const opened = openSettling({ ...parts, rails }, { settledBy: { kind: 'local' } });
      settlings.push(opened);
      return opened;
    };
    return {
      parts,
      rails,
      ledger,
      direct,
      gateway: batched ?? null,
      settling,
      /** What a round of maintenance finds of the remote services. */
      probe: async () => {
        const fresh = settling();
        await fresh.refresh().catch(() => {});
        return fresh.probes();
      },
      close: async () => {
        await Promise.all([direct.stop(), batched?.stop(), ...settlings.map((one) => one.stop())]);
        await upstreams.close();
        await store.close();
        rmSync(folder, { recursive: true });
      },
    };
  }

  const facilitated = () => ({ SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: facilitator.url });
  const withGateway = () => ({ GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: WALLET });

  test('are the plain one alone by default, settled by our relayer, and nothing is probed', async () => {
    const { rails, direct, probe, close } = await open({});
    expect(rails.map(({ info }) => info.name)).toEqual(['usdc-exact']);
    expect([direct.probe, await probe()]).toEqual([undefined, {}]);
    await close();
  });

  test('do not open without a relayer’s key where no facilitator settles', async () => {
    const { parts, close } = await open({});
    const keyless = { ...parts, wallet: null };
    const rails = openRails(keyless, () => WELL);
    const openAll = () => openSettling({ ...keyless, rails }, { settledBy: { kind: 'local' } });
    expect(openAll).toThrow('RELAYER_PRIVATE_KEY is missing');
    await close();
  });

  test('do not open where a row would name two of them, or none: the order to pay would go to the wrong one', async () => {
    const { parts, close } = await open({});
    const { info, open: openIt } = RAILS[0];
    const again = { info: { ...info, name: 'another' }, open: openIt };
    const nameless = { info: { ...info, contract: () => null }, open: openIt };
    for (const list of [[RAILS[0], again], [nameless]] as const)
      expect(() => openRails(parts, () => WELL, list as never)).toThrow('has no contract of its own');
    await close();
  });

  test('share one relayer in a process, which is loaded and stopped with them', async () => {
    const { parts, rails, close } = await open({});
    const [plain] = rails;
    if (!plain) throw new Error('no rail');
    const given: Relayer[] = [];
    const watched: UsdcRail = {
      ...plain,
      openSettler: (context) => {
        given.push(context.relayer(plain.info.name));
        return plain.openSettler(context);
      },
    };
    let loads = 0;
    const spending = {
      ...parts.spending,
      spentOn: async () => {
        loads += 1;
        return NOTHING_SPENT;
      },
    };
    const settling = openSettling({ ...parts, spending, rails: [watched, watched] }, { settledBy: { kind: 'local' } });
    await settling.start(() => {});
    expect([given.length, given[0] === given[1], loads]).toEqual([2, true, 1]);
    expect(given[0]?.unavailable()).toBeNull();
    await settling.stop();
    expect(given[0]?.unavailable()).toBe('the service is stopping');
    await close();
  });

  test('may spend on gas what came in over the relayer today, and not what the Gateway brought', async () => {
    const spending = {
      add: async () => {},
      spentOn: async () => ({ ...NOTHING_SPENT, wei: 55n * 10n ** 17n }),
    };
    const answers: (string | null)[] = [];
    for (const contract of [WALLET, USDC]) {
      const { parts, rails, ledger, close } = await open(withGateway());
      const amount = 600_000n;
      const id = await ledger.reserve(sale('n', { contract: hexToBytes(contract), amount }), false);
      await ledger.storeIntent(String(id), storedIntent());
      await ledger.settled(String(id), Buffer.alloc(32, 1), 9, amount);
      const settling = openSettling({ ...parts, spending, rails }, { settledBy: { kind: 'local' } });
      await settling.start(() => {});
      answers.push(settling.status('usdc-exact').unavailable());
      await settling.stop();
      await close();
    }
    expect(answers).toEqual(['the day’s gas budget is used up', null]);
  });

  test('open no relayer where a facilitator settles, so that none needs a key', async () => {
    const { parts, rails, close } = await open(facilitated());
    const settling = openSettling({ ...parts, wallet: null, rails }, { settledBy: { kind: 'local' } });
    await settling.start(() => {});
    await settling.stop();
    await close();
  });

  test('are distinguished by the contract that the payer signed for, and a row of a rail that is off stays as it is', async () => {
    const on = await open({ ...facilitated(), ...withGateway() });
    const off = await open(facilitated());
    expect(on.rails.map(({ contract }) => bytesToHex(contract))).toEqual([USDC, WALLET]);
    const asked: string[] = [];
    const refuse = { success: false, errorReason: 'insufficient_funds', transaction: '', network: 'eip155:5042' };
    answer = async ({ path }) => {
      asked.push(path);
      return { json: refuse };
    };
    /** How a stored row of the Gateway's stands after its settlement was tried. */
    const settled = async ({ ledger, settling }: Awaited<ReturnType<typeof open>>) => {
      const id = await ledger.reserve(sale('of the Gateway', { contract: hexToBytes(WALLET) }), false, () => {});
      await ledger.storeIntent(id ?? '', storedIntent());
      const row = await ledger.get(id ?? '');
      return (row && (await settling().resume(row)))?.state;
    };
    const before = gateway.asked.length;
    expect(await settled(off)).toBe('unknown');
    expect([gateway.asked.length, asked]).toEqual([before, []]);
    await settled(on);
    // The buyer waits for SETTLE_WAIT_MS alone. The Gateway may hear of the payment later.
    await expect.poll(() => gateway.asked.length).toBeGreaterThan(before);
    expect(asked).toEqual([]);
    await Promise.all([on.close(), off.close()]);
  });

  test('make the service unready by the facilitator alone: the Gateway is a further way to pay', async () => {
    const [all, plain] = [await open({ ...facilitated(), ...withGateway() }), await open({})];
    const services = ({ rails, parts }: typeof all) => rails.map(({ info }) => info.service(parts.config.rails));
    expect(services(all)).toEqual([
      { name: 'facilitator', isVital: true },
      { name: 'gateway', isVital: false },
    ]);
    expect(services(plain)).toEqual([null]);
    await Promise.all([all.close(), plain.close()]);
  });

  test('recognise a payment by the entry of the 402 that it names; what no other one recognises is for the first', async () => {
    const withChannels = { CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: `0x${'3'.repeat(64)}` };
    const { rails, parts, close } = await open({ ...withGateway(), ...withChannels });
    const named = rails.map(({ info }) => ({ ...info.requirement(parts.config.rails)(requirement) }));
    expect(rails.map(({ recognises }) => named.map((entry) => recognises(entry)))).toEqual([
      [true, true, true],
      [false, true, false],
      [false, false, true],
    ]);
    expect(rails.slice(1).map(({ recognises }) => recognises({ extra: null }))).toEqual([false, false]);
    await close();
  });

  test('have neither the Gateway’s rail, nor its entry, nor a name for its rows while it is off', async () => {
    const [on, off] = [await open(withGateway()), await open({})];
    const nameOf = ({ parts }: typeof on) => railNames(parts.config).railOf(hexToBytes(WALLET));
    expect([nameOf(on), nameOf(off)]).toEqual(['usdc-gateway', null]);
    expect(gatewayInfo.requirement(on.parts.config.rails)(requirement).extra).toEqual(gatewayExtra(WALLET));
    expect(() => gatewayInfo.requirement(off.parts.config.rails)).toThrow('the Gateway is off');
    expect(() => openGatewayRail(off.parts, WELL)).toThrow('the Gateway is off');
    await Promise.all([on.close(), off.close()]);
  });

  test('have no channels while those are off', async () => {
    const { parts, close } = await open({});
    expect(() => openChannels(parts, WELL)).toThrow('payment channels are off');
    await close();
  });

  test('are well when /supported lists what we sell for, and say why where it does not', async () => {
    const { probe, close } = await open({ ...facilitated(), ...withGateway() });
    const exact = { x402Version: 2, scheme: 'exact', network: 'eip155:5042' };
    kinds = [exact];
    expect(await probe()).toEqual({ facilitator: { ok: true }, gateway: { ok: true } });
    kinds = [{ ...exact, network: 'eip155:5043' }, exact];
    expect((await probe()).facilitator).toEqual({ ok: true });
    const elsewhere = [
      { ...exact, x402Version: 1 },
      { ...exact, network: 'eip155:1' },
      { ...exact, scheme: 'upto' },
      { ...exact, extra: { name: 'GatewayWalletBatched' } },
    ];
    for (const kind of elsewhere) {
      kinds = [kind];
      expect((await probe()).facilitator).toEqual({ ok: false, detail: expect.stringMatching(/does not list/) });
    }
    kinds = 'none';
    expect((await probe()).facilitator?.ok).toBe(false);
    await close();
    const wrong = await open({ ...withGateway(), GATEWAY_WALLET_ADDRESS: `0x${'78'.repeat(20)}` });
    expect(await wrong.probe()).toEqual({ gateway: { ok: false, detail: expect.any(String) } });
    await wrong.close();
    const away = await open({ GATEWAY: 'on', GATEWAY_URL: 'http://127.0.0.1:1', GATEWAY_WALLET_ADDRESS: WALLET });
    expect((await away.probe()).gateway?.ok).toBe(false);
    await away.close();
  });

  test.each<[string, unknown, string | undefined]>([
    ['for this network', { 'eip155:5042': [`0x${'AB'.repeat(20)}`] }, `0x${'ab'.repeat(20)}`],
    ['for all networks of its kind', { 'eip155:*': [`0x${'cd'.repeat(20)}`] }, `0x${'cd'.repeat(20)}`],
    [
      'for both',
      { 'eip155:*': [`0x${'cd'.repeat(20)}`], 'eip155:5042': [`0x${'ab'.repeat(20)}`] },
      `0x${'ab'.repeat(20)}`,
    ],
    ['after one that is no address', { 'eip155:5042': ['solana', `0x${'ab'.repeat(20)}`] }, `0x${'ab'.repeat(20)}`],
    [
      'for other networks only',
      { 'eip155:1': [`0x${'ab'.repeat(20)}`], 'solana:*': [`0x${'ab'.repeat(20)}`] },
      undefined,
    ],
    ['nowhere', {}, undefined],
    ['of an empty list', { 'eip155:5042': [] }, undefined],
  ])('report the sender of a facilitator’s settlements when /supported names a signer %s', async (_, got, sender) => {
    const { probe, close } = await open(facilitated());
    kinds = [{ x402Version: 2, scheme: 'exact', network: 'eip155:5042' }];
    signers = got;
    expect(await probe()).toEqual({ facilitator: { ok: true, ...(sender && { sender }) } });
    await close();
  });

  test('report no sender for a service that does not settle on this network', async () => {
    const { probe, close } = await open(facilitated());
    kinds = [];
    signers = { 'eip155:5042': [`0x${'ab'.repeat(20)}`] };
    expect(await probe()).toEqual({ facilitator: { ok: false, detail: expect.any(String) } });
    await close();
  });

  test('sell nothing over a facilitator while the token is paused, and go on selling over the Gateway', async () => {
    const { direct, gateway: batched, close } = await open({ ...facilitated(), ...withGateway() });
    expect([direct.unavailable(), batched?.unavailable()]).toEqual([null, null]);
    shut = 'the token is paused';
    expect([direct.unavailable(), batched?.unavailable()]).toEqual([shut, null]);
    await close();
    // What the queue itself has to say comes first.
    expect(direct.unavailable()).toMatch(/stopping/);
  });

  test('separate another ledger’s payments from their own only on the Gateway', async () => {
    const { direct, gateway: batched, close } = await open({ ...facilitated(), ...withGateway() });
    expect([direct.ownOnly, batched?.ownOnly]).toEqual([false, true]);
    const own = await open({});
    expect(own.direct.ownOnly).toBe(false);
    await Promise.all([close(), own.close()]);
  });

  test('test the token when a facilitator’s settlement of a plain account moves nothing', async () => {
    const { direct, close } = await open(facilitated());
    const unsent = { transaction: '', network: 'eip155:5042' };
    answer = async () => ({ json: { success: false, errorReason: 'invalid_exact_evm_transaction_failed', ...unsent } });
    await Promise.all(direct.settle([randomIntent({ hasCode: true })]));
    expect(tried).toBe(0);
    await Promise.all(direct.settle([randomIntent()]));
    expect(tried).toBe(1);
    await close();
  });

  test('end a Gateway payment that was used before it was handed over, without a request to settle it', async () => {
    const { gateway: batched, close } = await open(withGateway());
    const { privateKey, address } = newKey();
    gateway.deposit(address, 5000n);
    const used = signForGateway(privateKey, requirement, WALLET);
    const body = settleRequest(used, {
      network: 'eip155:5042',
      usdc: USDC,
      extra: gatewayExtra(WALLET),
      publicOrigin: 'https://b.test',
    });
    const post = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, x402Version: 2 }),
    };
    expect(await (await fetch(`${gateway.url}/v1/x402/settle`, post)).json()).toMatchObject({ success: true });
    const settles = () => gateway.asked.filter(({ path }) => path === '/v1/x402/settle').length;
    const before = settles();
    const outcomes = batched?.settle([randomIntent({ authorization: used })]) ?? [];
    expect(await Promise.all(outcomes)).toEqual([{ kind: 'failed', reason: 'payment_already_used' }]);
    expect(settles()).toBe(before);
    await close();
  });

  test('ask an x402 facilitator as x402 says, and Circle’s with an identifier for each sale and one way to sign in', async () => {
    const circle = { ...facilitated(), REMOTE_FACILITATOR_MODE: 'circle' };
    const asKey = { REMOTE_FACILITATOR_SELLER_KEY: bytesToHex(seller.privateKey) };
    const asked: Asked[] = [];
    answer = async (one) => {
      asked.push(one);
      return { json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: 'eip155:5042' } };
    };
    const intent = randomIntent();
    const shown: unknown[] = [];
    const sources: unknown[] = [];
    for (const env of [facilitated(), { ...circle, REMOTE_FACILITATOR_TOKEN: 'k' }, { ...circle, ...asKey }]) {
      const { direct, parts, close } = await open(env);
      expect(await Promise.all(direct.settle([intent]))).toMatchObject([{ kind: 'failed' }]);
      sources.push(parts.outgoing.upstreams.outcomes().map(({ name }) => name));
      await close();
    }
    for (const { path, headers, body } of asked)
      shown.push([
        path,
        headers['user-agent'],
        headers.authorization,
        typeof headers['facilitator-seller-proof'],
        body.paymentPayload.extensions?.['payment-identifier']?.info.id,
      ]);
    const id = `percall-${intent.id}`;
    expect(shown).toEqual([
      ['/settle', 'percall/test', undefined, 'undefined', undefined],
      ['/settle', 'percall/test', 'Bearer k', 'undefined', id],
      ['/settle', 'percall/test', undefined, 'string', id],
    ]);
    // Circle's is shown among the sources.
    expect(sources).toEqual([[], ['facilitator'], ['facilitator']]);
  });

  test('accept a seller key for Circle’s facilitator only when it is the key of SELLER_ADDRESS', async () => {
    const trial = (key: Uint8Array) => ({
      ...facilitated(),
      REMOTE_FACILITATOR_MODE: 'circle',
      REMOTE_FACILITATOR_SELLER_KEY: bytesToHex(key),
    });
    await expect(open(trial(newKey().privateKey))).rejects.toThrow(/is not the key of SELLER_ADDRESS/);
    const { direct, close } = await open(trial(seller.privateKey));
    expect(direct.unavailable()).toBeNull();
    await close();
  });
});
