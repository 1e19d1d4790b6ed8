import { describe, expect, test } from 'vitest';
import { RpcError } from '../../../../src/chain/rpc/wire.ts';
import { isRevert } from '../../../../src/payment/usdc/payer-reads.ts';

describe('an error of a node says that the contract ended the call', () => {
  test.each([
    [3, 'no words that are known'],
    [-32000, 'execution reverted: Pausable: paused'],
    [-32000, 'Out of gas'],
    [-32000, 'invalid opcode: INVALID'],
    [-32000, 'stack underflow (0 <=> 2)'],
    [-32000, 'BadJumpDestination: bad jump'],
    [-32000, 'invalid jump destination'],
    [-32000, 'write protection'],
    [-32003, 'EVM error InvalidFEOpcode'],
    [-32003, 'EVM error: OutOfOffset'],
    [-32003, 'EVM error StateChangeDuringStaticCall'],
  ])('with code %i and "%s"', (code, message) => {
    expect(isRevert(new RpcError(code, message))).toBe(true);
  });

  test.each([
    [-32000, 'header not found'],
    [-32005, 'limit exceeded'],
    [-32003, 'insufficient funds for gas'],
  ])('but not with code %i and "%s"', (code, message) => {
    expect(isRevert(new RpcError(code, message))).toBe(false);
  });

  test('and an error of another kind never says so', () => {
    expect(isRevert(new Error('execution reverted'))).toBe(false);
  });
});
