import { baseFeeOf } from '../chain/fees.ts';
import { kindOf, type TransactionKind } from '../chain/transaction.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { OperationCost } from '../store/chain/operation-costs.ts';
import type { AccountRow, BlockRow, DeployRow } from '../store/chain/rows.ts';
import { announcedFee, type CollectedBlock } from './blocks.ts';

/** The row of a block that was read whole. */
export function toBlockRow({ block: { header, transactions } }: CollectedBlock): BlockRow {
  const counts: Record<TransactionKind, number> = { deploy: 0, nativeTransfer: 0, tokenTransfer: 0, contractCall: 0 };
  for (const transaction of transactions) counts[kindOf(transaction)] += 1;
  return {
    number: header.number,
    at: header.at,
    hash: hexToBytes(header.hash),
    parentHash: hexToBytes(header.parentHash),
    baseFee: baseFeeOf(header),
    nextBaseFee: announcedFee(header),
    utilisation: header.gasLimit === 0n ? 0 : Number(header.gasUsed) / Number(header.gasLimit),
    gasLimit: header.gasLimit,
    transactions: transactions.length,
    deploys: counts.deploy,
    nativeTransfers: counts.nativeTransfer,
    tokenTransfers: counts.tokenTransfer,
    contractCalls: counts.contractCall,
  };
}

/** The rows of the contracts that a block's transactions created. */
export function toDeployRows({ block: { header }, created }: CollectedBlock): DeployRow[] {
  return created.map(({ address, deployer, transactionHash }) => ({
    block: header.number,
    at: header.at,
    address: hexToBytes(address),
    deployer: hexToBytes(deployer),
    transactionHash: hexToBytes(transactionHash),
  }));
}

/** The accounts that a block's transactions came from, were addressed to or created, each once. Failed transactions count too. */
export function toAccountRows({ block: { header, transactions }, created }: CollectedBlock): AccountRow[] {
  const seen = new Set(transactions.flatMap(({ from, to }) => (to === null ? [from] : [from, to])));
  for (const { address } of created) seen.add(address);
  return [...seen].map((account) => ({ block: header.number, at: header.at, account: hexToBytes(account) }));
}

/** The costs of a block's transactions. */
export function toCosts({ block: { header }, costs }: CollectedBlock): OperationCost[] {
  return costs.map((cost) => ({ ...cost, at: header.at, baseFee: baseFeeOf(header) }));
}
