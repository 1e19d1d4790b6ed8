import { decodeFunctionResult, parseAbi, toFunctionSelector } from 'viem';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import { bytesWords, word } from '../../evm/abi-words.ts';
import { transferCalldata } from '../../evm/token.ts';

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calldata calls) payable returns (Result[] memory returnData)',
]);

/** Multicall3, at the same address on Arc as everywhere. */
export const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

const AGGREGATE3 = toFunctionSelector('aggregate3((address,bool,bytes)[])');

/** One call that settles many: a transfer that fails takes no other with it. */
export function batchCalldata(usdc: `0x${string}`, authorizations: readonly Authorization[]): `0x${string}` {
  // Of each call: the target, that it may fail, and where its calldata begin.
  const head = word(hexToBytes(usdc)) + word(1n) + word(3n * 32n);
  const calls = authorizations.map((authorization) => head + bytesWords(hexToBytes(transferCalldata(authorization))));
  let offset = 32 * calls.length;
  const offsets = calls.map((call) => {
    const own = word(BigInt(offset));
    offset += call.length / 2;
    return own;
  });
  const list = [word(32n), word(BigInt(calls.length)), ...offsets, ...calls];
  return `${AGGREGATE3}${list.join('')}`;
}

/** Which of the batch's transfers went through, in order, by the answer of a simulated call. Throws when it is no such answer. */
export function batchOutcomes(answer: `0x${string}`, count: number): boolean[] {
  const results = decodeFunctionResult({ abi, functionName: 'aggregate3', data: answer });
  if (results.length !== count) throw new Error('the simulated batch answered for another number of calls');
  return results.map(({ success }) => success);
}
