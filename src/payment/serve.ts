import { AppError, Unavailable, UpstreamFailed } from '../errors.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { Payment } from '../store/ledger-port.ts';
import type { Ledger } from './ledger.ts';
import type { Order } from './order.ts';
import { PaymentRefused } from './refusal.ts';
import { paymentKey } from './usdc/authorization.ts';
import type { ChainCheck } from './usdc/chain-check.ts';
import type { Evidence } from './usdc/evidence.ts';

interface ServeOptions<S> {
  ledger: Ledger;
  check: ChainCheck;
  evidence: Evidence;
  sources: S;
  network: string;
  usdc: `0x${string}`;
  handlerTimeoutMs: number;
}

/** A stored reply, and where a search for its payment on the chain starts. */
export interface Served {
  readonly body: Uint8Array;
  readonly checkedBlock: number;
}

/** Serves a reserved order, or throws with nothing kept; the caller gives the reservation back. */
export type Serve<S> = (id: string, order: Order<S>, known: Payment | null, signal: AbortSignal) => Promise<Served>;

/** Steps 7 to 10 of a paid request: the chain read, the handler, the reply's check, the stored intent. */
export function createServe<S>(options: ServeOptions<S>): Serve<S> {
  const { ledger, check, evidence, sources, network, handlerTimeoutMs } = options;
  const contract = hexToBytes(options.usdc);

  /** Returns the block up to which the authorization was unused; `known` is a row that had failed before. */
  async function checkChain(id: string, order: Order<S>, known: Payment | null, signal: AbortSignal): Promise<number> {
    const { authorization } = order;
    const reading = await check.read(authorization, signal);
    const since = known?.checkedBlock ?? reading.block;
    if (reading.used) {
      // Somebody may have sent what our reverted transaction showed the world: then its buyer has paid and is owed the answer.
      const verdict = known ? await evidence.lookup(authorization, since) : null;
      if (verdict?.kind === 'settled') return since;
      throw new PaymentRefused('invalid_exact_evm_nonce_already_used');
    }
    const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id);
    if (reading.balance < authorization.value + promised) {
      throw new PaymentRefused('invalid_exact_evm_insufficient_balance');
    }
    if (reading.hasCode) await check.simulate(authorization, signal);
    return since;
  }

  async function runHandler(order: Order<S>, signal: AbortSignal): Promise<Uint8Array> {
    const { endpoint, params } = order;
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(handlerTimeoutMs)]);
    const reply = await Promise.race([endpoint.run(params, sources, deadline), aborted(deadline)]);
    const parsed = endpoint.result.safeParse(reply);
    // Not the buyer's fault and not a secret: a reply that breaks its own schema is never sold.
    if (!parsed.success)
      throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
    return Buffer.from(JSON.stringify(parsed.data), 'utf8');
  }

  return async (id, order, known, signal) => {
    const checkedBlock = await checkChain(id, order, known, signal);
    const body = await runHandler(order, signal);
    if (signal.aborted) throw clientGone();
    const stored = await ledger.storeIntent(id, { signature: order.authorization.signature, checkedBlock, body });
    if (!stored) throw new Unavailable('reply_store_full', 'no room to keep another reply; try again later', 30);
    return { body, checkedBlock };
  };
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
function clientGone(): AppError {
  return new AppError(499, 'client_gone', 'the client closed the connection before the answer was ready');
}
