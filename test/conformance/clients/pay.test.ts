import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openShop, type Shop, type Wallet } from '../../../scripts/clients/shop.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { programFile } from '../../support/service/programs.ts';

let shop: Shop;
let wallet: Wallet;
let folder: string;
beforeAll(async () => {
  shop = await openShop();
}, 60_000);
afterAll(() => shop?.stop());
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'percall-pay-'));
  wallet = await shop.newWallet();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

let gas = 70_000;
function commandLine(surface: string, flags: string[]) {
  const wallets = { BUYER_PRIVATE_KEY: wallet.account.privateKey, PAYER_URL: String(shop.network.lightning?.payUrl) };
  const args = [`${shop.origin}${surface}/fees/estimate?gas=${++gas}`, '--discovery', shop.origin, ...flags];
  return { args, env: wallets };
}

function pay(surface: string, flags: string[]) {
  const { args, env } = commandLine(surface, flags);
  return runCommand('pay', args, { cwd: folder, env });
}

/** Buys with a standard output that nobody reads any more. */
async function payForNoReader(surface: string) {
  const { args, env } = commandLine(surface, []);
  const buyer = spawn(process.execPath, [programFile('pay'), ...args], {
    ...{ cwd: folder, env: { ...CHILD_ENV, ...env } },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  buyer.stdout.destroy();
  let stderr = '';
  buyer.stderr.on('data', (text) => {
    stderr += text;
  });
  const [code] = await once(buyer, 'close');
  return { code, stderr };
}

describe('npm run pay buys from the whole service', () => {
  test.each([
    ['/v1/paid', 'x402', /paid: +0\.0005 USDC, transaction 0x[0-9a-f]{64}/],
    ['/v1/mpp', 'mpp', /paid: +0\.0005 USDC, transaction 0x[0-9a-f]{64}/],
    ['/v1/lightning', 'x402', /paid: +1 sat by PAYER_URL/],
    ['/v1/lightning', 'mpp', /paid: +1 sat by PAYER_URL/],
    ['/v1/lightning', 'l402', /paid: +1 sat by PAYER_URL/],
  ])(
    'on %s over %s, at the listed price',
    async (surface, protocol, paid) => {
      const { code, stdout, stderr } = await pay(surface, ['--protocol', protocol]);
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ gas });
      expect(stderr).toMatch(paid);
      expect(stderr).toMatch(/listed: +0\.0005 USD/);
      expect(stderr).not.toContain('without a receipt');
      expect(readdirSync(folder)).toEqual([]);
      const { usdc, gateway } = await wallet.spent();
      expect({ usdc, gateway }).toEqual({ usdc: surface === '/v1/lightning' ? 0n : 500n, gateway: 0n });
    },
    30_000,
  );

  test('and names the search as the list, where it lists the route', async () => {
    const { stderr } = await pay('/v1/paid', ['--dry-run']);
    expect(stderr).toContain(`listed:  0.0005 USDC (the price in the search of ${new URL(shop.origin).host})`);
  });

  test.each([
    ['/v1/paid', /paid: +0\.0005 USDC.*\nfailed: write EPIPE\n$/s, 0],
    ['/v1/lightning', /failed: [^\n]*EPIPE.*--proof/s, 1],
  ])(
    'and on %s says that it paid where the answer has no reader, and keeps a proof in sats',
    async (surface, words, proofs) => {
      const { code, stderr } = await payForNoReader(surface);
      expect([code, stderr]).toEqual([1, expect.stringMatching(words)]);
      expect(stderr).not.toContain('Unhandled');
      expect(readdirSync(folder)).toHaveLength(proofs);
    },
  );
});
