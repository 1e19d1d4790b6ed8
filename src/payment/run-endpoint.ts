import type { Endpoint } from '../catalogue/endpoint.ts';
import { AppError, UpstreamFailed } from '../errors.ts';

/** What a run needs beside the endpoint and its parameters. */
interface RunContext<S> {
  readonly sources: S;
  readonly timeoutMs: number;
  /** Aborts when the buyer's connection is gone. */
  readonly signal: AbortSignal;
}

/**
 * Runs a priced endpoint within its time and returns the reply's bytes. A reply that breaks its own schema is our bug and never sold.
 * Throws whatever the endpoint throws, UpstreamFailed when it takes too long, 499 when nobody listens any more.
 */
export async function runEndpoint<S>(endpoint: Endpoint<S>, params: unknown, context: RunContext<S>): Promise<Buffer> {
  const { sources, timeoutMs, signal } = context;
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const reply = await Promise.race([endpoint.run(params, sources, deadline), aborted(deadline)]);
  const parsed = endpoint.result.safeParse(reply);
  if (!parsed.success)
    throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
  return Buffer.from(JSON.stringify(parsed.data), 'utf8');
}

/** Rejects when the signal aborts: the buyer has gone, or the handler took too long. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => {
      const late = (signal.reason as Error | undefined)?.name === 'TimeoutError';
      reject(late ? new UpstreamFailed('endpoint', 'no answer in time') : clientGone());
    };
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** Nobody hears it. 499 is nginx's number for it. */
export function clientGone(): AppError {
  return new AppError(499, 'client_gone', 'the client closed the connection before the answer was ready');
}
