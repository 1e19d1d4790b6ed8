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
  const reply = await within(timeoutMs, signal, (deadline) => endpoint.run(params, sources, deadline));
  const parsed = endpoint.result.safeParse(reply);
  if (!parsed.success)
    throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
  return Buffer.from(JSON.stringify(parsed.data), 'utf8');
}

/** Rejects, and aborts the work's own signal, when the buyer has gone or the work takes too long. A timer and two listeners, gone with the work. */
async function within<T>(ms: number, signal: AbortSignal, work: (deadline: AbortSignal) => Promise<T>): Promise<T> {
  const control = new AbortController();
  const stop = Promise.withResolvers<never>();
  const end = (error: Error, reason: unknown) => {
    stop.reject(error);
    control.abort(reason);
  };
  const leave = () => end(clientGone(), signal.reason);
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  const timer = setTimeout(() => {
    const late = new UpstreamFailed('endpoint', 'no answer in time');
    end(late, late);
  }, ms);
  try {
    return await Promise.race([work(control.signal), stop.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

/** Nobody hears it. 499 is nginx's number for it. */
export function clientGone(): AppError {
  return new AppError(499, 'client_gone', 'the client closed the connection before the answer was ready');
}
