import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../src/embedded/network.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Answer, call, type Service, startService } from '../../support/service/service.ts';
import { servedBy, until, usesOf } from '../../support/service/workers.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

// Collecting and copying a chain and starting processes takes long.
const WORKERS = 2;
/** Enough connections for each process to get one. */
const TRIES = 40;
const PAID = '/v1/paid/fees/forecast';

let network: EmbeddedNetwork;
let folder: string;
let collecting: Service;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: true });
  folder = mkdtempSync(join(tmpdir(), 'percall-copy-workers-'));
  collecting = await startService(network, { env: { COLLECTOR_REQUESTS_PER_SECOND: '50' } });
  await copyBeyond(3);
  service = await createProcess(network, join(folder, 'data'), {
    ...{ WORKERS: String(WORKERS), COLLECTOR: 'off', CHAIN_DB_URL: `file://${folder}/chain.db` },
  });
  await service.start();
  await until('every API process serves', async () =>
    /^api_processes 2$/m.test((await call(service.origin, '/metrics')).body),
  );
});
afterAll(async () => {
  await service?.kill();
  await collecting?.stop();
  await network?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const freshnessOf = ({ body }: Answer): { collected: number; head: number; lagBlocks: number } =>
  JSON.parse(body).freshness;

/** Copies the chain's data once its collector is past a block. */
async function copyBeyond(block: number): Promise<void> {
  const isPast = async () => (freshnessOf(await collecting.get('/v1/health')).collected ?? 0) > block;
  await until(`block ${block} is collected`, isPast);
  const args = ['--chain', '--to', folder, '--data-dir', collecting.dataDir];
  expect(await runCommand('backup', args, { cwd: folder, env: {} })).toMatchObject({ code: 0 });
}

/** One answer of each process. */
async function ofEach(make: () => Promise<Answer>): Promise<Answer[]> {
  const answers = new Map<string, Answer>();
  for (let tries = 0; tries < TRIES && answers.size < WORKERS; tries++) {
    const answer = await make();
    answers.set(servedBy(answer), answer);
  }
  expect(answers.size).toBe(WORKERS);
  return [...answers.values()];
}

test('every process serves the same copy, states its age, and takes over the next copy', async () => {
  const first = (await ofEach(() => call(service.origin, '/v1/fees'))).map(freshnessOf);
  const collected = first[0]?.collected ?? 0;
  expect(first.map((freshness) => freshness.collected)).toEqual([collected, collected]);
  expect(collected).toBeGreaterThan(3);
  await copyBeyond(collected + 3);
  await until('both serve the newer copy', async () => {
    const states = (await ofEach(() => call(service.origin, '/v1/fees'))).map(freshnessOf);
    return states.every((freshness) => freshness.collected > collected);
  });
  const upTo = freshnessOf(await collecting.get('/v1/fees')).collected;
  for (const answer of await ofEach(() => call(service.origin, '/v1/activity'))) {
    const { hours } = JSON.parse(answer.body) as { hours: { transactions: number | null }[] };
    expect(hours.some(({ transactions }) => Number(transactions) > 0)).toBe(true);
    const { collected, head, lagBlocks } = freshnessOf(answer);
    expect(collected).toBeLessThanOrEqual(upTo);
    expect(lagBlocks).toBe(head - collected);
  }
});

test('every process sells from the copy, once and with its freshness', async () => {
  const buyer = await newBuyer(network);
  const answers = await ofEach(async () => {
    const payment = await buyer.sign(service.origin, PAID);
    const answer = await present(service.origin, PAID, payment);
    expect([answer.status, await usesOf(network, payment)]).toEqual([200, 1]);
    return answer;
  });
  const free = freshnessOf(await call(service.origin, '/v1/fees'));
  for (const answer of answers) expect(freshnessOf(answer).collected).toBe(free.collected);
});

test("the service reports the collector's state from the copy", async () => {
  const { collected } = freshnessOf(await call(service.origin, '/v1/fees'));
  const ready = await call(service.origin, '/readyz');
  expect([ready.status, JSON.parse(ready.body).checks.collector]).toMatchObject([200, { ok: true, collected }]);
  // The first process reports these figures. It looks for a newer copy at its own time.
  await until('the metrics state the newer copy', async () =>
    new RegExp(`^collector_block ${collected}$`, 'm').test((await call(service.origin, '/metrics')).body),
  );
});
