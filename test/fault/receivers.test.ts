import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createIssuer, type Issuer } from '../../src/payment/lightning/issuer.ts';
import { MAINNET } from '../../src/payment/lightning/terms.ts';
import {
  NODE_KINDS,
  type NodeKind,
  type NodeServer,
  SECRETS,
  startNodeServer,
} from '../support/lightning/lightning-node-servers.ts';
import { articleBinding, everythingOf, openReceiver, type ReceiverBench } from '../support/lightning/receiver-bench.ts';
import { countRunningTime } from '../support/running-time.ts';
import { timeoutFor } from '../support/upstream/patience.ts';
import { FAULTS, type Fault, type Recorded } from '../support/upstream/replay.ts';

/** In milliseconds, for a node that is silent. */
const TIMEOUT_MS = 1000;
countRunningTime();
const signal = new AbortController().signal;
const order = { amountMsat: 25_000n, binding: articleBinding() };
const fault = (promise: Promise<unknown>) => promise.then(() => null).catch((error: unknown) => error);

/** The issuer over one node, which may get a fault later. Each test has its own, so that tests wait side by side. */
async function withIssuer(
  kind: NodeKind,
  later: Fault | null,
  check: (parts: {
    node: NodeServer;
    bench: ReceiverBench;
    issuer: Issuer;
    expectNoLeak(error: unknown): void;
  }) => Promise<void>,
): Promise<void> {
  const node = await startNodeServer(kind, systemClock);
  const timeoutMs = timeoutFor(later, TIMEOUT_MS);
  const bench = openReceiver(node.config, { timeoutMs });
  const { receiver, log } = bench;
  const options = { receiver, network: MAINNET, expectedKey: null, expirySeconds: 300, timeoutMs };
  const issuer = createIssuer({ ...options, clock: systemClock, log });
  /** The secret in every form in which it is kept or sent. */
  const secrets = [
    SECRETS[kind],
    Buffer.from(`:${SECRETS[kind]}`).toString('base64'),
    Buffer.from(SECRETS[kind], 'hex').toString('base64') || SECRETS[kind],
  ];
  const expectNoLeak = (error: unknown) => {
    const output = everythingOf(error) + JSON.stringify(issuer.status()) + bench.logged.join();
    for (const secret of secrets) expect(output).not.toContain(secret);
  };
  try {
    await issuer.start();
    await check({ node, bench, issuer, expectNoLeak });
  } finally {
    await issuer.stop();
    await bench.close();
    await node.stop();
  }
}

describe.each(NODE_KINDS)('a broken %s node', (kind) => {
  test.concurrent.each(FAULTS)('sells nothing while it answers with: %s', (name) =>
    withIssuer(kind, name, async ({ node, bench, issuer, expectNoLeak }) => {
      expect(issuer.status()).toEqual({ ok: true });
      await node.setFault(name);
      const error = await fault(issuer.issue(order, signal));
      expect(error).toMatchObject({ status: 503, code: 'lightning_unavailable', charged: false });
      expect(issuer.status().ok).toBe(false);
      expectNoLeak(error);
      expectNoLeak(await fault(bench.receiver.nodeKey(signal)));
      expectNoLeak(await fault(bench.receiver.inspect(signal)));
    }),
  );

  test.concurrent.each(FAULTS)('never says that a payment came in while it answers with: %s', (name) =>
    withIssuer(kind, name, async ({ node, issuer, expectNoLeak }) => {
      const { invoice } = await issuer.issue(order, signal);
      node.pay(invoice.paymentHash);
      expect(await issuer.isPaid(invoice.paymentHash, signal)).toBe(true);
      await node.setFault(name);
      const asked = await issuer.isPaid(invoice.paymentHash, signal).catch((error: unknown) => error);
      expectNoLeak(asked);
      // Only "there is no such payment" is an answer. Every other failure leaves the question open.
      if (name === '404' && kind !== 'cln') expect(asked).toBe(false);
      else expect(asked).toMatchObject({ status: 503, code: 'lightning_unavailable' });
    }),
  );

  test.each([
    ['in a refusal', (secret: string) => ({ status: 500, body: secret })],
    ['as what is no JSON', (secret: string) => ({ body: secret })],
    ['in JSON of another shape', (secret: string) => ({ body: JSON.stringify({ [secret]: secret }) })],
    [
      'in place of an invoice',
      (secret: string) => ({
        body: JSON.stringify({ payment_request: secret, bolt11: secret, serialized: secret }),
      }),
    ],
  ] as [string, (secret: string) => Recorded][])(
    'repeats our secret %s, and the secret reaches no answer and no log',
    (_what, answer) =>
      withIssuer(kind, null, async ({ node, issuer, expectNoLeak }) => {
        for (const path of ['POST /v1/invoices', 'POST /v1/invoice', 'POST /createinvoice']) {
          node.answers[path] = answer(SECRETS[kind]);
        }
        const error = await fault(issuer.issue(order, signal));
        expect(error).toMatchObject({ status: 503, code: 'lightning_unavailable' });
        expectNoLeak(error);
      }),
  );
});
