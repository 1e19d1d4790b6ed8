import { z } from 'zod';
import { printable } from '../pay/printable.ts';
import { NotPaid } from './lightning-not-paid.ts';
import type { LightningPayer } from './lightning-payer.ts';

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

interface Answer {
  readonly status: number;
  /** The last line of the body; null when it is no JSON. */
  readonly last: unknown;
}

/** How the stream says that the node was never asked to pay this. The same code beside the stream says that there is no such route. */
const neverBegun = z.object({ error: z.object({ code: z.literal(5), message: z.literal("payment isn't initiated") }) });
/** A gRPC status as JSON, in the stream or beside it. What has no such code is not the node's word. */
const grpcStatus = z.object({ code: z.number(), message: z.string() });
const failure = z.union([z.object({ error: grpcStatus }).transform(({ error }) => error), grpcStatus]);
/** gRPC's codes of a refusal before anything is tried: invalid argument, not found, permission denied, failed precondition, unauthenticated. */
const REFUSED_AT_ONCE = new Set([3, 5, 7, 9, 16]);

/** An LND node as payer, over `/v2/router/send` and `/v2/router/track`, which stream JSON objects, a line each; the last one tells. */
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
    async pay(invoice, { feeLimitMsat }) {
      const answer = await ask('/v2/router/send', {
        payment_request: invoice,
        timeout_seconds: ATTEMPT_SECONDS,
        fee_limit_msat: feeLimitMsat.toString(),
        no_inflight_updates: true,
      });
      const told = update.safeParse(answer.last);
      if (told.success && told.data.result.status === 'SUCCEEDED') return told.data.result.payment_preimage;
      if (told.success && told.data.result.status === 'FAILED') {
        throw new NotPaid(printable(told.data.result.failure_reason ?? 'the node does not say why'));
      }
      throw unclear(answer);
    },
    async find(_invoice, paymentHash) {
      const answer = await ask(`/v2/router/track/${inPath(paymentHash)}?no_inflight_updates=true`);
      const told = update.safeParse(answer.last);
      const result = told.success && answer.status === 200 ? told.data.result : null;
      if (result?.status === 'SUCCEEDED') return result.payment_preimage;
      if (result?.status === 'FAILED' || neverBegun.safeParse(answer.last).success) return null;
      // Anything else may be said of a payment that has arrived or will: it must not be taken for none.
      throw new Error(printable(failure.safeParse(answer.last).data?.message ?? noEnd(answer)));
    },
    close: () => {},
  };
}

/** A payment hash as the node's gateway wants bytes in a path: base64 for URLs with its padding, without which it reads none. */
function inPath(paymentHash: string): string {
  const bytes = Buffer.from(paymentHash, 'hex');
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** A line of an answer, or null for what is no JSON; never its text in an error, since a preimage may stand in it. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Refused before anything was tried, or no final answer: paid and in flight are two of the reasons for the latter. */
function unclear(answer: Answer): Error {
  const said = failure.safeParse(answer.last);
  if (!said.success) return new Error(noEnd(answer));
  const { code, message } = said.data;
  const denied = /permission denied|macaroon|verification failed/i.test(message);
  const begun = /already (?:paid|exists)|in transition|in flight/i.test(message);
  const text = printable(message);
  return denied || (REFUSED_AT_ONCE.has(code) && !begun) ? new NotPaid(text) : new Error(text);
}

function noEnd({ status }: Answer): string {
  return `no final answer (status ${status})`;
}
