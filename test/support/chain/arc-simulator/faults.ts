import type { RpcCall } from '../../../../src/chain/rpc/wire.ts';

/** The faults of a whole HTTP request, or of its answer. */
export type SimFault =
  // Of the request:
  | 'hang'
  | 'reset'
  | 'http429'
  | 'limited'
  | 'garbage'
  | 'cutBatch'
  // Of the answer, well-formed but wrong:
  | 'missingReceipt'
  | 'foreignReceipt'
  | 'swappedLogs'
  | 'nullBlock'
  | 'otherBlock'
  | 'staleHead'
  | 'foreignChain';

export const CONTENT_FAULTS: readonly SimFault[] = [
  'missingReceipt',
  'foreignReceipt',
  'swappedLogs',
  'nullBlock',
  'otherBlock',
  'staleHead',
  'foreignChain',
];
const REQUEST_FAULTS: readonly SimFault[] = ['reset', 'http429', 'limited', 'garbage', 'cutBatch'];

/** A plan by seed: `share` of the requests fail. One in twenty of those is never answered, because a missing answer costs the test real time. */
export function faultPlan(random: () => number, share: number): () => SimFault | null {
  const [ofRequest, ofContent] = [REQUEST_FAULTS, CONTENT_FAULTS].map((list) => dealFrom(list, random));
  return () => {
    if (random() >= share) return null;
    if (random() < 0.05) return 'hang';
    return (random() < 0.5 ? ofRequest : ofContent)?.() ?? null;
  };
}

/** Deals every fault of the list in a random order, and then all of them again. Independent draws left kinds out of a whole run. */
function dealFrom(list: readonly SimFault[], random: () => number): () => SimFault | undefined {
  let left: SimFault[] = [];
  return () => {
    if (left.length === 0) left = [...list];
    return left.splice(Math.floor(random() * left.length), 1)[0];
  };
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;

/** Applies the fault to the result of one call. Results that the fault does not concern stay unchanged. */
export function spoil(fault: SimFault, { method }: Pick<RpcCall, 'method'>, result: unknown): unknown {
  if (method === 'eth_getBlockReceipts' && Array.isArray(result)) return spoilReceipts(fault, result as Json[]);
  if (method === 'eth_getLogs' && Array.isArray(result) && fault === 'swappedLogs') return result.toReversed();
  if (method !== 'eth_getBlockByNumber' || !isObject(result)) return result;
  if (fault === 'nullBlock') return null;
  if (fault === 'otherBlock') return { ...result, number: `0x${(Number(result.number) + 1).toString(16)}` };
  return result;
}

function spoilReceipts(fault: SimFault, receipts: Json[]): Json[] {
  const [first, ...rest] = receipts;
  if (!first) return receipts;
  if (fault === 'missingReceipt') return rest;
  if (fault === 'foreignReceipt') return [{ ...first, blockHash: `0x${'f0'.repeat(32)}` }, ...rest];
  if (fault === 'swappedLogs')
    return receipts.map((receipt) => ({ ...receipt, logs: (receipt.logs as unknown[]).toReversed() }));
  return receipts;
}
