import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { buildFacilitatorApp, facilitatorConfig } from '../../../scripts/lib/lightning/facilitator-app.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { listen } from '../../http/harness.ts';
import { type OpenFacilitator, openFacilitator } from '../../support/lightning/facilitator.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { ROOT } from '../../support/service/shown-code.ts';
import { startTerminal, type Terminal } from '../../support/service/terminal.ts';

// docs/examples/sell-server.ts beside real Lightning nodes and the facilitator's own app.
// blocks.test.ts buys from it with `npm run pay`. Here are buyers with bad luck, and false ones.

const OSLO = '/v1/weather?city=Oslo';

let lightning: EmbeddedLightning;
let opened: OpenFacilitator;
let app: FastifyInstance;
let folder: string;
let origin: string;
let environment: Record<string, string>;
let server: Terminal;
/** How the facilitator's app treats its next settle call. */
let hook: 'answer' | 'fail' | 'lose the answer' = 'answer';
let settled = 0;

const startServer = () => {
  const command = `exec node ${join(ROOT, 'docs/examples/sell-server.ts')}`;
  return startTerminal({ folder, command, env: environment, ready: /^export SELLER_ORIGIN=/m });
};

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  opened = openFacilitator({ startMs: Date.now() });
  app = buildFacilitatorApp(opened.facilitator, facilitatorConfig({}), createLogger('silent'));
  app.addHook('onRequest', async (_request, reply) => {
    settled += 1;
    if (hook === 'fail') await reply.code(503).header('retry-after', '7').send({ success: false });
  });
  app.addHook('onSend', async (_request, reply) => {
    if (hook === 'lose the answer') reply.raw.destroy();
  });
  folder = mkdtempSync(join(tmpdir(), 'percall-seller-'));
  const port = await ownPort();
  origin = `http://127.0.0.1:${port}`;
  const node = { LND_URL: lightning.lndUrl, LND_MACAROON: lightning.macaroon };
  environment = { ...CHILD_ENV, ...node, ORIGIN: `http://127.0.0.1:${await listen(app)}`, SELLER_ORIGIN: origin };
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
  await app?.close();
  opened?.close();
  await lightning?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

interface Offer {
  readonly extra: { readonly invoice: string };
}
const decode = (header: string | null) => JSON.parse(Buffer.from(header ?? '', 'base64').toString());
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64');
const ask = (path: string, signature?: string) =>
  fetch(origin + path, { headers: signature === undefined ? {} : { 'payment-signature': signature } });

async function offerOf(path: string): Promise<Offer> {
  return decode((await ask(path)).headers.get('payment-required')).accepts[0];
}

/** Pays for a request, and returns the proof and the payment hash. */
async function payFor(path: string) {
  const accepted = await offerOf(path);
  const { invoice } = accepted.extra;
  const preimage = await lightning.pay(invoice);
  const paymentHash = Buffer.from(decodeInvoice(invoice)!.paymentHash).toString('hex');
  return { accepted, paymentHash, proof: encode({ x402Version: 2, accepted, payload: { preimage } }) };
}

async function expectServed(answer: Response, paymentHash: string) {
  expect([answer.status, await answer.json()]).toEqual([200, { url: origin + OSLO, celsius: 7 }]);
  const receipt = { success: true, transaction: paymentHash, network: lightning.network };
  expect(decode(answer.headers.get('payment-response'))).toEqual(receipt);
}

async function expectRefused(answer: Response, error: string) {
  expect([answer.status, await answer.json()]).toEqual([402, { error }]);
  expect(decode(answer.headers.get('payment-required'))).toMatchObject({ x402Version: 2, error });
}

describe('the seller of docs/examples', () => {
  test('offers a new invoice each time, for its public address whatever the Host header says', async () => {
    const [one, two] = [await offerOf(OSLO), await offerOf(OSLO)];
    expect(one.extra.invoice).not.toBe(two.extra.invoice);
    const { port } = new URL(origin);
    const header = await new Promise<string>((resolve) =>
      request({ host: '127.0.0.1', port, path: OSLO, headers: { host: 'else.example' } }, (answer) => {
        resolve(String(answer.headers['payment-required']));
        answer.resume();
      }).end(),
    );
    expect(decode(header).resource.url).toBe(origin + OSLO);
  });

  test('serves a proof, and sends the same answer again without a second claim, also after a restart', async () => {
    const { proof, paymentHash } = await payFor(OSLO);
    await expectServed(await ask(OSLO, proof), paymentHash);
    const claims = settled;
    await expectServed(await ask(OSLO, proof), paymentHash);
    await server.stop();
    server = await startServer();
    await expectServed(await ask(OSLO, proof), paymentHash);
    expect(settled).toBe(claims);
  });

  test('serves a proof once for the request that it was paid for, and no other', async () => {
    const { proof, paymentHash } = await payFor(OSLO);
    const other = await ask('/v1/weather?city=Rome', proof);
    await expectRefused(other, 'invalid_exact_lnbtc_invoice_request_mismatch');
    await expectServed(await ask(OSLO, proof), paymentHash);
    await expectRefused(await ask('/v1/weather?city=Rome', proof), 'invalid_exact_lnbtc_invoice_request_mismatch');
  });

  test('takes its own terms, whatever the buyer writes beside the invoice and the preimage', async () => {
    const { accepted, proof, paymentHash } = await payFor(OSLO);
    const { payload } = decode(proof);
    const changed = { ...accepted, amount: '1', payTo: '02', extra: { ...accepted.extra, requestHash: '00' } };
    await expectServed(await ask(OSLO, encode({ accepted: changed, payload })), paymentHash);
  });

  test.each([
    ['no base64', '%', 'invalid_exact_lnbtc_invoice_missing'],
    ['no proof', encode({ x402Version: 2 }), 'invalid_exact_lnbtc_invoice_missing'],
  ])('refuses %s, and goes on', async (_what, signature, error) => {
    await expectRefused(await ask(OSLO, signature), error);
  });

  test('refuses an invoice that was not paid', async () => {
    const accepted = await offerOf(OSLO);
    const unpaid = encode({ accepted, payload: { preimage: '07'.repeat(32) } });
    await expectRefused(await ask(OSLO, unpaid), 'invalid_exact_lnbtc_preimage_hash_mismatch');
  });

  test('offers no second invoice while the facilitator does not answer, and serves the same proof afterwards', async () => {
    const { proof, paymentHash } = await payFor(OSLO);
    hook = 'fail';
    const busy = await ask(OSLO, proof);
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([503, '7']);
    hook = 'lose the answer';
    expect((await ask(OSLO, proof)).status).toBe(503);
    hook = 'answer';
    // It is claimed by now.
    await expectServed(await ask(OSLO, proof), paymentHash);
  });
});
