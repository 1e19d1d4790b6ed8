import type { PaymentRequirements } from '@x402/core/types';
import type { Logger } from 'pino';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Running } from '../payment/checkout.ts';
import { type ChallengeSecrets, withAuthSchemes } from '../payment/http-auth.ts';
import { createLightning, createLightningDescriptor, type Lightning } from '../payment/lightning/open.ts';
import { createLightningCheckout, quote402, quoteAccepts, type WriteQuote } from '../payment/lightning/rail.ts';
import type { TimeSales } from '../payment/metrics.ts';
import type { Demand, QuotedProtocol } from '../payment/protocol.ts';
import { createL402 } from '../payment/protocols/l402/l402.ts';
import { createMppLightning } from '../payment/protocols/mpp/lightning.ts';
import { x402Http } from '../payment/protocols/x402/http.ts';
import { sharersOf } from '../payment/settling.ts';
import type { LightningStore } from '../store/ports/lightning.ts';
import type { OpenLedger } from './ledger.ts';
import type { createOutgoing } from './sources.ts';
import { type Challenges, type CheckoutOf, wordsOfRefusal } from './surfaces.ts';

// How this process sells for bitcoin: the rail over this ledger, its checkouts for routes and tools, the protocols in
// which it asks, and what describes it.

interface LightningParts<S> {
  config: Config;
  ledger: Pick<OpenLedger, 'bootId' | 'instance' | 'windows' | 'leads'>;
  store: LightningStore;
  outgoing: Pick<ReturnType<typeof createOutgoing>, 'upstreams'>;
  challenges: Challenges;
  running: Running<S>;
  timed: TimeSales;
  clock: Clock;
  log: Logger;
}

export function openLightning<S>({ config, ledger, outgoing, challenges, running, ...parts }: LightningParts<S>) {
  const { clock } = parts;
  const { bootId, instance, windows } = ledger;
  const lightning = createLightning({
    ...parts,
    config,
    upstreams: outgoing.upstreams,
    bootId,
    runsMaintenance: ledger.leads,
    isAlone: !instance,
    sharedBy: sharersOf(instance?.settledBy),
    windows,
  });
  const { network, payTo, rates } = lightning;
  const rail = { ...lightning.rail, sell: parts.timed('lightning', lightning.rail.sell) };
  const protocol = lightningProtocol(challenges.secrets, challenges.realm, clock);
  const checkouts = createLightningCheckouts({ rail, network }, running, config);
  return {
    ...lightning,
    protocol,
    routes: checkouts.routes(protocol),
    tools: checkouts.tools,
    /** What `GET /v1/lightning` answers. `catalogue`: what documents name. */
    describe: (catalogue: readonly Endpoint<never>[]) =>
      createLightningDescriptor(clock, catalogue, network, payTo, rates),
  };
}

/** Most L402 clients read only the first line of WWW-Authenticate, so L402 stands before `Payment`. */
export function lightningProtocol(secrets: ChallengeSecrets, realm: string, clock: Clock): QuotedProtocol {
  return withAuthSchemes(x402Http, [createL402(secrets, clock), createMppLightning(secrets, realm)]);
}

/** Routes and tools go through the same checkout, each in its own words. */
export function createLightningCheckouts<S>(
  { rail, network }: Pick<Lightning, 'rail' | 'network'>,
  running: Running<S>,
  { publicOrigin, network: chain }: Pick<Config, 'publicOrigin' | 'network'>,
) {
  const options = { rail, network: network.id, running, publicOrigin, words: wordsOfRefusal };
  const by = <D>(endpoint: Endpoint<S>, write: WriteQuote<D>) =>
    createLightningCheckout(endpoint, { ...options, write });
  return {
    routes:
      (protocol: Pick<QuotedProtocol, 'quote'>): CheckoutOf<S, Demand> =>
      (endpoint) =>
        by(endpoint, quote402({ protocol, chain, publicOrigin })),
    tools: ((endpoint) => by(endpoint, quoteAccepts)) as CheckoutOf<S, readonly PaymentRequirements[]>,
  };
}
