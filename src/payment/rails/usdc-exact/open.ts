import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Config } from '../../../config.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import { type Authorization, paymentKey } from '../../authorization.ts';
import { createTransferBooks } from '../../evm/books.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { domainSeparator } from '../../evm/eip712.ts';
import { authorizationDigest, MOST_VALIDITY_SECONDS, neededValidity } from '../../evm/eip3009.ts';
import type { Evidence } from '../../evm/evidence.ts';
import { type ContractBudget, createSignatureCheck } from '../../evm/signature.ts';
import { USDC_DOMAIN } from '../../evm/token.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { Ledger } from '../../ledger.ts';
import type { OpenRail, PurchaseRail } from '../../rail.ts';
import type { RailStatus } from '../../settling.ts';
import { exactInfo } from './describe.ts';
import { type FacilitatedNeeds, openFacilitated } from './facilitated.ts';
import { createExactRail } from './rail.ts';
import { openRelayed } from './relayed.ts';

interface ExactNeeds extends FacilitatedNeeds {
  config: Config;
  ledger: Pick<Ledger, 'openBefore' | 'hasSettled'>;
  check: ChainCheck;
  contracts: ContractBudget;
  evidence: Evidence;
  token: TokenWatch;
  chain: ChainClient;
  balanceContracts: readonly Uint8Array[];
}

/** Opens the plain rail: authorizations of the token itself, settled by our relayer or by a facilitator. */
export function openExact(needs: ExactNeeds, status: RailStatus): OpenRail {
  const { rails, network } = needs.config;
  const { remote } = rails;
  const books = createTransferBooks({ chain: needs.chain, evidence: needs.evidence, usdc: network.usdc });
  return {
    info: exactInfo,
    // This rail checks every payment that no other rail recognises.
    recognises: () => true,
    purchase: openPurchase(needs, status),
    openSettling: (terms) => ({
      ...(remote ? openFacilitated(remote, needs, terms) : openRelayed(needs.evidence, terms)),
      books,
    }),
  };
}

function openPurchase(needs: ExactNeeds, status: RailStatus): PurchaseRail {
  const { config, ledger, check, contracts, evidence, balanceContracts, clock } = needs;
  const { usdc, chainId, caip2: network } = config.network;
  const contract = hexToBytes(usdc);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, contract);
  const digestOf = (authorization: Authorization) => authorizationDigest(authorization, separator);
  const hasPaid = (authorization: Authorization) => ledger.hasSettled(paymentKey(authorization, network, contract));
  const checkSignature = createSignatureCheck({ check, digestOf, status, hasPaid, contracts });
  const validity = { least: neededValidity(config), most: MOST_VALIDITY_SECONDS };
  const parts = { ledger, balanceContracts, check, evidence, status, checkSignature };
  const isSoldAt = (price: bigint): boolean => exactInfo.sells?.(price, config.rails) ?? true;
  return createExactRail({ ...parts, isSoldAt, validity, network, usdc, clock });
}
