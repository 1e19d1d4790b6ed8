import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { domainSeparator } from './evm/eip3009.ts';
import { DOMAIN_SEPARATOR_CALLDATA, USDC_DOMAIN } from './evm/token.ts';
import type { Ledger } from './ledger.ts';
import type { RailProbe, RailProbes, Settling } from './settling.ts';

interface ReadinessOptions {
  config: Pick<Config, 'network' | 'rails'>;
  chain: Pick<ChainClient, 'request'>;
  ledger: Pick<Ledger, 'ping'>;
  settling: Pick<Settling, 'status' | 'probes' | 'detail'>;
}

interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/** Tells whether payments can be taken: the ledger answers, the chain is the right one, its USDC signs under our domain, it can be settled. */
export function createPaymentsReadiness({ config, chain, ledger, settling }: ReadinessOptions) {
  const { usdc, chainId } = config.network;
  const separator = bytesToHex(domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc)));

  async function checkDomain(): Promise<void> {
    const call = { to: usdc, data: DOMAIN_SEPARATOR_CALLDATA };
    const answer = await chain.request<string>('eth_call', [call, 'latest']);
    if (answer !== separator) throw new Error('the USDC contract has another EIP-712 domain');
  }

  return async () => ({
    ledger: await checked(ledger.ping),
    usdc: await checked(checkDomain),
    settlement: settlementState(settling.status('usdc-exact').unavailable(), settling.detail()),
    ...railChecks(settling.probes(), config.rails),
  });
}

/** A facilitator that does not settle for us ends the sales. The Gateway is one way among two: a fault of it is only shown. */
function railChecks(probes: RailProbes, { remote, gateway }: Config['rails']) {
  const unasked = { ok: false, detail: 'not asked yet' };
  return {
    ...(remote && { facilitator: withoutSender(probes.facilitator ?? unasked) }),
    ...(gateway && { gateway: onlyShown(probes.gateway ?? unasked) }),
  };
}

/** What `/readyz` shows of a rail: the sender's address is for trying payments out alone. */
function withoutSender({ ok, detail }: RailProbe): Check {
  return { ok, ...(detail !== undefined && { detail }) };
}

function onlyShown({ ok, detail }: RailProbe): Check {
  return ok ? { ok } : { ok: true, detail: `not offered well: ${detail}` };
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
