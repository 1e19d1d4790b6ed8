import { createIssuer, type Issuer } from '../../../src/payment/lightning/issuer.ts';
import type { Receiver } from '../../../src/payment/lightning/nodes/receiver.ts';
import { MAINNET } from '../../../src/payment/lightning/terms.ts';
import { createManualClock, type ManualClock } from '../manual-clock.ts';
import { type NodeServer, startNodeServer } from './lightning-node-servers.ts';
import { articleBinding, openReceiver } from './receiver-bench.ts';

/** The start time of every bench, in Unix seconds. */
export const BENCH_NOW = 1_700_000_000;

interface IssuerChoices {
  readonly expectedKey?: string;
  readonly network?: typeof MAINNET;
  /** Called when the connection is inspected. It throws to report a fault, or returns warnings for the operator. */
  readonly power?: () => readonly string[] | undefined;
  readonly timeoutMs?: number;
}

/** A phoenixd stand-in, real HTTP, a manual clock, and issuers over them. */
export interface IssuerBench {
  readonly clock: ManualClock;
  readonly node: NodeServer;
  readonly logged: string[];
  issuer(choices?: IssuerChoices): Issuer;
  close(): Promise<void>;
}

export async function openIssuerBench(): Promise<IssuerBench> {
  const clock = createManualClock(BENCH_NOW * 1000);
  const node = await startNodeServer('phoenixd', clock);
  const { receiver, log, logged, close } = openReceiver(node.config, { clock });
  const issuers: Issuer[] = [];
  return {
    clock,
    node,
    logged,
    issuer({ expectedKey, network = MAINNET, power, timeoutMs = 60_000 } = {}) {
      const inspect: Receiver['inspect'] = async () => power?.() ?? [];
      const options = { network, expectedKey: expectedKey ?? null, expirySeconds: 300, timeoutMs, clock, log };
      const issuer = createIssuer({ receiver: { ...receiver, inspect }, ...options });
      issuers.push(issuer);
      return issuer;
    },
    async close() {
      for (const issuer of issuers) await issuer.stop();
      await close();
      await node.stop();
    },
  };
}

/** 25 sat for the scheme's article A. */
export const ARTICLE_ORDER = { amountMsat: 25_000n, binding: articleBinding() };

/** `status code retryAfter` of a refusal, the message of any other error, `none` on success. */
export function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (error: { status?: number; code?: string; retryAfterSeconds?: number; message: string }) =>
      error.status === undefined ? error.message : `${error.status} ${error.code} ${error.retryAfterSeconds}`,
  );
}
