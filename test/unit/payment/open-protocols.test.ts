import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { lightningRequirement, MAINNET } from '../../../src/payment/lightning/terms.ts';
import { lightningProtocol } from '../../../src/wiring/lightning.ts';
import { readSecrets } from '../../../src/wiring/surfaces.ts';

const ORIGIN = 'https://api.percall.example';
/** What the service adds to each answer: CORS, the limits, the date and the content's headers. */
const OTHER_FIELDS = 700;
/** A node with private channels adds route hints to its invoices. */
const invoice = {
  text: 'l'.repeat(400),
  paymentHash: Buffer.alloc(32),
  amountMsat: 1000n,
  payTo: '02'.repeat(33),
  expiresAt: 1_800_000_000,
};

test('all header fields of a Lightning 402 stay within 8 KiB, with a URL of 1,024 characters and route hints', async () => {
  const secrets = await readSecrets({ secret: null, previousSecret: null }, { keep: async (_name, fresh) => fresh });
  const protocol = lightningProtocol(secrets, new URL(ORIGIN).host, systemClock);
  const sizes = entriesOn(catalogue, 'lightning').map((endpoint) => {
    const binding = { profile: 'http:1', params: { headers: [] }, canonical: '', hash: Buffer.alloc(32) } as const;
    const terms = { network: MAINNET.id, amountMsat: 1000n, payTo: '02'.repeat(33), binding, invoice: invoice.text };
    const requirement = lightningRequirement(terms) as never;
    const url = `${ORIGIN}${pathOn(endpoint, 'lightning')}?q=`.padEnd(1024, 'x');
    const quote = { requirement, priceUsd: '0.0005', btcUsd: '64000.12', invoice };
    const { fields } = protocol.quote({ endpoint, url, hint: 'x'.repeat(500) }, quote);
    const lines = fields.flatMap(([name, value]) => [value].flat().map((one) => name.length + one.length + 4));
    return lines.reduce((sum, length) => sum + length, OTHER_FIELDS);
  });
  expect(sizes.length).toBeGreaterThan(1);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8 * 1024);
});

test('the secret that is configured signs challenges, and the last one is known', async () => {
  const keys = { keep: async () => Buffer.from('of the ledger') };
  const config = { secret: 'a'.repeat(32), previousSecret: 'b'.repeat(32) };
  expect(await readSecrets(config, keys)).toEqual({
    current: Buffer.from('a'.repeat(32)),
    previous: Buffer.from('b'.repeat(32)),
  });
  // What the ledger's key has signed before the first secret stays good, because a buyer may have paid for it.
  expect(await readSecrets({ ...config, previousSecret: null }, keys)).toEqual({
    current: Buffer.from('a'.repeat(32)),
    previous: Buffer.from('of the ledger'),
  });
  const kept = { secret: null, previousSecret: null };
  expect(await readSecrets(kept, keys)).toEqual({ current: Buffer.from('of the ledger'), previous: null });
});
