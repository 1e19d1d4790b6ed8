import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { diskFolder } from '../../support/disk/disk-runs.ts';
import { type DiskControl, diskMissing, faultyDiskEnv, openDiskControl } from '../../support/disk/faulty-disk.ts';
import { documented } from '../../support/disk/outcome-table.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Answer, call } from '../../support/service/service.ts';
import { newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';

/** The quick lane lets every n-th write of a sale fail. A sale makes some fifty. */
const STRIDE = process.env.SLOW ? 1 : 11;
const FULL = 'database or disk is full (SQLITE_FULL)';

let network: EmbeddedNetwork;
let folder: string;
let disk: DiskControl;
let service: Awaited<ReturnType<typeof createProcess>>;

interface Order {
  readonly path: string;
  readonly payment: Payment;
}

async function order(): Promise<Order> {
  const buyer = await newBuyer(network);
  const path = `/v1/paid/chain/wallet?address=${buyer.address}`;
  return { path, payment: await buyer.sign(service.origin, path) };
}

const buy = ({ path, payment }: Order): Promise<Answer> => present(service.origin, path, payment);

/** Presents the same payment until the answer comes. */
async function buyToTheEnd(one: Order): Promise<Answer> {
  for (;;) {
    const answer = await buy(one);
    if (answer.status !== 503 && answer.status !== 409) return answer;
    await delay(50);
  }
}

/** An answer in the words of the table. */
function wordsOf({ status, body }: Answer): string {
  if (status === 200) return '200';
  const { code, charged } = JSON.parse(body) as { code: string; charged: unknown };
  return `${status} \`${code}\`, charged \`${charged}\``;
}

/** The ledger's or the collector's check in `/readyz`, once it has this detail. */
async function untilReadyzSays(name: 'ledger' | 'collector', text: string | undefined): Promise<number> {
  for (;;) {
    const { status, body } = await call(service.origin, '/readyz');
    const { detail } = JSON.parse(body).checks[name] as { detail?: string };
    if (text === undefined ? detail === undefined : detail?.includes(text)) return status;
    await delay(50);
  }
}

describe.skipIf(diskMissing !== null)('the service on a disk that fails', () => {
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    folder = diskFolder();
    const data = join(folder, 'data');
    mkdirSync(data);
    disk = openDiskControl(join(folder, 'control'));
    service = await createProcess(network, data, await faultyDiskEnv(data, join(folder, 'control')));
    await service.start();
  });
  afterAll(async () => {
    await service.kill();
    disk.close();
    await network.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('sells nothing while the ledger’s disk is full, says so, and sells again once there is room', async () => {
    const one = await order();
    disk.arm({ on: ['growing'], error: 'ENOSPC', part: 'ledger.db' });
    // The log has room from before for the first sales.
    const earlier = [];
    let refused = await buy(one);
    for (; refused.status === 200; refused = await buy(await order())) earlier.push(refused);
    expect(await untilReadyzSays('ledger', 'no space left on device')).toBe(503);
    expect(service.log()).toContain(`ledger.db: ${FULL}`);
    expect(service.log()).not.toContain('a request failed on a bug');
    disk.heal();
    expect(await untilReadyzSays('ledger', undefined)).toBe(200);
    const sold = await buyToTheEnd(one);
    expect(await transfersOf(network, one.payment)).toBe(1);
    const isKnown = ['ledger_unavailable', 'settlement_unknown'].includes(JSON.parse(refused.body).code);
    expect(wordsOf(sold)).toBe('200');
    expect([isKnown ? '503' : wordsOf(refused), '503']).toEqual(documented('The service', 'the disk is full'));
  });

  test('charges once whichever write of a sale fails, and never answers that nothing was charged when it was', async () => {
    const answers = new Set<string>();
    for (let skip = 0; ; skip += STRIDE) {
      const one = await order();
      disk.arm({ on: ['write'], error: 'EIO', part: 'ledger.db', skip, times: 1 });
      const first = await buy(one);
      const sent = await transfersOf(network, one.payment);
      answers.add(wordsOf(first));
      if (first.status !== 200 && JSON.parse(first.body).charged === false) expect(sent).toBe(0);
      expect((await buyToTheEnd(one)).status, `write ${skip}`).toBe(200);
      expect(await transfersOf(network, one.payment), `write ${skip}`).toBe(1);
      if (disk.counts().hits === 0) break;
      disk.heal();
    }
    disk.heal();
    // Which writes fail depends on how the writes of a sale are grouped, so not each answer of the page comes in every run.
    const [page, ...rest] = documented('The service', 'one write of a sale fails');
    const seen = [...answers].filter((words) => words !== '200');
    expect(seen).not.toEqual([]);
    expect(page?.split('; ')).toEqual(expect.arrayContaining(seen));
    expect(rest).toEqual(['200']);
  });

  test('sells what needs no collected data while chain.db is full, says so, and collects again once there is room', async () => {
    disk.arm({ on: ['write'], error: 'ENOSPC', part: 'chain.db' });
    await disk.untilHit();
    const ready = await untilReadyzSays('collector', FULL);
    const sold = await buy(await order());
    expect(service.log()).toContain(`chain.db: ${FULL}`);
    disk.heal();
    await untilReadyzSays('collector', undefined);
    expect([wordsOf(sold), String(ready)]).toEqual(documented('The service', '`chain.db` is full'));
  });

  test('answers free calls while a sync of the ledger hangs, and sells when it ends', async () => {
    const one = await order();
    disk.hold('ledger.db-wal');
    const selling = buy(one);
    await disk.untilHeld();
    const { status } = await call(service.origin, '/v1/fees/estimate');
    expect(disk.counts().held).toBe(1);
    disk.heal();
    expect([wordsOf(await selling), String(status)]).toEqual(documented('The service', 'a sync hangs'));
    expect(await transfersOf(network, one.payment)).toBe(1);
  });

  test('ends when a sync of the ledger fails, does not start while it cannot write it, and the next start sells for the same payment, charged once', async () => {
    const one = await order();
    disk.arm({ on: ['sync'], error: 'EIO', part: 'ledger.db-wal', times: 1 });
    const refused = await buy(one);
    const code = await service.ended();
    expect(service.log()).toContain('ledger.db-wal: EIO: i/o error, fdatasync');
    expect(service.log()).toContain('takes no more writes; the service ends, to be started again');
    disk.arm({ on: ['write'], error: 'EIO', part: 'ledger.db' });
    const ended = service.log().length;
    await expect(service.start()).rejects.toThrow('the service ended with 1');
    expect(service.log().slice(ended)).toContain('ledger.db: disk I/O error');
    disk.heal();
    await service.start();
    const sold = await buyToTheEnd(one);
    expect(await transfersOf(network, one.payment)).toBe(1);
    expect(wordsOf(sold)).toBe('200');
    expect(['none', 'exit code 1']).toEqual(documented('The service', 'the disk fails at a start'));
    expect([wordsOf(refused), `exit code ${code}`]).toEqual(documented('The service', 'a sync fails'));
  });
});
