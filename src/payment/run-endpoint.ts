import type { Endpoint } from '../catalogue/endpoint.ts';
import { AppError, UpstreamFailed } from '../errors.ts';

// The one place where a priced endpoint runs: it gets its parameters and a signal, and cannot know who pays.

interface RunContext<S> {
  readonly sources: S;
  readonly timeoutMs: number;
  /** Aborts when the buyer's connection closes. */
  readonly signal: AbortSignal;
}

/** A reply that fails its schema is never sold. Throws the endpoint's errors, UpstreamFailed (time-out), 499 (left). */
export async function runEndpoint<S>(endpoint: Endpoint<S>, params: unknown, context: RunContext<S>): Promise<Buffer> {
  const { sources, timeoutMs, signal } = context;
  const reply = await within(timeoutMs, signal, (deadline) => endpoint.run(params, sources, deadline));
  const parsed = endpoint.result.safeParse(reply);
  if (!parsed.success)
    throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
  return Buffer.from(JSON.stringify(parsed.data), 'utf8');
}

/** Rejects, and aborts the work's signal, when the connection closes or the time is over. Leaves no timer behind. */
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

/** 499 is nginx's status for a client that has left. The client never receives it. */
export function clientGone(): AppError {
  return new AppError(499, 'client_gone', 'the client closed the connection before the answer was ready');
}
