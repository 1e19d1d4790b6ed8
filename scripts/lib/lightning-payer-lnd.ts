import { z } from 'zod';
import { NotPaid } from './lightning-not-paid.ts';
import type { LightningPayer } from './lightning-payer.ts';
import { printable } from './printable.ts';

interface LndPayerOptions {
  /** Base URL of the node's REST interface. */
  readonly url: string;
  /** Hex; it must allow offchain:write and offchain:read. */
  readonly macaroon: string;
  /** The node's own certificate (PEM), when no public authority vouches for it. */
  readonly certificate: string | null;
}

/** How long the node may look for a way, and how long we wait for it. */
const ATTEMPT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const update = z.object({
  result: z.object({
    status: z.string(),
    payment_preimage: z.string().optional(),
    failure_reason: z.string().optional(),
  }),
});
const failure = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ message: z.string() }).transform(({ message }) => message),
]);

/** An LND node as payer, over `/v2/router/send` and `/v2/router/track`, which stream JSON objects, a line each; the last one tells. */
export function createLndPayer({ url, macaroon, certificate }: LndPayerOptions): LightningPayer {
  const base = url.replace(/\/+$/, '');

  async function ask(path: string, body?: object): Promise<{ status: number; last: unknown }> {
    const { Agent, fetch } = await import('undici');
    const dispatcher = certificate === null ? null : new Agent({ connect: { ca: certificate } });
    const answer = await fetch(`${base}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'Grpc-Metadata-macaroon': macaroon },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body: JSON.stringify(body) }),
      ...(dispatcher && { dispatcher }),
    });
    const lines = (await answer.text()).split('\n').filter((line) => line.trim() !== '');
    return { status: answer.status, last: JSON.parse(lines.at(-1) ?? 'null') };
  }

  return {
    name: 'LND_PAYER_URL',
    async pay(invoice, { feeLimitMsat }) {
      const { status, last } = await ask('/v2/router/send', {
        payment_request: invoice,
        timeout_seconds: ATTEMPT_SECONDS,
        fee_limit_msat: feeLimitMsat.toString(),
        no_inflight_updates: true,
      });
      const told = update.safeParse(last);
      if (told.success && told.data.result.status === 'SUCCEEDED') return told.data.result.payment_preimage;
      if (told.success && told.data.result.status === 'FAILED') {
        throw new NotPaid(printable(told.data.result.failure_reason ?? 'the node does not say why'));
      }
      const parsed = failure.safeParse(last);
      throw unclear(status, parsed.success ? parsed.data : 'the node does not say why');
    },
    async find(_invoice, paymentHash) {
      const hash = Buffer.from(paymentHash, 'hex').toString('base64url');
      const told = update.safeParse((await ask(`/v2/router/track/${hash}?no_inflight_updates=true`)).last);
      return told.success && told.data.result.status === 'SUCCEEDED' ? told.data.result.payment_preimage : null;
    },
    close: () => {},
  };
}

/** Refused before anything was tried, or no final answer: paid and in flight are two of the reasons for the latter. */
function unclear(status: number, message: string): Error {
  const denied = /permission denied|macaroon|verification failed/i.test(message);
  const begun = /already (?:paid|exists)|in transition|in flight/i.test(message);
  const text = printable(message);
  return denied || (status >= 400 && status < 500 && !begun) ? new NotPaid(text) : new Error(text);
}
