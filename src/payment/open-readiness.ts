import type { ProviderStatus } from '../chain/rpc/agreed-head.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Ledger } from './ledger.ts';
import { type RailList, railsUnder } from './open-rails.ts';
import type { RailInfo } from './rail.ts';
import type { RailProbe } from './settler.ts';
import type { Settling } from './settling.ts';
import { DOMAIN_SEPARATOR_CALLDATA, domainSeparator, USDC_DOMAIN } from './usdc/token.ts';

interface ReadinessOptions {
  config: Pick<Config, 'network' | 'rails'>;
  chain: Pick<ChainClient, 'request' | 'agreed'>;
  ledger: Pick<Ledger, 'ping'>;
  settling: Pick<Settling, 'status' | 'probes' | 'detail'>;
  railList: RailList;
}

interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/**
 * Checks whether payments can be taken. `needed`: the ledger answers, the chain's USDC contract has the EIP-712 domain that payers sign for, the first
 * rail can settle, and so can the service that it cannot settle without. `others`: whether each other rail sells. It is one of several ways to pay, so
 * it does not make the process unready.
 */
export function createPaymentsReadiness({ config, chain, ledger, settling, railList }: ReadinessOptions) {
  const [{ info: first }] = railList;
  const { usdc, chainId } = config.network;
  const separator = bytesToHex(domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc)));

  async function checkDomain(): Promise<void> {
    const call = { to: usdc, data: DOMAIN_SEPARATOR_CALLDATA };
    const answer = await chain.request<string>('eth_call', [call, 'latest']);
    if (answer !== separator) throw new Error('the USDC contract has another EIP-712 domain');
  }

  const probeOf = (service: string): RailProbe => settling.probes()[service] ?? { ok: false, detail: 'not asked yet' };

  /** The check of a rail's service, or of a rail without one. Sales do not read these checks: they stop when the rail's settler is unavailable. */
  function checkOf({ name, service }: RailInfo): { name: string; isNeeded: boolean; check: Check } {
    const remote = service(config.rails);
    if (remote?.isVital) return { name: remote.name, isNeeded: true, check: withoutSender(probeOf(remote.name)) };
    const probe: RailProbe = remote ? probeOf(remote.name) : { ok: true };
    const unproven = probe.ok ? null : `no successful probe: ${probe.detail}`;
    const reason = settling.status(name).unavailable() ?? unproven;
    return { name: remote?.name ?? name, isNeeded: false, check: settlementState(reason, null) };
  }

  return async () => {
    const ofRails = railsUnder(config.rails, railList)
      .filter((info) => info !== first || info.service(config.rails) !== null)
      .map(checkOf);
    const checksOf = (isNeeded: boolean) =>
      Object.fromEntries(ofRails.filter((one) => one.isNeeded === isNeeded).map(({ name, check }) => [name, check]));
    return {
      needed: {
        ledger: await checked(ledger.ping),
        usdc: await checked(checkDomain),
        settlement: settlementState(settling.status(first.name).unavailable(), settling.detail()),
        // One provider's word alone decides. There is nothing to agree on.
        ...(chain.agreed.witnesses > 1 && {
          rpc: settlementState(chain.agreed.whyUnconfirmed(), wordsOf(chain.agreed.providers())),
        }),
        ...checksOf(true),
      } as Record<string, Check>,
      others: checksOf(false),
    };
  };
}

/** What `/readyz` shows of a probe. It omits the sender's address, which only simulations use. */
function withoutSender({ ok, detail }: RailProbe): Check {
  return { ok, ...(detail !== undefined && { detail }) };
}

/** Which providers count for nothing now, and why; null while all count. */
function wordsOf(providers: readonly ProviderStatus[]): string | null {
  const words = providers.flatMap(({ host, isApart, isFar, isPresent, aheadBlocks }) => {
    if (isApart) return `${host} is set apart: two others contradict it`;
    if (isFar) return `${host} is ${Math.abs(aheadBlocks ?? 0)} blocks ${(aheadBlocks ?? 0) < 0 ? 'behind' : 'ahead'}`;
    return isPresent ? [] : `${host} does not answer`;
  });
  return words.length === 0 ? null : words.join('; ');
}

function settlementState(shortage: string | null, note: string | null): Check {
  const detail = shortage ?? note;
  return { ok: shortage === null, ...(detail !== null && { detail }) };
}

async function checked(look: () => Promise<void>): Promise<Check> {
  try {
    await look();
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}
