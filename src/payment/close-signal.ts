import type { ServerResponse } from 'node:http';

/** Aborts when the connection closes before the reply is out. */
export function closeSignal({ raw }: { raw: ServerResponse }): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort();
  });
  return controller.signal;
}
