import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../dev/lightning/lightning.ts';
import { lightningProof } from '../../scripts/lib/lightning/lightning-proofs.ts';
import { LNBTC_REASONS } from '../../src/payment/lightning/proof.ts';
import { payFor, presentProof } from '../support/lightning/lightning-buyer.ts';
import { type LightningService, startLightningService } from '../support/lightning/lightning-service.ts';
import { seed, seededRandom } from '../support/random.ts';
import { randomJson } from '../support/random-json.ts';
import { moodyEndpoint } from '../support/service/moody-endpoint.ts';
import { decoded } from '../support/usdc/buyer.ts';

const HEADERS = process.env.SLOW ? 20_000 : 400;
/** The reasons of our routes besides the scheme's own. */
const REASONS: ReadonlySet<unknown> = new Set([...LNBTC_REASONS, 'invalid_payload', 'invalid_x402_version']);

const random = seededRandom('lightning-header');
const below = (limit: number): number => Math.floor(random() * limit);
const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
const moody = moodyEndpoint();

let lightning: EmbeddedLightning;
let service: LightningService;
beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  // Only one invoice. A refused proof gets no new one, because this test is not about the node.
  const env = { LIGHTNING_INVOICES_PER_MINUTE: '1' };
  service = await startLightningService(lightning, { catalogue: [moody.endpoint], env });
});
afterAll(async () => {
  await service?.stop();
  await lightning?.stop();
});

/** The value with one of its members, at any depth, removed, replaced or joined by another. */
function changed(root: unknown): unknown {
  const copy = structuredClone(root);
  const owners: Record<string, unknown>[] = [];
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    owners.push(value as Record<string, unknown>);
    for (const member of Object.values(value)) collect(member);
  };
  collect(copy);
  const owner = pick(owners);
  const key = pick(Object.keys(owner).concat('more', '__proto__', 'constructor'));
  const value = pick([undefined, randomJson(random), 'f'.repeat(below(3000)), structuredClone(pick(owners))]);
  Object.defineProperty(owner, key, { value, enumerable: true, configurable: true });
  return copy;
}

/** The same text with some of its characters changed, removed or doubled. */
function damaged(text: string): string {
  const at = below(text.length);
  const kind = below(3);
  if (kind === 0) return text.slice(0, at) + text.slice(at + 1 + below(20));
  if (kind === 1) return text.slice(0, at) + pick(['"', '{', '\\', '\u00e9', 'A', '0', 'q']) + text.slice(at + 1);
  return text.slice(0, at) + text.slice(Math.max(0, at - below(200)));
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test(`${HEADERS} headers that are nearly a payment: each gets a refusal with a known reason, and the proof stays valid`, async () => {
  const path = `${moody.path}?tag=fuzz`;
  // Again while there is no offer: on a busy machine the exchanges are late for their time-out.
  const proof = await vi.waitFor(() => payFor(lightning.pay, service.origin, path), {
    timeout: 150_000,
    interval: 300,
  });
  const paidRuns = moody.runs();
  const ours = JSON.parse(Buffer.from(proof.header, 'base64').toString('utf8'));
  // Another node's invoice for the same request; and the wrong preimage for our invoice.
  const foreign = lightningProof({ createdAt: Math.floor(Date.now() / 1000) }).body.paymentPayload;
  const unpaid = { ...ours, payload: { preimage: '00'.repeat(32) } };
  const counts = new Map<unknown, number>();
  const send = async (header: string): Promise<void> => {
    const context = `SEED=${seed} ${header}`;
    const answer = await presentProof(service.origin, path, { header });
    expect(answer.status, context).toBe(402);
    const { error } = decoded(answer, 'payment-required');
    expect(REASONS.has(error), `${context} ${String(error)}`).toBe(true);
    expect(decoded(answer, 'payment-response'), context).toMatchObject({ success: false, errorReason: error });
    counts.set(error, (counts.get(error) ?? 0) + 1);
  };
  const began = Date.now();
  for (let n = 0; n < HEADERS; n++) {
    const payment = changed(below(3) === 0 ? changed(pick([unpaid, foreign])) : pick([unpaid, foreign]));
    const text = JSON.stringify(payment);
    const header = pick([base64(text), base64(text), base64(damaged(text)), damaged(base64(text))]);
    // Node's parser refuses longer headers with 431.
    if (header.length > 0 && header.length < 15_000 && /^[\t -~]+$/.test(header)) await send(header.trim() || 'x');
  }
  expect(counts.size).toBeGreaterThan(8);
  // One run for the invoice of each minute that the test has seen begin, and none for a header.
  expect(moody.runs() - paidRuns).toBeLessThanOrEqual(Math.ceil((Date.now() - began) / 60_000));
  expect((await presentProof(service.origin, path, proof)).status).toBe(200);
}, 600_000);
