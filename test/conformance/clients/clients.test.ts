import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { answerOf } from '../../../scripts/clients/client.ts';
import { CLIENTS } from '../../../scripts/clients/clients.ts';
import { KIT_CLIENTS } from '../../../scripts/clients/faremeter-client.ts';
import { judgeClient, type Outcome } from '../../../scripts/clients/judge.ts';
import { GATEWAY_WALLET, openShop, type Shop, type Wallet } from '../../../scripts/clients/shop.ts';
import { documentedClients, documentedRows } from '../../support/clients-table.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { payHere } from '../../support/service/pay-here.ts';
import { programFile } from '../../support/service/programs.ts';

/** One client of each library; the others take as long again. */
const CHEAP = [
  '@x402/fetch',
  'mppx, `evm` with `authorization`',
  'Alby, fetch402',
  '@modelcontextprotocol/sdk with @x402/core',
];
/** test/kits installs and tries the clients that are no dependencies of the project. */
const wanted = CLIENTS.filter(
  (client) => !KIT_CLIENTS.includes(client) && (process.env.SLOW || CHEAP.includes(client.name)),
);

/** The chain, the Lightning node and the Gateway answer, however late. */
const env = { RPC_TIMEOUT_MS: '60000', LIGHTNING_TIMEOUT_MS: '60000', GATEWAY_TIMEOUT_MS: '60000' };

let shop: Shop;
beforeAll(async () => {
  shop = await openShop({ env, port: await ownPort() });
});
afterAll(() => shop?.stop());

describe('the table of clients in docs/clients.md', () => {
  test('has every client of the script', () => {
    for (const { name } of CLIENTS)
      expect(
        documentedClients.filter((line) => line.startsWith(`| ${name}`)),
        name,
      ).toHaveLength(1);
  });

  test.each(wanted.map((client) => [client.name, client] as const))('is true for %s', async (_name, client) => {
    const outcomes: Outcome[] = await judgeClient(client, shop);
    expect(outcomes.filter(({ isLost }) => isLost)).toEqual([]);
    const { rows, documented } = documentedRows(outcomes);
    expect(documented).toEqual(rows);
  });

  test('counts an answer as bought only when the money has moved', async () => {
    const liar = {
      name: 'a client that makes its answer up',
      package: 'none',
      buy: async () => ({ status: 200, headers: new Headers(), body: '{"gas":1}' }),
    };
    const [outcome] = await judgeClient(liar, shop, ['/v1/paid']);
    expect(outcome).toMatchObject({ isBought: false, isLost: false });
  });

  test('shows a payment without evidence as lost, and goes on with the next surface', async () => {
    const spender = {
      name: 'a client that pays two invoices for one answer',
      package: 'none',
      buy: async ({ url, wallet }: Parameters<(typeof CLIENTS)[number]['buy']>[0]) => {
        const bought = async (of: string) => {
          const asked = await fetch(of);
          const line = asked.headers.get('www-authenticate') ?? '';
          const [, macaroon = '', invoice = ''] = /macaroon="([^"]+)", invoice="([^"]+)"/.exec(line) ?? [];
          const { preimage } = await wallet.payInvoice({ invoice });
          return fetch(of, { headers: { authorization: `L402 ${macaroon}:${preimage}` } });
        };
        await bought(`${url}1`);
        return answerOf(await bought(url));
      },
    };
    const outcomes = await judgeClient(spender, shop, ['/v1/lightning', '/v1/paid']);
    expect(outcomes).toMatchObject([
      {
        isBought: false,
        isLost: true,
        text: 'PAID, NO EVIDENCE: a client has paid two invoices for one call',
      },
      { isBought: false, isLost: false },
    ]);
  });

  test('shows a payment that brought no answer as lost', async () => {
    const forgetful = {
      name: 'a client that forgets what it has paid for',
      package: 'none',
      buy: async ({ url, wallet }: Parameters<(typeof CLIENTS)[number]['buy']>[0]) => {
        const asked = await fetch(url);
        const [, invoice = ''] = /invoice="([^"]+)"/.exec(asked.headers.get('www-authenticate') ?? '') ?? [];
        await wallet.payInvoice({ invoice });
        throw new Error('forgotten');
      },
    };
    const [outcome] = await judgeClient(forgetful, shop, ['/v1/lightning']);
    expect(outcome).toMatchObject({ isBought: false, isLost: true, text: 'PAID, NO ANSWER: forgotten' });
  });
});

describe('npm run pay buys from the whole service', () => {
  let wallet: Wallet;
  let folder: string;
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

  /** Buys with the program itself where that is asked for. */
  function pay(surface: string, flags: string[], { asProgram = false } = {}) {
    const { args, env } = commandLine(surface, flags);
    return asProgram ? runCommand('pay', args, { cwd: folder, env }) : payHere(args, { env, folder });
  }

  /** Buys with a standard output that nobody reads any more. */
  async function payForNoReader(surface: string) {
    const { args, env } = commandLine(surface, []);
    const buyer = spawn(process.execPath, [programFile('percall'), 'pay', ...args], {
      cwd: folder,
      env: { ...CHILD_ENV, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    buyer.stdout.destroy();
    let stderr = '';
    buyer.stderr.on('data', (text) => {
      stderr += text;
    });
    const [code] = await once(buyer, 'close');
    return { code, stderr, again: () => runCommand('pay', args, { cwd: folder, env }) };
  }

  test.each([
    ['/v1/paid', 'x402', /paid: +0\.0005 USDC, transaction 0x[0-9a-f]{64}/],
    ['/v1/mpp', 'mpp', /paid: +0\.0005 USDC, transaction 0x[0-9a-f]{64}/],
    ['/v1/lightning', 'x402', /paid: +1 sat by PAYER_URL/],
    ['/v1/lightning', 'mpp', /paid: +1 sat by PAYER_URL/],
    ['/v1/lightning', 'l402', /paid: +1 sat by PAYER_URL/],
  ])('on %s over %s, at the listed price', async (surface, protocol, paid) => {
    const { code, stdout, stderr } = await pay(surface, ['--protocol', protocol], {
      asProgram: surface === '/v1/paid',
    });
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ gas });
    expect(stderr).toMatch(paid);
    expect(stderr).toMatch(/listed: +0\.0005 USD/);
    expect(stderr).not.toContain('without a receipt');
    // Nothing lies beside the record.
    expect(readdirSync(folder)).toEqual(['.percall']);
    const { usdc, gateway } = await wallet.spent();
    expect({ usdc, gateway }).toEqual({ usdc: surface === '/v1/lightning' ? 0n : 500n, gateway: 0n });
  });

  test('from a deposit in the Gateway, for the Gateway’s own contract alone', async () => {
    const { args, env } = commandLine('/v1/paid', ['--gateway']);
    const foreign = await payHere(args, { env, folder });
    expect([foreign.code, foreign.stderr]).toEqual([3, expect.stringContaining("another contract than Circle's")]);
    const { code, stdout, stderr } = await payHere(args, {
      env: { ...env, GATEWAY_WALLET_ADDRESS: GATEWAY_WALLET },
      folder,
    });
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ gas });
    expect(stderr).toMatch(/paid: +0\.0005 USDC, transaction [0-9a-f-]{36}/);
    const { usdc, gateway } = await wallet.spent();
    expect({ usdc, gateway }).toEqual({ usdc: 0n, gateway: 500n });
  });

  test('and names the search as the list, where it lists the route', async () => {
    const { stderr } = await pay('/v1/paid', ['--dry-run']);
    expect(stderr).toContain(`listed:  0.0005 USDC (the price in the search of ${new URL(shop.origin).host})`);
  });

  test.each(['/v1/paid', '/v1/lightning'])(
    'and on %s keeps the answer where it has no reader, and delivers it to the next run without paying again',
    async (surface) => {
      const { code, stderr, again } = await payForNoReader(surface);
      expect([code, stderr]).toEqual([4, expect.stringMatching(/paid: .*EPIPE; it is kept\n$/s)]);
      expect(stderr).not.toContain('Unhandled');
      const { usdc } = await wallet.spent();
      const second = await again();
      expect(JSON.parse(second.stdout), second.stderr).toMatchObject({ gas });
      expect((await wallet.spent()).usdc).toBe(usdc);
    },
  );
});
