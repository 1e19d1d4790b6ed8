import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { channelBuyer } from '../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../support/channels/offered.ts';
import { payFor, presentProof } from '../support/lightning/lightning-buyer.ts';
import { openCoverage } from '../support/service/coverage.ts';
import { ownPort } from '../support/service/own-port.ts';
import { createProcess } from '../support/service/process.ts';
import { type Answer, call } from '../support/service/service.ts';
import { ROOT } from '../support/sources.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';
import { newKey } from '../support/usdc/payments.ts';

/** The most files of src that run for a paid call, its 402 and the background included. A ceiling may only be lowered. */
const CEILINGS = { exact: 70, lightning: 67, voucher: 62 };
/** How far a ceiling may stand above the count: what the background runs in most purchases. */
const SLACK = 8;
/** In ms: the background ends what a purchase began, and a purchase's own work goes on after its answer. */
const [IDLE_MS, AFTER_MS] = [1500, 300];
/** Background work falls into some purchases: what runs in each one counts. More are bought while it is too much. */
const [PURCHASES, MOST_PURCHASES] = [5, 12];

const ROUTE = '/v1/paid/chain/wallet?address=0x3600000000000000000000000000000000000000';
const LIGHTNING_ROUTE = ROUTE.replace('/v1/paid', '/v1/lightning');

let network: EmbeddedNetwork;
let folder: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let coverage: Awaited<ReturnType<typeof openCoverage>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
});
afterAll(() => network?.stop());

// A service of its own for each rail: what a payment leaves to the background would run in the next rail's purchases.
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'percall-path-'));
  const port = await ownPort();
  const env = {
    COLLECTOR: 'off',
    CHANNELS: 'on',
    CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey,
    // Slower than a purchase: otherwise each one would have a look at unknown settlements in it, or half of one.
    RECONCILE_INTERVAL_MS: '10000',
    NODE_OPTIONS: `--inspect=127.0.0.1:${port}`,
  };
  service = await createProcess(network, folder, env, { program: join(ROOT, 'src/server.ts') });
  await service.start();
  coverage = await openCoverage(port);
});
afterEach(async () => {
  coverage?.close();
  await service?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** The files that ran for each of some purchases. */
async function filesOf(buy: () => Promise<Answer>, ceiling: number): Promise<string[]> {
  const buyWell = async (): Promise<void> => {
    const answer = await buy();
    expect(answer.status, answer.body).toBe(200);
  };
  await buyWell();
  let always: string[] = [];
  for (let bought = 0; bought < PURCHASES || (always.length > ceiling && bought < MOST_PURCHASES); bought++) {
    await delay(IDLE_MS);
    await coverage.take();
    await buyWell();
    await delay(AFTER_MS);
    const ran = new Set(await coverage.take());
    always = bought === 0 ? [...ran] : always.filter((file) => ran.has(file));
  }
  return always;
}

/** How many of the files stand in each room, for people. */
function byRoom(files: readonly string[]): string {
  const rooms = new Map<string, number>();
  for (const file of files) {
    const room = file
      .split('/')
      .slice(1, file.startsWith('src/payment/') ? 3 : 2)
      .join('/');
    rooms.set(room, (rooms.get(room) ?? 0) + 1);
  }
  return [...rooms].map(([room, count]) => `${room} ${count}`).join(', ');
}

const PAYMENTS: Record<keyof typeof CEILINGS, () => Promise<() => Promise<Answer>>> = {
  exact: async () => {
    const buyer = await newBuyer(network);
    return async () => present(service.origin, ROUTE, await buyer.sign(service.origin, ROUTE));
  },
  lightning: async () => async () =>
    presentProof(
      service.origin,
      LIGHTNING_ROUTE,
      await payFor(network.lightning!.pay, service.origin, LIGHTNING_ROUTE),
    ),
  voucher: async () => {
    const { privateKey, address } = newKey();
    await network.fundUsdc(address, 5_000_000n);
    const entry = await untilChannelsAreOffered(`${service.origin}${ROUTE}`);
    const buyer = channelBuyer(privateKey, entry);
    let max = BigInt(entry.amount);
    const opened = await present(service.origin, ROUTE, { header: buyer.deposit(2_000_000n, max) });
    expect(opened.status, opened.body).toBe(200);
    return async () => {
      await call(service.origin, ROUTE);
      max += BigInt(entry.amount);
      return present(service.origin, ROUTE, { header: buyer.voucher(max) });
    };
  },
};

test.each(Object.keys(PAYMENTS) as (keyof typeof CEILINGS)[])('one paid call by %s runs few files', async (rail) => {
  const ceiling = CEILINGS[rail];
  const files = await filesOf(await PAYMENTS[rail](), ceiling);
  const rooms = `${rail}: ${files.length} files, at most ${ceiling}: ${byRoom(files)}`;
  process.stdout.write(`${rooms}\n`);
  expect(files.length, rooms).toBeLessThanOrEqual(ceiling);
  expect(files.length, `lower the ceiling. ${rooms}`).toBeGreaterThanOrEqual(ceiling - SLACK);
});
