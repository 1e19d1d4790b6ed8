import { decodeFunctionResult, encodeFunctionResult, parseAbi, toFunctionSelector } from 'viem/utils';
import { hexToBytes } from '../../../lib/hex.ts';
import type { SettleCall } from '../../usdc/checks.ts';
import { bytesWords, hexWord } from '../../usdc/token.ts';

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calldata calls) payable returns (Result[] memory returnData)',
]);

/** Multicall3. It has the same address on Arc as on other chains. */
export const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

const MAY_FAIL_AND_OFFSET = hexWord(1n) + hexWord(3n * 32n);
const AGGREGATE3 = toFunctionSelector('aggregate3((address,bool,bytes)[])');

/** Makes one call that settles many payments. A failed one does not fail the others. */
export function batchCalldata(settling: readonly Pick<SettleCall, 'to' | 'data'>[]): `0x${string}` {
  // Each call has the target, the permission to fail, and the offset of its calldata.
  const calls = settling.map(
    ({ to, data }) => hexWord(hexToBytes(to)) + MAY_FAIL_AND_OFFSET + bytesWords(hexToBytes(data)),
  );
  let offset = 32 * calls.length;
  const offsets = calls.map((call) => {
    const own = hexWord(BigInt(offset));
    offset += call.length / 2;
    return own;
  });
  const list = [hexWord(32n), hexWord(BigInt(calls.length)), ...offsets, ...calls];
  return `${AGGREGATE3}${list.join('')}`;
}

/** Reads from the answer of a simulated call which of the batch's calls succeeded, in order. Throws when the answer has another form. */
export function batchOutcomes(answer: `0x${string}`, count: number): boolean[] {
  const results = decodeFunctionResult({ abi, functionName: 'aggregate3', data: answer });
  if (results.length !== count) throw new Error('the simulated batch answered for another number of calls');
  return results.map(({ success }) => success);
}

/** Makes the answer of a simulated batch whose calls ended like this, in order. `batchOutcomes` reads it. */
export function batchAnswer(outcomes: readonly boolean[]): `0x${string}` {
  const result = outcomes.map((success) => ({ success, returnData: '0x' as const }));
  return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
}
