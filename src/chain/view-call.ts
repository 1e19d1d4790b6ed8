import type { RpcCall } from './rpc/call.ts';
import { toQuantity } from './rpc/wire.ts';

/** Gas limit of each call, 1,000,000. Reading a name takes some ten thousand gas, through a proxy too; a call that needs more would only load the node. */
const CALL_GAS = '0xf4240';

/** The read of a third party's contract with this input, at a block. */
export function viewCall(to: string, input: string, block: number | 'latest'): RpcCall {
  return {
    method: 'eth_call',
    params: [{ to, data: input, gas: CALL_GAS }, block === 'latest' ? block : toQuantity(block)],
  };
}
