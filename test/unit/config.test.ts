import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { keysOf } from '../../src/config/table.ts';
import { ConfigError, loadConfig, TABLES } from '../../src/config.ts';
import { configProblems } from '../support/service/config-problems.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };

describe('loadConfig', () => {
  it('requires a network, a seller and a relayer, and nothing else', () => {
    expect(configProblems({})).toEqual(
      expect.arrayContaining(['NETWORK is missing', 'SELLER_ADDRESS is missing', 'RELAYER_PRIVATE_KEY is missing']),
    );
    expect(configProblems({})).toHaveLength(3);
    expect(configProblems(MINIMUM)).toEqual([]);
  });

  it('counts empty values as unset', () => {
    expect(configProblems({ ...MINIMUM, PORT: '', METRICS_TOKEN: '', PUBLIC_ORIGIN: '' })).toEqual([]);
    expect(configProblems({ ...MINIMUM, NETWORK: '' })).toEqual(['NETWORK is missing']);
  });

  it('has defaults for Arc', () => {
    const { network, publicOrigin } = loadConfig(MINIMUM);
    expect(network).toMatchObject({
      chainId: 5042,
      caip2: 'eip155:5042',
      usdc: `0x36${'0'.repeat(38)}`,
      segment: 'arc',
    });
    expect(network.rpcUrls.length).toBeGreaterThan(1);
    expect(publicOrigin).toBe('http://127.0.0.1:4021');
    expect(loadConfig({ ...MINIMUM, NETWORK: 'arc-testnet' }).network.caip2).toBe('eip155:5042002');
  });

  it('gives wallets the network’s public RPC URLs or those that are named for them, never the operator’s own', () => {
    const own = { ...MINIMUM, RPC_URLS: 'https://rpc.example/key' };
    const known = loadConfig(own).network;
    expect(known.walletRpcUrls).toContain('https://rpc.mainnet.arc.io');
    expect(known.walletRpcUrls).not.toContain('https://rpc.example/key');
    expect(loadConfig({ ...own, CHAIN_ID: '77' }).network.walletRpcUrls).toEqual([]);
    const named = loadConfig({ ...own, WALLET_RPC_URLS: 'https://public.example' });
    expect(named.network.walletRpcUrls).toEqual(['https://public.example']);
  });

  it('knows where to get USDC on Arc and its test network, and nowhere for play money', () => {
    const urlOf = (more: Record<string, string>) => loadConfig({ ...MINIMUM, ...more }).network.getUsdcUrl;
    expect(urlOf({})).toMatch(/^https:\/\/docs\.arc\.io\//);
    expect(urlOf({ NETWORK: 'arc-testnet' })).toBe('https://faucet.circle.com');
    expect(urlOf({ GET_USDC_URL: 'https://swap.example' })).toBe('https://swap.example');
    expect(urlOf({ PLAY_MONEY: 'on' })).toBeNull();
  });

  it('requires the values of a custom network that it has no defaults for', () => {
    const custom = { ...MINIMUM, NETWORK: 'custom' };
    expect(configProblems(custom).map((problem) => problem.split(' ')[0])).toEqual([
      'CHAIN_ID',
      'RPC_URLS',
      'USDC_ADDRESS',
    ]);
    const full = {
      ...custom,
      CHAIN_ID: '31337',
      RPC_URLS: 'http://127.0.0.1:8545, http://127.0.0.1:8546',
      USDC_ADDRESS: `0x${'AB'.repeat(20)}`,
    };
    expect(loadConfig(full).network).toMatchObject({
      caip2: 'eip155:31337',
      usdc: `0x${'ab'.repeat(20)}`,
      rpcUrls: ['http://127.0.0.1:8545', 'http://127.0.0.1:8546'],
    });
  });

  it('limits open payments and uncharged failures, for a payer and for a client', () => {
    const { maxOpenPayments, failureLimits, unknownLimits } = loadConfig(MINIMUM);
    expect([maxOpenPayments, failureLimits]).toEqual([32, { payer: 20, client: 60, clientSettlements: 3 }]);
    expect(unknownLimits).toEqual({ payer: 4, client: 12 });
    const other = loadConfig({
      ...MINIMUM,
      PAYER_MAX_OPEN: '1',
      PAYER_FAILURES_PER_MINUTE: '2',
      CLIENT_FAILURES_PER_MINUTE: '4',
      CLIENT_FAILED_SETTLEMENTS_PER_DAY: '0',
      PAYER_MAX_UNKNOWN: '1',
      CLIENT_MAX_UNKNOWN: '0',
    });
    expect([other.maxOpenPayments, other.failureLimits]).toEqual([1, { payer: 2, client: 4, clientSettlements: 0 }]);
    expect(other.unknownLimits).toEqual({ payer: 1, client: 0 });
  });

  it('requires a public address in production', () => {
    expect(configProblems({ ...MINIMUM, NODE_ENV: 'production' })).toEqual([
      expect.stringContaining('PUBLIC_ORIGIN is missing'),
    ]);
    const config = loadConfig({ ...MINIMUM, NODE_ENV: 'production', PUBLIC_ORIGIN: 'https://api.example.com/' });
    expect([config.production, config.publicOrigin]).toEqual([true, 'https://api.example.com']);
  });

  it.each([
    ['PORT', '70000'],
    ['PORT', '-1'],
    ['PORT', '0x10'],
    ['HANDLER_TIMEOUT_MS', '0'],
    ['RATE_LIMIT_FREE_PER_MINUTE', 'many'],
    ['TRUSTED_PROXIES', '10.0.0.0/8, proxy'],
    ['RPC_URLS', 'ftp://a.example'],
    ['PUBLIC_ORIGIN', 'api.example.com'],
    ['SELLER_ADDRESS', '0x12'],
    ['RELAYER_PRIVATE_KEY', 'f'.repeat(64)],
    ['METRICS_TOKEN', 'short'],
    ['LOG_LEVEL', 'loud'],
    ['CHAIN_SEGMENT', 'Arc/'],
  ])('refuses %s=%s by name, without repeating the value', (key, value) => {
    const problems = configProblems({ ...MINIMUM, [key]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${key}: `));
    if (value.length > 6) expect(problems[0]).not.toContain(value);
  });

  it('reports all problems at once, in one message', () => {
    const problems = configProblems({ NETWORK: 'mars', PORT: 'x', LOG_LEVEL: 'loud' });
    expect(problems).toHaveLength(5);
    expect(new ConfigError(problems).message).toContain(problems[4] ?? '?');
  });
});

/** A value for each key below *What a seller sets*. */
const SET_BY_A_SELLER = {
  NODE_ENV: 'production',
  NETWORK: 'arc',
  RPC_URLS: 'https://one.example,https://two.example,https://three.example',
  PUBLIC_ORIGIN: 'https://api.example.com',
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
  PRICES: 'chain/wallet=0.004',
  ROUTES_OFF: 'web/check',
  CHANNELS: 'on',
  CHANNELS_AUTHORIZER_KEY: `0x${'2'.repeat(64)}`,
  LIGHTNING_RECEIVER: 'none',
};

describe('.env.example', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const lines = read('.env.example').split('\n');
  const explained = lines.flatMap((line) => /^([A-Z][A-Z0-9_]*)=/.exec(line)?.[1] ?? []);
  const keys = Object.values(TABLES).flatMap(keysOf);

  it('has every key of the configuration once, and no other', () => {
    expect(keys.length).toBeGreaterThan(130);
    expect(new Set(explained).size).toBe(explained.length);
    expect(explained).toEqual(keys.map(({ name }) => name));
  });

  it('explains each in the line above, within 120 columns', () => {
    for (const key of explained) {
      const at = lines.findIndex((line) => line.startsWith(`${key}=`));
      expect([key, lines[at - 1]]).toEqual([key, expect.stringMatching(/^# \S.{2,}/)]);
    }
    expect(lines.filter((line) => line.length > 120)).toEqual([]);
  });

  it('and docs/configuration.md have each key’s sentence, and the form that its error says', () => {
    const example = read('.env.example').replace(/(?<=^# .*)\n# /gm, ' ');
    const rows = read('docs/configuration.md').split('\n');
    for (const { name, sentence, fallback } of keys) {
      const [problem = `${name}: `] = configProblems({ ...SET_BY_A_SELLER, [name]: '\0' });
      const form = problem.startsWith(`${name}: `) ? problem.slice(name.length + 2) : '';
      expect(sentence).toMatch(/^\S.*\S$/);
      expect(example).toContain(`# ${sentence}${form && ` Takes ${form}.`}\n${name}=${fallback}\n`);
      const row = [`\`${name}\``, form, fallback && `\`${fallback}\``, sentence].join(' | ');
      expect(rows).toContain(`| ${row} |`);
    }
  });

  const values = Object.fromEntries(
    lines.flatMap((line) => (/^[A-Z][A-Z0-9_]*=/.test(line) ? [line.split('=', 2)] : [])),
  );

  it('states the defaults that the configuration has', () => {
    expect(loadConfig({ ...values, ...MINIMUM })).toEqual(loadConfig(MINIMUM));
  });

  it('begins with what a seller sets, and says that everything else has a default', () => {
    expect(lines.find((line) => line.startsWith('# ---'))).toMatch(/^# --- What a seller sets -+$/);
    const others = lines.findIndex((line) => line.startsWith('# Everything else has a working default.'));
    const before = explained.filter((key) => lines.findIndex((line) => line.startsWith(`${key}=`)) < others);
    expect(before).toEqual(Object.keys(SET_BY_A_SELLER));
  });

  it('needs no other key to sell, on arc and in production, over channels too', () => {
    expect(loadConfig({ ...values, ...SET_BY_A_SELLER })).toMatchObject({
      production: true,
      publicOrigin: SET_BY_A_SELLER.PUBLIC_ORIGIN,
    });
    for (const key of ['CHANNELS', 'CHANNELS_AUTHORIZER_KEY', 'LIGHTNING_RECEIVER', 'RPC_URLS'])
      expect(configProblems({ ...values, ...SET_BY_A_SELLER, CHANNELS: '', [key]: '' }), key).toEqual([]);
  });
});
