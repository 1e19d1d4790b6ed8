import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openShop, type Shop, type Wallet } from '../../../scripts/clients/shop.ts';
import { runCommand } from '../../support/service/operator-command.ts';

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
async function pay(surface: string, flags: string[]) {
  const wallets = { BUYER_PRIVATE_KEY: wallet.account.privateKey, PAYER_URL: String(shop.network.lightning?.payUrl) };
  const args = [`${shop.origin}${surface}/fees/estimate?gas=${++gas}`, '--discovery', shop.origin, ...flags];
  return runCommand('pay', args, { cwd: folder, env: wallets });
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
});
