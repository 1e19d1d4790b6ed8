import { Unavailable } from '../errors.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { Payment } from '../store/ledger-port.ts';
import type { Ledger } from './ledger.ts';
import type { Order } from './order.ts';
import { PaymentRefused } from './refusal.ts';
import { clientGone, runEndpoint } from './run-endpoint.ts';
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

  return async (id, order, known, signal) => {
    const checkedBlock = await checkChain(id, order, known, signal);
    const body = await runEndpoint(order.endpoint, order.params, { sources, timeoutMs: handlerTimeoutMs, signal });
    if (signal.aborted) throw clientGone();
    const stored = await ledger.storeIntent(id, { signature: order.authorization.signature, checkedBlock, body });
    if (!stored) throw new Unavailable('reply_store_full', 'no room to keep another reply; try again later', 30);
    return { body, checkedBlock };
  };
}
