import type { Agreed } from '../../../src/chain/rpc/trust.ts';
import type { RpcOptions } from '../../../src/chain/rpc/wire.ts';

/** What a lone provider agrees on with itself. `readHead` asks it for its head, as a number or a JSON-RPC quantity. */
export function aloneAgreed(readHead: (options?: RpcOptions) => Promise<number | string>): Agreed {
  return {
    witnesses: 1,
    head: async (options) => Number(await readHead(options)),
    lastHead: () => null,
    whyUnconfirmed: () => null,
    providers: () => [],
  };
}
