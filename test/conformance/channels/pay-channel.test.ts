import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startJsonServer } from '../../../dev/lightning/lnd-rest.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { payHere } from '../../support/service/pay-here.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const PRICE = 500n;
const DEPOSIT = 1_000_000n;

let network: EmbeddedNetwork;
let service: Service;
let folder: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = {
    ...embeddedEnvironment(network, { channels: true }),
    RECONCILE_INTERVAL_MS: '200',
    PRICES: 'fees/estimate=0.0005',
  };
  service = await startService(network, { env });
  await untilChannelsAreOffered(service.origin + PATH);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-channel-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A buyer with its own folder. `pay` runs the command line there, with or without an RPC endpoint: in this process, or as the `program` that a buyer
 * starts.
 */
async function buyer() {
  const { address, privateKey } = await newBuyer(network, 3n * DEPOSIT);
  const asked = (flags: string[], more: Record<string, string>) => ({
    args: [service.origin + PATH, '--channel', ...flags],
    env: { BUYER_PRIVATE_KEY: bytesToHex(privateKey), ...more },
  });
  return {
    pay: (flags: string[] = [], more: Record<string, string> = { RPC_URL: network.rpcUrl }) => {
      const { args, env } = asked(flags, more);
      return payHere(args, { env, folder });
    },
    program: () => {
      const { args, env } = asked([], {});
      return runCommand('pay', args, { cwd: folder, env });
    },
    paid: async () => 3n * DEPOSIT - (await balanceOf(network, address)),
  };
}

const records = () => readdirSync(join(folder, '.percall/channels/client'));

test('the first call deposits, the next one is paid by a voucher, and each says what is left', async () => {
  const { program, paid } = await buyer();
  const first = await program();
  expect(first.code, first.stderr).toBe(0);
  expect(JSON.parse(first.stdout)).toHaveProperty('gas');
  expect(first.stderr).toContain('deposit: 1 USDC into channel 0x');
  expect(first.stderr).toMatch(/paid: +0.0005 USDC with a deposit, transaction 0x[0-9a-f]{64}/);
  expect(first.stderr).toMatch(/left: +0.9995 USDC in channel 0x[0-9a-f]{64}/);
  expect(records()).toHaveLength(1);
  expect(statSync(join(folder, '.percall/channels')).mode & 0o777).toBe(0o700);
  const second = await program();
  expect(second.code, second.stderr).toBe(0);
  expect(second.stderr).toMatch(/paid: +0.0005 USDC by voucher/);
  expect(second.stderr).toMatch(/left: +0.999 USDC in channel/);
  expect(second.stderr).not.toContain('deposit: ');
  expect(await paid()).toBe(DEPOSIT);
});

test('a deposit above the ceiling, and a price above the ceiling, are refused before anything is signed', async () => {
  const { pay, paid } = await buyer();
  const deep = await pay(['--max-deposit', '0.999999']);
  expect(deep.code).toBe(3);
  expect(deep.stderr).toContain(
    'a deposit of 1 USDC is above the ceiling of 0.999999 USDC (--max-deposit); nothing was signed',
  );
  const dear = await pay(['--max-usdc', '0.000499']);
  expect(dear.code).toBe(3);
  expect(dear.stderr).toContain('above the ceiling of 0.000499 USDC');
  const dry = await pay(['--dry-run'], {});
  expect([dry.code, dry.stdout]).toEqual([0, '']);
  expect(dry.stderr).toContain('deposits of 1 USDC and more; without the seller, the payer can withdraw after 24 h');
  expect(await paid()).toBe(0n);
});

test('a refund brings back what is left, and the channel can be used again', async () => {
  const { pay, paid } = await buyer();
  expect((await pay()).code).toBe(0);
  const refund = await pay(['--refund']);
  expect(refund.code, refund.stderr).toBe(0);
  expect(refund.stdout).toBe('');
  expect(refund.stderr).toMatch(/refund: +0.9995 USDC, transaction 0x[0-9a-f]{64}/);
  expect(await paid()).toBe(PRICE);
  const second = await pay();
  expect(second.code, second.stderr).toBe(3);
  expect(second.stderr).toContain('a deposit of 1 USDC after 1 USDC within a day with');
  const again = await pay(['--max-deposit', '2']);
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain('deposit: 1 USDC');
  const soon = await pay(['--refund']);
  expect(soon.code).toBe(1);
  expect(soon.stderr).toContain('status 429: this channel was refunded a moment ago');
});

test('a lost record is read from the chain, and no second deposit is made; without an endpoint the call is refused, with what helps', async () => {
  const { pay, paid } = await buyer();
  expect((await pay()).code).toBe(0);
  expect((await pay()).code).toBe(0);
  rmSync(join(folder, '.percall'), { recursive: true });
  const blind = await pay([], {});
  expect(blind.code, blind.stderr).toBe(5);
  expect(blind.stderr).toContain('status 402: invalid_batch_settlement_evm_cumulative_amount_mismatch');
  expect(blind.stderr).toContain('repeat the command with RPC_URL');
  expect(await paid()).toBe(DEPOSIT);
  // What the refused call has written does no harm.
  const seeing = await pay();
  expect(seeing.code, seeing.stderr).toBe(0);
  expect(seeing.stderr).not.toContain('deposit: ');
  expect(await paid()).toBe(DEPOSIT);
});

test('an endpoint of another chain is refused before anything is signed', async () => {
  const { pay, paid } = await buyer();
  const other = await startJsonServer(async () => ({ status: 200, body: { jsonrpc: '2.0', id: 1, result: '0x1' } }));
  try {
    const { code, stderr } = await pay([], { RPC_URL: other.url });
    expect(code).toBe(3);
    expect(stderr).toContain('RPC_URL is on eip155:1, the offer on eip155:5042; nothing was signed');
    expect(await paid()).toBe(0n);
  } finally {
    await other.stop();
  }
});
