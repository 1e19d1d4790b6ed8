import type { ServerResponse } from 'node:http';
import { clientGone } from './run-endpoint.ts';

/** Aborts when the connection closes before the reply is out, with 499 as its reason: what waits for it ends as a client's leaving, not as a fault. */
export function closeSignal({ raw }: { raw: ServerResponse }): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(clientGone());
  });
  return controller.signal;
}
