import type { z } from 'zod';
import { chainToken } from '../endpoints/chain/token.ts';
import { chainTx } from '../endpoints/chain/tx.ts';
import { chainUsyc } from '../endpoints/chain/usyc.ts';
import { chainWallet } from '../endpoints/chain/wallet.ts';
import { currencyConvert, currencyRates } from '../endpoints/currency.ts';
import { deploys, deploysHistory } from '../endpoints/deploys.ts';
import { domainsDns, domainsWhois } from '../endpoints/domains.ts';
import { feesEstimateFree, feesEstimatePaid } from '../endpoints/fees/estimate.ts';
import { fees } from '../endpoints/fees/fees.ts';
import { feesForecast } from '../endpoints/fees/forecast.ts';
import { fx, fxExecution } from '../endpoints/fx/fx.ts';
import { marketPrices } from '../endpoints/market-prices.ts';
import { activity, health, network } from '../endpoints/network.ts';
import { packagesNpm } from '../endpoints/packages/npm.ts';
import { packagesPypi } from '../endpoints/packages/pypi.ts';
import { packagesVulns } from '../endpoints/packages/vulns.ts';
import { rpc, rpcHealth } from '../endpoints/rpc.ts';
import { selftest, selftestFail } from '../endpoints/selftest.ts';
import type { Sources } from '../endpoints/sources.ts';
import { token } from '../endpoints/token.ts';
import { webCheck, webExtract } from '../endpoints/web.ts';
import { wikiArticle, wikiSearch, wikiSummary } from '../endpoints/wiki.ts';
import { createDns } from '../upstream/domains/dns.ts';
import { createRdap } from '../upstream/domains/rdap.ts';
import { createPackageSources } from '../upstream/packages.ts';
import { createFixings } from '../upstream/rates/ecb.ts';
import { createWiki } from '../upstream/wikipedia.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * The sources of other hosts, by the member that `run` takes. `wiring/sources.ts` makes each once, at the start. The
 * time-outs of those that one answer asks add up to less than `HANDLER_TIMEOUT_MS`.
 */
export const OTHERS = {
  packages: createPackageSources,
  dns: createDns,
  rdap: createRdap,
  currency: createFixings,
  wiki: createWiki,
};
export type Others = { readonly [N in keyof typeof OTHERS]: ReturnType<(typeof OTHERS)[N]> };

/** Everything that `run` may read from. */
export type AllSources = Sources & Others;

/** Every endpoint, in the order of the price list. What is not in this list is neither served nor described. */
export const catalogue: readonly Endpoint<AllSources>[] = Object.freeze([
  network,
  fees,
  feesEstimateFree,
  activity,
  deploys,
  rpc,
  fx,
  token,
  selftest,
  health,
  marketPrices,
  feesForecast,
  feesEstimatePaid,
  deploysHistory,
  rpcHealth,
  fxExecution,
  chainWallet,
  chainToken,
  chainTx,
  chainUsyc,
  webExtract,
  webCheck,
  packagesNpm,
  packagesPypi,
  packagesVulns,
  domainsDns,
  domainsWhois,
  currencyRates,
  currencyConvert,
  wikiSearch,
  wikiSummary,
  wikiArticle,
  selftestFail,
]);

/** What the free entries that pages show answer, by path. */
export interface Answers {
  readonly '/fees': z.output<typeof fees.result>;
  readonly '/fees/estimate': z.output<typeof feesEstimateFree.result>;
  readonly '/rpc': z.output<typeof rpc.result>;
  readonly '/health': z.output<typeof health.result>;
  readonly '/selftest': z.output<typeof selftest.result>;
}
