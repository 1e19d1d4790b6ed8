import type { Ledger } from './ledger.ts';
import type { Order } from './order.ts';
import type { Verified } from './rail.ts';
import { replyStoreFull } from './refusal.ts';
import { clientGone, runEndpoint } from './run-endpoint.ts';

interface ServeOptions<S> {
  ledger: Ledger;
  sources: S;
  handlerTimeoutMs: number;
}

/** The store failed while it stored the intent, and may have stored it. When a connection breaks during a commit, no process learns the result. */
export class IntentInDoubt extends Error {}

/**
 * Serves a reserved and verified order and returns the reply. When it throws, nothing is kept, except perhaps on IntentInDoubt. The caller releases
 * the reservation.
 */
export type Serve<S> = (id: string, order: Order<S>, verified: Verified, signal: AbortSignal) => Promise<Uint8Array>;

const callOf = <S>({ payment: { call } }: Order<S>) => call && { calldata: call.data };

/** Steps 9 to 11 of a paid request: the handler, the reply's check, the stored intent. */
export function createServe<S>(options: ServeOptions<S>): Serve<S> {
  const { ledger, sources, handlerTimeoutMs } = options;

  return async (id, order, { checkedBlock, hasCode }, signal) => {
    const body = await runEndpoint(order.endpoint, order.params, { sources, timeoutMs: handlerTimeoutMs, signal });
    if (signal.aborted) throw clientGone();
    const intent = {
      signature: order.authorization.signature,
      checkedBlock,
      payerHasCode: hasCode,
      body,
      ...callOf(order),
    };
    const stored = await ledger.storeIntent(id, intent).catch((cause) => {
      throw new IntentInDoubt('the intent was not stored for certain', { cause });
    });
    if (!stored) throw replyStoreFull();
    return body;
  };
}
