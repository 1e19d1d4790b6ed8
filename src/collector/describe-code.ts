import { labelContracts } from '../chain/contracts.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { DeployReads } from '../store/chain/deploy-reads.ts';
import { DeployKinds } from '../store/chain/rows.ts';
import type { DescribeCode } from './context.ts';

/**
 * Labels new contracts when their code is read, and some of them later again, so that no request has to wait for a label.
 * A label holds what `labelContracts` finds, and another contract with exactly the same code.
 */
export function createDescribeCode(reads: Pick<DeployReads, 'withCode'>): DescribeCode {
  return async (deploys, chain, signal) => {
    const labels = await labelContracts(chain, deploys, { signal });
    // Newest first, so that the oldest of several contracts with one code stays in the map.
    const oldest = new Map(deploys.map(({ codeHash, address }) => [codeHash, address]));
    return deploys.map(({ address, code, codeHash }, at) => {
      const twin = code === '0x' ? null : (reads.withCode(hexToBytes(codeHash), address) ?? oldest.get(codeHash));
      const { text = null, isToken = false, isProxy = false } = labels[at] ?? {};
      const parts = [text, twin && twin !== address ? `same code as ${twin}` : null].filter((part) => part != null);
      const kinds = (isToken ? DeployKinds.token : 0) | (isProxy ? DeployKinds.proxy : 0);
      return { label: parts.length === 0 ? null : parts.join(', '), kinds };
    });
  };
}
