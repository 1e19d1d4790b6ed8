import { RpcError } from '../../chain/client.ts';

/** How nodes name a call that the contract itself ended. */
const REVERTED = /revert|out of gas|invalid opcode|stack|bad jump/i;

/**
 * Whether a contract ended a call: the error has code 3, as geth and reth answer a revert, or one of the messages that nodes use for it. Any other
 * error says nothing about the call.
 */
export function isRevert(error: unknown): boolean {
  return error instanceof RpcError && (error.code === 3 || REVERTED.test(error.message));
}
