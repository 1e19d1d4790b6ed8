import { GAS_LIMIT, type SimBlock } from './chain.ts';
import { hex } from './transactions.ts';

/** A block as Arc's nodes write it: the next base fee is the header's extra data, 8 bytes. */
export function blockJson(block: SimBlock, whole: boolean) {
  const { number, hash, parentHash, at, baseFee, nextBaseFee, gasUsed } = block;
  return {
    number: hex(number),
    hash,
    parentHash,
    timestamp: hex(at),
    gasUsed: hex(gasUsed),
    gasLimit: hex(GAS_LIMIT),
    baseFeePerGas: hex(baseFee),
    extraData: number === 0 ? '0x' : `0x${nextBaseFee.toString(16).padStart(16, '0')}`,
    transactions: block.transactions.map((tx, index) =>
      whole
        ? {
            hash: tx.hash,
            blockHash: hash,
            blockNumber: hex(number),
            transactionIndex: hex(index),
            from: tx.from,
            to: tx.to,
            input: tx.input,
            value: hex(tx.value),
            nonce: '0x0',
            type: '0x2',
          }
        : tx.hash,
    ),
  };
}

/** The logs of a block with their places. */
export function logsJson(block: SimBlock) {
  let logIndex = 0;
  return block.transactions.map((tx, index) =>
    tx.logs.map((log) => ({
      ...log,
      blockHash: block.hash,
      blockNumber: hex(block.number),
      transactionHash: tx.hash,
      transactionIndex: hex(index),
      logIndex: hex(logIndex++),
      removed: false,
    })),
  );
}

/** All receipts of a block. */
export function receiptsJson(block: SimBlock) {
  const logs = logsJson(block);
  let cumulative = 0;
  return block.transactions.map((tx, index) => {
    cumulative += tx.gasUsed;
    return {
      transactionHash: tx.hash,
      transactionIndex: hex(index),
      blockHash: block.hash,
      blockNumber: hex(block.number),
      from: tx.from,
      to: tx.to,
      status: tx.ok ? '0x1' : '0x0',
      contractAddress: tx.created,
      gasUsed: hex(tx.gasUsed),
      cumulativeGasUsed: hex(cumulative),
      effectiveGasPrice: hex(block.baseFee),
      logs: logs[index]!,
    };
  });
}
