import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { x402Client } from '@x402/core/client';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { claimChannels } from '../../../scripts/lib/ledger/ledger-claim.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { createProcess } from '../../support/service/process.ts';
import { NODE_ANSWERS } from '../../support/service/service.ts';
import { inPlaceOfService } from '../../support/service/stopped-service-here.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const CALLS = 3;

let network: EmbeddedNetwork;
let folder: string;
let dataDir: string;
let env: Record<string, string>;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-claim-'));
  dataDir = join(folder, 'data');
  env = { PRICES: 'fees/estimate=0.0005', CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: createAccount().privateKey };
  service = await createProcess(network, dataDir, env);
  await service.start();
});
afterAll(async () => {
  await service?.kill();
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const environment = () => ({ ...embeddedEnvironment(network), ...NODE_ANSWERS, DATA_DIR: dataDir, ...env });

/** Runs the command with the service's environment, in a directory without a .env file. */
const claim = () => runCommand('ledger', ['claim'], { cwd: folder, env: environment() });

/** The command's work, in this process. */
const claimHere = (more: Record<string, string> = {}, options: { isChainStill?: boolean } = {}) =>
  inPlaceOfService(claimChannels, { env: { ...environment(), ...more }, location: { dataDir } }, options);

/** Buys calls over one channel. Returns what they cost, in base units. */
async function buy(): Promise<bigint> {
  await untilChannelsAreOffered(service.origin + PATH);
  const { privateKey } = await newBuyer(network, 10_000_000n);
  const scheme = new BatchSettlementEvmScheme(privateKeyToAccount(bytesToHex(privateKey)));
  const allowed = [{ network: 'eip155:5042' as const, asset: network.usdc }];
  const client = new x402Client().register('eip155:5042', scheme).setSpendControls({ allowedAssets: allowed });
  const pay = wrapFetchWithPayment(fetch, client);
  let cost = 0n;
  for (let at = 0; at < CALLS; at++) {
    const answer = await pay(service.origin + PATH);
    expect(answer.status).toBe(200);
    cost += BigInt(JSON.parse(atob(String(answer.headers.get('payment-response')))).extra.chargedAmount);
  }
  return cost;
}

test('the ledger command refuses to claim beside a running service, and claims what a killed one has left, once', async () => {
  const cost = await buy();
  const before = await balanceOf(network, network.seller);
  await expect(claimHere()).rejects.toThrow(/^a service is running on .* it claims by itself.*stop it first$/);
  await service.kill();

  await expect(claimHere({ CHANNELS: 'off' })).rejects.toThrow('payment channels are off');

  await network.pauseMining();
  const early = await claimHere({}, { isChainStill: true });
  expect([early.done, early.printed]).toEqual([false, 'claimed 0 USDC\nleft unclaimed 0.0015 USDC\n']);
  expect(early.said).toContain('did not end in time');
  await network.resumeMining();

  const done = await claim();
  expect([done.code, done.stdout], done.stderr).toEqual([
    0,
    'claimed 0.0015 USDC\nwritten off 0 USDC\nchannels set aside: 0\nleft unclaimed 0 USDC\n',
  ]);
  expect([cost, (await balanceOf(network, network.seller)) - before]).toEqual([1500n, 1500n]);
  const again = await claimHere();
  expect([again.done, again.printed.split('\n')[0]]).toEqual([true, 'claimed 0 USDC']);
  expect((await balanceOf(network, network.seller)) - before).toBe(1500n);
});
