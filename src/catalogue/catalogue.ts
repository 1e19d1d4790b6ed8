import { activity } from '../endpoints/activity.ts';
import { chainToken } from '../endpoints/chain-token.ts';
import { chainTx } from '../endpoints/chain-tx.ts';
import { chainUsyc } from '../endpoints/chain-usyc.ts';
import { chainWallet } from '../endpoints/chain-wallet.ts';
import { currencyConvert } from '../endpoints/currency-convert.ts';
import { currencyRates } from '../endpoints/currency-rates.ts';
import { deploys } from '../endpoints/deploys.ts';
import { deploysHistory } from '../endpoints/deploys-history.ts';
import { domainsDns } from '../endpoints/domains-dns.ts';
import { domainsWhois } from '../endpoints/domains-whois.ts';
import { fees } from '../endpoints/fees.ts';
import { feesEstimateFree, feesEstimatePaid } from '../endpoints/fees-estimate.ts';
import { feesForecast } from '../endpoints/fees-forecast.ts';
import { fx } from '../endpoints/fx.ts';
import { fxExecution } from '../endpoints/fx-execution.ts';
import { health } from '../endpoints/health.ts';
import { marketPrices } from '../endpoints/market-prices.ts';
import { network } from '../endpoints/network.ts';
import { packagesNpm } from '../endpoints/packages-npm.ts';
import { packagesPypi } from '../endpoints/packages-pypi.ts';
import { packagesVulns } from '../endpoints/packages-vulns.ts';
import { rpc } from '../endpoints/rpc.ts';
import { rpcHealth } from '../endpoints/rpc-health.ts';
import { selftest } from '../endpoints/selftest.ts';
import { selftestFail } from '../endpoints/selftest-fail.ts';
import type { Sources } from '../endpoints/sources.ts';
import { token } from '../endpoints/token.ts';
import { webCheck } from '../endpoints/web-check.ts';
import { webExtract } from '../endpoints/web-extract.ts';
import { wikiArticle } from '../endpoints/wiki-article.ts';
import { wikiSearch } from '../endpoints/wiki-search.ts';
import { wikiSummary } from '../endpoints/wiki-summary.ts';
import type { Endpoint } from './endpoint.ts';

/** Every endpoint of the service, in the order of the price list. An endpoint that is not in this list is neither served nor described. */
export const catalogue: readonly Endpoint<Sources>[] = Object.freeze([
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
