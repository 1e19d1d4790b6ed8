import { z } from 'zod';
import { printable } from '../printable.ts';
import { type LightningPayer, NotPaid } from './payer.ts';

interface LndPayerOptions {
  /** Base URL of the node's REST interface. */
  readonly url: string;
  /** As hex. It must allow offchain:write and offchain:read. */
  readonly macaroon: string;
  /** The node's own certificate (PEM), when no public authority signed it. */
  readonly certificate: string | null;
}

/** How long the node may look for a route. The next constant is how long we wait for its answer. */
const ATTEMPT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const update = z.object({
  result: z.object({
    status: z.string(),
    payment_preimage: z.string().optional(),
    failure_reason: z.string().optional(),
  }),
});

interface Answer {
  readonly status: number;
  /** The last line of the body; null when it is not JSON. */
  readonly last: unknown;
}

/**
 * The stream's error when the node was never asked to pay this hash. The same code as a plain answer means that there
 * is no such route.
 */
const notStarted = z.object({ error: z.object({ code: z.literal(5), message: z.literal("payment isn't initiated") }) });
/**
 * A gRPC status as JSON, in the stream or as a plain answer. An error without such a code does not come from the node.
 */
const grpcStatus = z.object({ code: z.number(), message: z.string() });
const failure = z.union([z.object({ error: grpcStatus }).transform(({ error }) => error), grpcStatus]);
/**
 * gRPC codes of a refusal before any attempt: invalid argument, not found, permission denied, failed precondition,
 * unauthenticated.
 */
const REFUSED_AT_ONCE = new Set([3, 5, 7, 9, 16]);

/**
 * Makes a payer of an LND node, over `/v2/router/send` and `/v2/router/track`. Both stream JSON objects, one per line.
 * The last one has the result.
 */
export function createLndPayer({ url, macaroon, certificate }: LndPayerOptions): LightningPayer {
  const base = url.replace(/\/+$/, '');

  async function ask(path: string, body?: object): Promise<Answer> {
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
    return { status: answer.status, last: parsed(lines.at(-1) ?? '') };
  }

  return {
    name: 'LND_PAYER_URL',
    limitsFee: true,
    async pay(invoice, { feeLimitMsat }) {
      const answer = await ask('/v2/router/send', {
        payment_request: invoice,
        timeout_seconds: ATTEMPT_SECONDS,
        fee_limit_msat: feeLimitMsat.toString(),
        no_inflight_updates: true,
      });
      const read = update.safeParse(answer.last);
      if (read.success && read.data.result.status === 'SUCCEEDED') return read.data.result.payment_preimage;
      if (read.success && read.data.result.status === 'FAILED') {
        throw new NotPaid(printable(read.data.result.failure_reason ?? 'the node does not say why'));
      }
      throw unclear(answer);
    },
    async find(_invoice, paymentHash) {
      const answer = await ask(`/v2/router/track/${inPath(paymentHash)}?no_inflight_updates=true`);
      const read = update.safeParse(answer.last);
      const result = read.success && answer.status === 200 ? read.data.result : null;
      if (result?.status === 'SUCCEEDED') return result.payment_preimage;
      if (result?.status === 'FAILED' || notStarted.safeParse(answer.last).success) return null;
      // Any other error is possible for a payment that arrived or will arrive. So it must not count as unpaid.
      throw new Error(printable(failure.safeParse(answer.last).data?.message ?? noFinalAnswer(answer)));
    },
    close: () => {},
  };
}

/**
 * A payment hash in a path of the node's REST gateway: base64 for URLs, with padding. The gateway cannot read it
 * without padding.
 */
function inPath(paymentHash: string): string {
  const bytes = Buffer.from(paymentHash, 'hex');
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/**
 * A line of an answer, or null when it is not JSON. The line is never part of an error, because it may hold a preimage.
 */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/**
 * The error for an answer that is not final. NotPaid when the node refused before any attempt; otherwise the payment
 * may be complete or in flight.
 */
function unclear(answer: Answer): Error {
  const refusal = failure.safeParse(answer.last);
  if (!refusal.success) return new Error(noFinalAnswer(answer));
  const { code, message } = refusal.data;
  const denied = /permission denied|macaroon|verification failed/i.test(message);
  const begun = /already (?:paid|exists)|in transition|in flight/i.test(message);
  const text = printable(message);
  return denied || (REFUSED_AT_ONCE.has(code) && !begun) ? new NotPaid(text) : new Error(text);
}

function noFinalAnswer({ status }: Answer): string {
  return `no final answer (status ${status})`;
}
