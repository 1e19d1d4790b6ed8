import { TRANSFER_TOPIC } from './abi.ts';
import type { Log } from './transaction.ts';

/** Arc logs every movement of native USDC from this address (EIP-7708), with 18 decimals. */
export const ARC_SYSTEM_ADDRESS = '0xfffffffffffffffffffffffffffffffffffffffe';
/** USDC has 6 decimals through its ERC-20 contract, and 18 as the native currency. */
const NATIVE_PER_UNIT = 10n ** 12n;

/** One movement of one token; `token` is the log's emitter, `amount` in its base units. */
export interface Transfer {
  readonly token: `0x${string}`;
  readonly from: `0x${string}`;
  readonly to: `0x${string}`;
  readonly amount: bigint;
  readonly logIndex: number;
}

/**
 * Every ERC-20 movement in a transaction's logs, each once, in the order of the logs.
 * On Arc a movement through the USDC contract logs twice: the system's log first, then the token's own with the same parties
 * and value / 10^12. Such a pair becomes one transfer of the token. A system log without a partner (a plain native send) becomes a transfer of its own.
 */
export function decodeTransfers(logs: readonly Log[], usdc: string): Transfer[] {
  const kept: Transfer[] = [];
  for (const transfer of logs.map(decodeTransfer)) {
    if (transfer === null) continue;
    if (transfer.token === usdc.toLowerCase()) {
      // The nearest system log before it, so that an earlier native send of the same amount is still counted.
      const mirror = kept.findLastIndex((earlier) => isMirror(earlier, transfer));
      if (mirror !== -1) kept.splice(mirror, 1);
    }
    kept.push(transfer);
  }
  return kept;
}

function isMirror(system: Transfer, own: Transfer): boolean {
  return (
    system.token === ARC_SYSTEM_ADDRESS &&
    system.from === own.from &&
    system.to === own.to &&
    system.amount === own.amount * NATIVE_PER_UNIT
  );
}

/** An ERC-20 Transfer has three topics and one word of data; ERC-721 indexes the token id as a fourth topic and is left out. */
function decodeTransfer(log: Log): Transfer | null {
  const [topic, from, to] = log.topics;
  if (topic !== TRANSFER_TOPIC || log.topics.length !== 3 || log.data.length !== 66) return null;
  const sender = toAddress(from);
  const recipient = toAddress(to);
  if (sender === null || recipient === null) return null;
  return { token: log.address, from: sender, to: recipient, amount: BigInt(log.data), logIndex: log.logIndex };
}

function toAddress(topic: string | undefined): `0x${string}` | null {
  return topic?.startsWith(`0x${'0'.repeat(24)}`) ? `0x${topic.slice(26)}` : null;
}
