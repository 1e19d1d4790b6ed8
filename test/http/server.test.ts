import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { holdLedger, markMoved } from '../../src/store/ledger-lock.ts';
import { priceAbove, usdcRoutes } from '../support/prices.ts';
import { CHILD_ENV } from '../support/service/child-env.ts';

/** The build: its start takes a third of the processor time. */
const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

/** A start takes two seconds on an idle machine, and many times that on a busy one. */
const END_MS = 60_000;

/** Runs the process to its end in its own directory, with only this environment. */
async function run(env: Record<string, string>, dotEnv?: string, mode = 0o600) {
  const cwd = await mkdtemp(join(tmpdir(), 'percall-server-'));
  try {
    if (dotEnv) await writeFile(join(cwd, '.env'), dotEnv, { mode });
    const child = spawn(process.execPath, [SERVER], { cwd, env: { ...CHILD_ENV, ...env }, timeout: END_MS });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { code, stdout, stderr };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

describe('the process', () => {
  it('stops with every problem of its configuration named, of .env too, where the environment has precedence, and prints no value', async () => {
    const env = { NETWORK: 'custom', RELAYER_PRIVATE_KEY: '0xsecret' };
    const { code, stderr } = await run(env, 'NETWORK=nowhere\nPORT=many\n');
    expect(code).toBe(1);
    for (const key of [
      'PORT',
      'RELAYER_PRIVATE_KEY',
      'SELLER_ADDRESS is missing',
      'CHAIN_ID is missing',
      'RPC_URLS is missing',
      'USDC_ADDRESS is missing',
    ]) {
      expect(stderr).toContain(key);
    }
    expect(stderr).not.toMatch(/^\W*NETWORK\b/m);
    expect(stderr).not.toContain('0xsecret');
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it('says first who is paid and on which chain, and warns of a key that nobody reads, without its value', async () => {
    const seller = `0x${'5e'.repeat(20)}`;
    const env = { NETWORK: 'arc', SELLER_ADDRESS: seller, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
    // No data can be kept below a file, so this start ends by itself.
    const { code, stdout } = await run(
      { ...env, CHANELS: '0xsecret', DATA_DIR: '.env/data' },
      'LIGHTNING_RECIEVER=lnd\n',
    );
    expect(code).not.toBe(0);
    const lines = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    expect(lines[0]).toMatchObject({
      level: 'info',
      seller,
      network: 'eip155:5042',
      chain: expect.stringContaining('Arc'),
    });
    const warnings = lines.filter(({ level, nearest }) => level === 'warn' && nearest !== undefined);
    expect(warnings.map(({ key, nearest }) => [key, nearest]).sort()).toEqual([
      ['CHANELS', 'CHANNELS'],
      ['LIGHTNING_RECIEVER', 'LIGHTNING_RECEIVER'],
    ]);
    expect(stdout).not.toContain('0xsecret');
  });

  it('stops in the same way, before anything is opened, for prices and routes that the catalogue does not have', async () => {
    const least = {
      NETWORK: 'arc',
      SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
      RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
    };
    const [cheapest] = usdcRoutes();
    const from = priceAbove(String(cheapest?.path));
    const offers = { PRICES: 'chain/walet=0.004', ROUTES_OFF: 'selftest/fail', EXACT_FROM_USD: from.usd };
    const { code, stdout, stderr } = await run({ ...least, ...offers });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('has 3 problem(s)');
    expect(stderr).toContain('PRICES: "chain/walet=0.004"');
    expect(stderr).toContain('ROUTES_OFF: "selftest/fail"');
    const cheaper = usdcRoutes().filter(({ price }) => price.units < from.units);
    expect(stderr).toContain(cheaper.map(({ path, price }) => `${path.slice(1)} (${price.usd})`).join(', '));
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it('does not fall back to play money in production', async () => {
    const { code, stdout, stderr } = await run({ NODE_ENV: 'production' });
    expect(code).toBe(1);
    expect(stderr).toContain('NETWORK is missing');
    expect(stdout).not.toContain('EMBEDDED');
  });

  /** A service that can start, although no chain answers it. */
  const startable = (more: Record<string, string>) => ({
    NETWORK: 'arc',
    SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
    RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
    RPC_URLS: 'http://127.0.0.1:9',
    COLLECTOR: 'off',
    ...more,
  });

  it('names in one line, without a stack, who has its data directory or its port', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'percall-held-'));
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = String(typeof address === 'object' && address ? address.port : 0);
    const env = startable({ DATA_DIR: folder, PORT: port });
    try {
      const held = holdLedger(join(folder, 'ledger.lock'));
      const second = await run(env);
      held.release();
      const taken = await run(env);
      const file = join(folder, 'ledger.lock');
      expect([second.code, second.stderr]).toEqual([
        1,
        `percall does not start: another process serves the ledger beside ${file}: stop it first\n`,
      ]);
      expect([taken.code, taken.stderr]).toEqual([
        1,
        `percall does not start: 127.0.0.1:${port} (EADDRINUSE): another program listens there: ` +
          'stop it, or set another PORT\n',
      ]);
      expect(second.stdout + taken.stdout).not.toContain('"fatal"');
    } finally {
      other.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('does not start on a ledger that was copied to a database, and says how to go on', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'percall-moved-'));
    const file = join(folder, 'ledger.db');
    markMoved(file, 'db.example:5432/ledger', Date.UTC(2026, 10, 29));
    try {
      const { code, stdout, stderr } = await run(startable({ DATA_DIR: folder }));
      expect([code, stderr]).toEqual([
        1,
        `percall does not start: ${file} was copied to db.example:5432/ledger at 2026-11-29T00:00:00.000Z, ` +
          `and would sell again what is sold there: set LEDGER_URL, or, to serve from the file, stop every service ` +
          `on that database and delete ${file}.moved\n`,
      ]);
      expect(stdout).not.toContain('"fatal"');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('warns of a .env that other users may read, and of no other', async () => {
    const warning = 'other users of this machine may read .env';
    expect((await run({ NODE_ENV: 'production' }, 'PORT=4021\n', 0o644)).stdout).toContain(warning);
    expect((await run({ NODE_ENV: 'production' }, 'PORT=4021\n', 0o600)).stdout).not.toContain(warning);
  });
});
