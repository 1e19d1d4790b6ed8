import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { createHeads } from '../../../src/chain/rpc/heads.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import type { MinedCost } from '../../../src/payment/relayer/gas.ts';
import { createRelayer } from '../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import { createChainCheck } from '../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import { openClient } from '../chain/client.ts';

const YEAR_MS = 31_536_000_000;

/** The real relayer with a key of its own over an embedded network. It notes in memory what it sends. */
export async function openChainRelayer(network: EmbeddedNetwork, clock: Clock = systemClock) {
  const { usdc, chainId, rpcUrl } = network;
  const account = createAccount();
  await network.fundNative(account.address, 10n ** 20n);
  // Tests move the chain's clock ahead, and a lone provider's head is bounded by ours.
  const late = { ...systemClock, nowMs: () => systemClock.nowMs() + YEAR_MS };
  const chain = openClient({ rpcUrls: [rpcUrl], chainId, timeoutMs: 60_000, clock: late });
  const wallet = createWallet(account.privateKey, chainId);
  const heads = createHeads([network.wsUrl], { warn: () => {} });
  const mined: MinedCost[] = [];
  const warnings: string[] = [];
  const check = createChainCheck(chain, usdc, () => wallet.address);
  const relayer = createRelayer({
    chain,
    usdc,
    wallet,
    clock,
    pollMs: 200,
    gatherMs: 100,
    blockSharePercent: 60,
    stallMs: 20_000,
    check,
    evidence: createEvidence(chain, usdc),
    token: { check: async () => true },
    isCareful: () => false,
    onHead: heads.listen,
    noteBroadcast: async (entries) => new Set(entries.map(({ id }) => id)),
    onMined: (cost) => mined.push(cost),
    log: { warn: (_, message) => warnings.push(message) },
  });
  return {
    relayer,
    chain,
    check,
    wallet,
    mined,
    warnings,
    close: async (): Promise<void> => {
      await relayer.stop();
      heads.close();
      await chain.close();
    },
  };
}
