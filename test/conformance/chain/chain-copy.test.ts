import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { ask } from '../../support/ledger/kill-ledger.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { programFile } from '../../support/service/programs.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

// Collecting and copying a chain takes long.
const OLD_SECONDS = 4;

let network: EmbeddedNetwork;
let folder: string;
let collecting: Service;
let reading: Service;
let copying: ChildProcess;
const replicas = () => join(folder, 'replicas');
const json = async (service: Service, path: string) => JSON.parse((await service.get(path)).body);
const collected = async (service: Service): Promise<number> =>
  (await json(service, '/v1/health')).freshness.collected ?? 0;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: true });
  folder = mkdtempSync(join(tmpdir(), 'percall-replica-'));
  collecting = await startService(network, { env: { COLLECTOR_REQUESTS_PER_SECOND: '50' } });
  await until('something is collected', async () => (await collected(collecting)) > 3);
  const script = [
    programFile('backup'),
    '--chain',
    '--to',
    replicas(),
    '--data-dir',
    collecting.dataDir,
    '--every',
    '1',
  ];
  copying = spawn(process.execPath, script, { cwd: folder, stdio: 'ignore' });
  await until('a copy is there', () => readdirIfAny(replicas()).includes('chain.db'));
  reading = await startService(network, {
    env: {
      COLLECTOR: 'off',
      CHAIN_DB_URL: `file://${replicas()}/chain.db`,
      HEALTH_STALLED_SECONDS: String(OLD_SECONDS),
      HEALTH_LAG_SECONDS: String(OLD_SECONDS),
    },
  });
});
afterAll(async () => {
  copying?.kill('SIGKILL');
  await reading?.stop();
  await collecting?.stop();
  await network?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

// The copier runs, is killed, and does not run: another one for each test would take longer.
describe('the life of a copier', { shuffle: false }, () => {
  test("an instance on a copy serves what another instance collected, free and paid, and states the copy's age", async () => {
    const first = await collected(reading);
    expect(first).toBeGreaterThan(0);
    await until('newer copies are followed', async () => (await collected(reading)) > first + 2);
    const upTo = await collected(collecting);
    expect(await collected(reading)).toBeLessThanOrEqual(Math.max(upTo, await collected(collecting)));
    await until(
      'it is as healthy as its copies are young',
      async () => (await reading.get('/v1/health')).status === 200,
    );
    const { freshness, hours } = await json(reading, '/v1/activity');
    expect(freshness.collected).toBeGreaterThan(first);
    expect(hours.some(({ transactions }: { transactions: number | null }) => Number(transactions) > 0)).toBe(true);
    const buyer = await newBuyer(network);
    const paid = '/v1/paid/fees/forecast';
    const answer = await present(reading.origin, paid, await buyer.sign(reading.origin, paid));
    expect([answer.status, JSON.parse(answer.body).freshness?.collected]).toEqual([200, expect.any(Number)]);
  });

  test('a killed copier leaves nothing that disturbs the next one', async () => {
    const gone = once(copying, 'exit');
    copying.kill('SIGKILL');
    await gone;
    writeFileSync(join(replicas(), `chain.db.${copying.pid}.next.part`), 'half a copy');
    const before = statSync(join(replicas(), 'chain.db')).ino;
    const args = ['--chain', '--to', replicas(), '--data-dir', collecting.dataDir];
    const ran = await runCommand('backup', args, { cwd: folder, env: {} });
    expect([ran.code, ran.stdout]).toEqual([0, `${join(replicas(), 'chain.db')}\n`]);
    expect(readdirSync(replicas())).toEqual(['chain.db']);
    expect(statSync(join(replicas(), 'chain.db')).ino).not.toBe(before);
  });

  test('when no more copies come, the lag grows and health reports it, while the data stays correct', async () => {
    const last = ask<number>(join(replicas(), 'chain.db'), 'SELECT max(number) FROM blocks');
    await until('the last copy is served', async () => (await collected(reading)) === last);
    await until('its health is bad', async () => (await reading.get('/v1/health')).status === 503);
    const { status, readings } = await json(reading, '/v1/health');
    expect(['stalled', 'lagging']).toContain(status);
    expect(readings.lagSeconds).toBeGreaterThanOrEqual(OLD_SECONDS);
    const held = await collected(reading);
    await until('the chain goes on without it', async () => (await collected(collecting)) > held + 3);
    expect(await collected(reading)).toBe(held);
    let shown = await json(reading, '/v1/network');
    // When the chain is too late for an answer, the newest block in it is the copy's own.
    await until('the head is read live', async () => {
      shown = await json(reading, '/v1/network');
      return !shown.source.name.startsWith('Collected');
    });
    expect(shown.freshness).toMatchObject({ collected: held });
    expect(shown.freshness.lagBlocks).toBeGreaterThan(0);
    expect((await reading.get('/readyz')).status).toBe(200);
  });
});

test.each([
  [['--chain'], /^usage: --chain needs --to/],
  [['--every', '5'], /^usage: --every goes with --chain/],
  [['--chain', '--to', '.', '--every', '0'], /^usage: --every is a whole number of seconds/],
  [['--chain', '--to', '/data', '--data-dir', '/data'], /^usage: --to is the data directory/],
])('the command backup refuses %j as a usage error', async (args, word) => {
  const ended = await runCommand('backup', args, { cwd: folder, env: {} });
  expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(word) });
});

function readdirIfAny(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
