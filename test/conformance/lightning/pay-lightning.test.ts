import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openBuyer, settingsFrom } from '../../../cli/buyer.ts';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { type LoopbackServer, startJsonServer } from '../../../dev/lightning/lnd-rest.ts';
import { sellOverLightning } from '../../../scripts/lib/demo/sell-over-lightning.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { type LndRouter, startLndRouter } from '../../support/lightning/lnd-router.ts';
import { type ShakySeller, startShakySeller } from '../../support/lightning/shaky-seller.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Run, runCommand } from '../../support/service/operator-command.ts';
import { payHere } from '../../support/service/pay-here.ts';

const moody = moodyEndpoint();

let lightning: EmbeddedLightning;
let service: LightningService;
let seller: ShakySeller;
let folder: string;

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  seller = await startShakySeller();
  service = await startLightningService(lightning, {
    catalogue: [moody.endpoint],
    env: { PUBLIC_ORIGIN: seller.origin },
  });
  seller.standBefore(service.origin);
});
afterAll(async () => {
  await seller?.stop();
  await service?.stop();
  await lightning?.stop();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-pay-'));
  seller.reset();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

let tag = 0;
/** A request that was never made before. */
const fresh = (origin = seller.origin) => `${origin}${moody.path}?tag=p${++tag}`;

const wallet = () => ({ PAYER_URL: lightning.payUrl });

/** Runs the command line in its own directory. */
const pay = async (args: string[], env: Record<string, string> = wallet()) =>
  withoutSecrets(await payHere(args, { env, folder }));

/** The same as a program of its own. */
const payAsProgram = async (args: string[], env: Record<string, string> = wallet()) =>
  withoutSecrets(await runCommand('pay', args, { cwd: folder, env }));

/** The output, which must not contain anything secret that the seller received. */
function withoutSecrets(output: Run): Run {
  for (const { preimage } of seller.shown) expect(output.stdout + output.stderr).not.toContain(preimage);
  return output;
}

/** The payments that wait for their answers. */
function left() {
  const buyer = openBuyer({ ...settingsFrom({}), dataDir: join(folder, '.percall') });
  try {
    return buyer.open().map(({ state }) => state);
  } finally {
    buyer.close();
  }
}

describe('npm run pay buys a call over Lightning', () => {
  test('for the requested URL, with the answer on standard output and no file left behind', async () => {
    const { code, stdout, stderr } = await pay([fresh()]);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty('run');
    expect(stderr).toMatch(/asked: +1 sat on lnbtc:000000000019d6689c085ae165831e93/);
    expect(stderr).toContain('0.0005 USD, at 64000 USD a bitcoin');
    expect(stderr).toMatch(/paid: +1 sat by PAYER_URL, payment hash [0-9a-f]{64}/);
    expect(left()).toEqual([]);
    expect(seller.shown).toHaveLength(1);
  });

  test('once, however often the proof must be presented', async () => {
    seller.refuseProofs(503, 1);
    const { code, stderr } = await pay([fresh()]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('status 503; the same payment again in 1 s');
    expect(seller.shown).toHaveLength(2);
    expect(seller.shown[1]).toEqual(seller.shown[0]);
    expect(left()).toEqual([]);
  });
});

describe.each(['l402', 'mpp'] as const)(
  'npm run pay buys a call over Lightning from a seller of %s alone',
  (protocol) => {
    beforeEach(() => seller.speakOnly(protocol));

    test('with the answer on standard output and no file left behind', async () => {
      const { code, stdout, stderr } = await pay([fresh()]);
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toHaveProperty('run');
      expect(stderr).toContain(`over ${protocol.toUpperCase()}`);
      expect(stderr).not.toContain('without a receipt');
      expect({ left: left(), shown: seller.shown.length }).toEqual({ left: [], shown: 1 });
      expect(seller.shown[0]?.header).toMatch(
        protocol === 'l402' ? /^authorization: L402 / : /^authorization: Payment /,
      );
    });

    test('once: a seller that fails is paid no second time, and the saved proof buys the answer', async () => {
      const url = fresh();
      seller.refuseProofs(402, 1);
      const failed = await pay([url]);
      expect(failed).toMatchObject({ code: 4, stdout: '' });
      expect(left()).toEqual(['signed']);
      // Needs no payer, because nothing is paid.
      const redeemed = await pay([url], {});
      expect(redeemed.code, redeemed.stderr).toBe(0);
      expect(JSON.parse(redeemed.stdout)).toHaveProperty('run');
      expect(left()).toEqual([]);
      expect(seller.shown[1]).toEqual(seller.shown[0]);
    });
  },
);

describe('npm run pay pays nothing', () => {
  test.each<[string, () => string[], Record<string, string> | undefined, number, string]>([
    ['in a dry run', () => [fresh(), '--dry-run'], {}, 0, 'dry run'],
    ['above the ceiling', () => [fresh(), '--max-sats', '0'], undefined, 3, '1 sat is above the ceiling of 0 sat'],
    ['without a payer', () => [fresh()], {}, 2, 'a payer is needed'],
    [
      'in USDC where only sats are taken',
      () => [fresh(), '--rail', 'usdc'],
      { BUYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` },
      3,
      'nothing on offer is a plain USDC',
    ],
    [
      'for a request of another origin',
      () => [fresh(service.origin)],
      undefined,
      3,
      'invalid_exact_lnbtc_request_mismatch',
    ],
    ['on a rail that is none', () => [fresh(), '--rail', 'gold'], undefined, 2, '--rail is usdc or lightning'],
    ['for a part of a sat', () => [fresh(), '--max-sats', '1.5'], undefined, 2, '--max-sats is a whole number'],
  ])('%s', async (_name, args, env, status, reason) => {
    const { code, stdout, stderr } = await pay(args(), env);
    expect({ code, stdout, shown: seller.shown }).toEqual({ code: status, stdout: '', shown: [] });
    expect(stderr).toContain(reason);
    expect(left()).toEqual([]);
  });
});

test('npm run pay pays nothing for an offer that names another URL', async () => {
  const url = fresh();
  seller.sellAs(`${url}&more=1`);
  const { code, stdout, stderr } = await pay([url]);
  expect({ code, stdout, shown: seller.shown, left: left() }).toEqual({ code: 3, stdout: '', shown: [], left: [] });
  expect(stderr).toContain('invalid_exact_lnbtc_request_mismatch');
  expect(stderr).toContain('nothing was paid');
  seller.sellAs(url);
  expect((await pay([url])).code).toBe(0);
});

test('a buyer who paid redeems later by the same command: the record is its owner’s alone, and forgets the proof', async () => {
  const url = fresh();
  seller.refuseProofs(402, 1);
  const failed = await payAsProgram([url]);
  expect(failed).toMatchObject({ code: 4, stdout: '' });
  expect(failed.stderr).toContain('is not paid again: run the same call again');
  const kept = join(folder, '.percall');
  expect(statSync(join(kept, 'wallet.db')).mode & 0o777).toBe(0o600);
  const textOf = (name: string) => readFileSync(join(kept, name), 'latin1');
  expect(textOf('wallet.db')).toContain('PAYMENT-SIGNATURE');

  // Needs no payer, because nothing is paid.
  const redeemed = await payAsProgram([url], {});
  expect(redeemed.code, redeemed.stderr).toBe(0);
  expect(JSON.parse(redeemed.stdout)).toHaveProperty('run');
  expect(left()).toEqual([]);
  for (const name of readdirSync(kept)) expect(textOf(name)).not.toContain('PAYMENT-SIGNATURE');
});

describe('a payer that is not trusted', () => {
  /** A proxy before the buyer's node. */
  let payer: LoopbackServer;
  let mood: 'refuses' | 'lies' | 'forgets' | 'well' = 'well';
  let paid = 0;
  beforeAll(async () => {
    payer = await startJsonServer(async ({ body }) => {
      if (mood === 'refuses') return { status: 402, body: { error: 'no funds' } };
      if (mood === 'lies') return { status: 200, body: { preimage: '5e'.repeat(32) } };
      paid += 1;
      const preimage = await lightning.pay(String(body.invoice));
      return mood === 'forgets' ? { status: 500, body: { error: 'lost' } } : { status: 200, body: { preimage } };
    });
  });
  afterAll(() => payer.stop());
  const env = () => ({ PAYER_URL: payer.url });

  test('that refuses has cost nothing', async () => {
    mood = 'refuses';
    const { code, stderr } = await pay([fresh()], env());
    expect({ code, left: left(), shown: seller.shown }).toEqual({ code: 3, left: [], shown: [] });
    expect(stderr).toContain('PAYER_URL did not pay: no funds; nothing was paid');
  });

  test.each([
    ['lies', 'invalid_exact_lnbtc_payer_preimage_hash_mismatch'],
    ['forgets', 'lost'],
  ] as const)('that %s leaves the outcome open, and can be asked again without paying again', async (how, reason) => {
    mood = how;
    paid = 0;
    const url = fresh();
    const { code, stderr } = await pay([url], env());
    expect({ code, shown: seller.shown, left: left() }).toEqual({ code: 4, shown: [], left: ['counted'] });
    expect(stderr).toContain(reason);
    expect(stderr).toMatch(/whether it was paid is open \(payment hash [0-9a-f]{64}\)/);

    mood = 'well';
    const redeemed = await pay([url], env());
    expect(redeemed.code, redeemed.stderr).toBe(0);
    expect(JSON.parse(redeemed.stdout)).toHaveProperty('run');
    expect(left()).toEqual([]);
    expect(paid).toBe(how === 'lies' ? 1 : 2);
  });
});

describe('an LND node that pays', () => {
  let router: LndRouter;
  let paid = 0;
  beforeAll(async () => {
    router = await startLndRouter(async (invoice) => {
      paid += 1;
      const [preimage, hash] = [await lightning.pay(invoice), decodeInvoice(invoice)?.paymentHash ?? Buffer.of()];
      router.payments.set(Buffer.from(hash).toString('hex'), [{ status: 'SUCCEEDED', payment_preimage: preimage }]);
      // The node pays, and its answer is lost.
      return [{ status: 'IN_FLIGHT' }];
    });
  });
  afterAll(() => router.stop());
  const env = () => ({ LND_PAYER_URL: router.url, LND_PAYER_MACAROON: router.macaroon });

  test('and whose answer is lost is found to have paid, and is never asked to pay again', async () => {
    const url = fresh();
    const { code, stderr } = await pay([url], env());
    expect({ code, shown: seller.shown, left: left() }).toEqual({ code: 4, shown: [], left: ['counted'] });
    expect(stderr).toMatch(/whether it was paid is open \(payment hash [0-9a-f]{64}\)/);

    router.instead = { status: 404, body: '{"code":5,"message":"Not Found","details":[]}' };
    const open = await pay([url], env());
    expect({ code: open.code, left: left() }).toEqual({ code: 4, left: ['counted'] });
    expect(open.stderr).toContain('whether it was paid is open');

    router.instead = null;
    const redeemed = await pay([url], env());
    expect(redeemed.code, redeemed.stderr).toBe(0);
    expect(JSON.parse(redeemed.stdout)).toHaveProperty('run');
    expect({ left: left(), paid }).toEqual({ left: [], paid: 1 });
  });
});

test('the demonstration’s other seller has its proof claimed once, and shows no preimage', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  await sellOverLightning({ lightning, origin: service.origin, say, stopping: new AbortController().signal });
  const answers = lines.filter((line) => line.startsWith('  ← 200  ')).map((line) => JSON.parse(line.slice(9)));
  expect(answers).toMatchObject([{ success: true }, { success: false, errorReason: 'duplicate_settlement' }]);
  const [hash] = answers.map(({ transaction }) => String(transaction));
  expect(lines.join('\n').match(/[0-9a-f]{64}/g)).toEqual([hash]);
});
