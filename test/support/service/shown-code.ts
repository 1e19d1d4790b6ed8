import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { type EmbeddedNetwork, type EmbeddedNetworkOptions, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { priceOf } from '../prices.ts';
import { balanceOf } from '../usdc/buyer.ts';
import { CHILD_ENV } from './child-env.ts';
import { startService } from './service.ts';
import { until } from './workers.ts';

/** The project's own directory. */
export const ROOT = join(import.meta.dirname, '../../..');

/** A service to buy from, and a folder in which documented code runs as if a reader had copied it. */
export async function openExamples({
  channels = false,
  ...options
}: Pick<EmbeddedNetworkOptions, 'lightning'> & { channels?: boolean } = {}) {
  const network = await startEmbeddedNetwork(options);
  const env = { ...embeddedEnvironment(network, { channels }), RECONCILE_INTERVAL_MS: '200' };
  const service = await startService(network, channels ? { env } : {});
  // A reader copies code from a service that has been up for a while. Before the first block the fees are 503.
  await until('a block is collected', async () => (await service.get('/v1/fees')).status === 200);
  // Below the project, so that the code finds its packages. `data` is not under version control.
  mkdirSync(join(ROOT, 'data'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'data/examples-'));

  /** Writes code to a file and returns its path. */
  function write(name: string, code: string): string {
    const file = join(folder, name);
    writeFileSync(file, code);
    return file;
  }

  return {
    network,
    service,
    folder,
    write,
    /** Runs TypeScript that buys one call with the network's buyer. Expects the printed hash to be a transfer of the price. */
    expectPurchase: (code: string, env: Record<string, string> = {}): Promise<void> =>
      expectPurchase(network, write('pay.ts', code), env),
    stop: async () => {
      rmSync(folder, { recursive: true, force: true });
      await service.stop();
      await network.stop();
    },
  };
}

export type Examples = Awaited<ReturnType<typeof openExamples>>;

async function expectPurchase(network: EmbeddedNetwork, file: string, env: Record<string, string>): Promise<void> {
  const before = await balanceOf(network, network.seller);
  const all = { ...CHILD_ENV, BUYER_PRIVATE_KEY: network.buyer.privateKey, ...env };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env: all });
  const [hash] = /0x[0-9a-f]{64}/.exec(stdout) ?? [];
  expect(await network.rpc('eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x1' });
  expect((await balanceOf(network, network.seller)) - before).toBe(priceOf('/chain/wallet').units);
}
