import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../dev/child.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { pythonWith } from '../../support/python.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { ROOT } from '../../support/service/shown-code.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

const python = process.env.SLOW ? pythonWith('ecdsa', 'Cryptodome.Hash.keccak') : null;
const skipped = process.env.SLOW ? 'Debian’s python3-pycryptodome and python3-ecdsa are missing' : 'SLOW=1 runs it';

describe.skipIf(python === null)(`docs/examples/buy.py${python === null ? ` (skipped: ${skipped})` : ''}`, () => {
  let network: EmbeddedNetwork;
  let service: Service;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'percall-python-'));
    network = await startEmbeddedNetwork();
    service = await startService(network);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await service?.stop();
    await network?.stop();
  });

  const PATH = '/v1/paid/chain/wallet?address=0x3600000000000000000000000000000000000000';

  /** Runs the file as a reader would, in a folder of the test. */
  function buy(env: Record<string, string>, args: string[] = []) {
    const wallet = { ORIGIN: service.origin, BUYER_PRIVATE_KEY: network.buyer.privateKey };
    const options = { cwd: folder, env: { NO_PROXY: '*', ...wallet, ...env } };
    return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(String(python), [join(ROOT, 'docs/examples/buy.py'), ...args], options, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  }

  /** What the seller has got while the work ran, in base units. */
  async function earned<T>(work: () => Promise<T>): Promise<[T, bigint]> {
    const before = await balanceOf(network, network.seller);
    const result = await work();
    return [result, (await balanceOf(network, network.seller)) - before];
  }

  test('says what its environment lacks', async () => {
    expect(await buy({ ORIGIN: '' })).toMatchObject({ code: 1, stderr: expect.stringMatching(/^set ORIGIN;/) });
    const neither = await buy({ ORIGIN: '', BUYER_PRIVATE_KEY: '' });
    expect(neither.stderr).toMatch(/^set BUYER_PRIVATE_KEY and ORIGIN;/);
  });

  test('signs nothing above its ceiling, for a free route, or where nobody answers', async () => {
    const dear = await buy({ MAX_USDC: '0.0019' });
    expect(dear).toMatchObject({ code: 1, stderr: expect.stringMatching(/^nothing was signed: .*0\.0019 USDC/) });
    const free = await buy({}, ['/v1/network']);
    expect(free).toMatchObject({ code: 1, stderr: expect.stringMatching(/^nothing was signed: the answer is 200/) });
    const wrong = await buy({}, ['/v1/paid/fees/estimate?gas=none']);
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/^nothing was signed: .*would be a 400/) });
    const away = await buy({ ORIGIN: `http://127.0.0.1:${await freePort()}` });
    expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining('run the same command again') });
    expect(away.stderr).not.toContain('Traceback');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('buys a call, prints its answer and its transfer, and does not pay again when it is run again', async () => {
    const [first, price] = await earned(() => buy({}));
    expect(first).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/delete x402-payment-\w+ to buy another\n$/),
    });
    const [body = '', transaction] = first.stdout.trimEnd().split('\n');
    expect(JSON.parse(body)).toMatchObject({ address: '0x3600000000000000000000000000000000000000' });
    expect(await network.rpc('eth_getTransactionReceipt', [transaction])).toMatchObject({ status: '0x1' });
    const asked = await service.get(PATH);
    const { accepts } = JSON.parse(Buffer.from(String(asked.headers['payment-required']), 'base64').toString());
    expect(price).toBe(BigInt(accepts[0].amount));

    const [file = '', ...more] = readdirSync(folder);
    expect(more).toEqual([]);
    expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    expect(await earned(() => buy({}))).toEqual([first, 0n]);
    rmSync(join(folder, file));
    const [again, paid] = await earned(() => buy({}));
    expect([again.code, paid]).toEqual([0, price]);
  });

  test('says that the file may be deleted where nothing was charged', async () => {
    const [failed, paid] = await earned(() => buy({}, ['/v1/paid/selftest/fail']));
    expect([failed.code, paid]).toEqual([1, 0n]);
    expect(failed.stderr).toMatch(/^500: .*\nnothing was charged: you may delete x402-payment-\w+\n$/);
  });

  test('with another URL buys another answer', async () => {
    const url = `${service.origin}/v1/paid/fees/estimate?gas=50000`;
    const [{ code, stdout }, price] = await earned(() => buy({}, [url]));
    expect([code, JSON.parse(stdout.split('\n')[0] ?? '')]).toEqual([0, expect.objectContaining({ gas: 50_000 })]);
    expect(price).toBeGreaterThan(0n);
  });
});
