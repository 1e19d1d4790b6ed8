import type { EmbeddedNetwork } from '../../../../dev/network.ts';
import type { Answer } from '../../../support/service/service.ts';
import { call } from '../../../support/service/service.ts';
import { headerOf } from '../../../support/usdc/payments.ts';

/** The service that a newcomer calls, and its chain. */
export interface Bench {
  readonly origin: string;
  readonly network: EmbeddedNetwork;
}

/** A mistake of a newcomer, and what its answer must say. */
export interface Mistake {
  /** What the newcomer did. */
  readonly title: string;
  ask(bench: Bench): Promise<Answer>;
  readonly status: number;
  /** What the answer must say is wrong. */
  readonly wrong: RegExp;
  /** What the answer must say to do. */
  readonly next: RegExp;
  /** The member `charged`, where the answer has one. */
  readonly charged?: false | 'unknown';
}

/** Sends a GET, or what the options say. */
export const asking = (path: string, options?: Parameters<typeof call>[2]) => (bench: Bench) =>
  call(bench.origin, path, options);

/** Sends a JSON body by POST. */
export const posting = (path: string, body: unknown, headers = { 'content-type': 'application/json' }) =>
  asking(path, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });

/** Presents a value as an x402 payment, in base64 of JSON. */
export const presenting = (path: string, payload: unknown) =>
  asking(path, { headers: { 'payment-signature': headerOf(payload) } });

interface Shown {
  hint?: string;
  detail?: string;
  message?: string;
  resource?: { description: string };
  error?: { message: string };
  result?: { content: { text: string }[] };
}

/** The sentences of an answer, in the shape of its kind: a hint, a problem, a facilitator's answer, an offer over Lightning, or a tool's result. */
export function sentencesOf({ body }: Answer): string {
  const { hint, detail, message, resource, error, result } = JSON.parse(body) as Shown;
  const text = hint ?? detail ?? message ?? resource?.description ?? error?.message;
  return text ?? toolText(result?.content[0]?.text ?? '');
}

function toolText(text: string): string {
  const { detail, resource } = JSON.parse(text) as Shown;
  return detail ?? resource?.description ?? '';
}

/** The member `charged` of a problem. Undefined where the answer has none. */
export function chargedOf({ body }: Answer): unknown {
  return (JSON.parse(body) as { charged?: unknown }).charged;
}
