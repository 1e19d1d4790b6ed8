import { UpstreamFailed } from '../errors.ts';
import type { Header } from './block.ts';
import { eip1559Rule } from './fee-rule.ts';

/** On Arc the header's extra data is the next base fee as 8 bytes, big-endian. */
const ARC_EXTRA_DATA = /^0x[0-9a-fA-F]{16}$/;

/** A base fee in wei; `exact` when the chain itself announced it. */
export interface NextBaseFee {
  readonly wei: bigint;
  readonly exact: boolean;
}

/** The header's own base fee. Throws UpstreamFailed for a header without one: chains from before EIP-1559 are not supported. */
export function baseFeeOf(header: Header): bigint {
  if (header.baseFeeWei === null) throw new UpstreamFailed('chain', `block ${header.number} has no base fee`);
  return header.baseFeeWei;
}

/**
 * The base fee of the block after `header`. Arc writes it into the header, so it is exact.
 * For other chains EIP-1559's rule gives an estimate (`exact: false`), because a chain may have a rule of its own.
 */
export function nextBaseFee(header: Header): NextBaseFee {
  if (ARC_EXTRA_DATA.test(header.extraData)) {
    const announced = BigInt(header.extraData);
    // Arc's fees never fall below 1 wei, so a zero here is not a fee.
    if (announced > 0n) return { wei: announced, exact: true };
  }
  return { wei: nextByEip1559(baseFeeOf(header), header.gasUsed, header.gasLimit), exact: false };
}

/** The base fee after a block, by EIP-1559: the target is half of the gas limit, and the fee moves by at most an eighth. */
export function nextByEip1559(baseFee: bigint, gasUsed: bigint, gasLimit: bigint): bigint {
  return eip1559Rule({ gasLimit, floor: 0n })({ baseFee, smoothed: 0n }, gasUsed).baseFee;
}
