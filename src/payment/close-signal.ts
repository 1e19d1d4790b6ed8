import type { ServerResponse } from 'node:http';
import { clientGone } from './run-endpoint.ts';

/**
 * Aborts with error 499 when the connection closes before the reply is sent. Work that waits on the signal then ends as a client's departure, not as
 * a fault.
 */
export function closeSignal({ raw }: { raw: ServerResponse }): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(clientGone());
  });
  return controller.signal;
}
