import { RpcError } from '../../chain/rpc/wire.ts';

/** Nodes' error messages for a call that the contract itself ended: geth's, then those of revm, which reth and anvil run. */
const GETH = /revert|out of gas|invalid opcode|stack|bad jump|invalid jump|write protection|return data out of bounds/i;
const REVM = /OutOfGas|InvalidFEOpcode|OpcodeNotFound|InvalidJump|OutOfOffset|StateChangeDuringStaticCall|InsideStatic/;

/**
 * Whether a contract ended a call: the error has code 3, as geth and reth answer a revert, or one of the messages that nodes use for it. Any other
 * error says nothing about the call.
 */
export function isRevert(error: unknown): boolean {
  return error instanceof RpcError && (error.code === 3 || GETH.test(error.message) || REVM.test(error.message));
}
