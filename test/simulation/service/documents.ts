import { setImmediate as turn } from 'node:timers/promises';

// In place of the documents that a start would make anew each time (`llms.txt`, the search index): nothing of them is asked for here.

export const createLlmsText = (): string => '';
/** Other work has its turn meanwhile, as with the real one. */
export async function takeSnapshot(): Promise<object> {
  await turn();
  return { index: { close: () => undefined } };
}
