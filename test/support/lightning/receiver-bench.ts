import type { Config } from '../../../src/config.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { type Binding, bindHttp } from '../../../src/payment/lightning/binding.ts';
import type { Receiver } from '../../../src/payment/lightning/nodes/receiver.ts';
import { createReceiver } from '../../../src/payment/lightning/open.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';

/** A receiver as the service opens it, and every line that it and its HTTP client logged. */
export interface ReceiverBench {
  readonly receiver: Receiver;
  readonly log: ReturnType<typeof createLogger>;
  readonly logged: string[];
  close(): Promise<void>;
}

/** Opens a configured receiver over real HTTP. */
export function openReceiver(
  config: NonNullable<Config['lightning']['receiver']>,
  { clock = systemClock, timeoutMs = 60_000 }: { clock?: Clock; timeoutMs?: number } = {},
): ReceiverBench {
  const logged: string[] = [];
  const log = createLogger('debug', { write: (line) => void logged.push(line) });
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test', log });
  const lightning: Config['lightning'] = {
    network: 'mainnet',
    receiver: config,
    nodeKey: null,
    shared: false,
    invoicesPerMinute: { client: 0, total: 0 },
    timeoutMs,
  };
  const receiver = createReceiver(lightning, upstreams);
  if (!receiver) throw new Error('no receiver');
  const close = async () => {
    await receiver.close();
    await upstreams.close();
  };
  return { receiver, log, logged, close };
}

/** The binding of a GET for one of the scheme's example articles. */
export function articleBinding(article = 'A'): Binding {
  const url = `https://api.example.com/article/${article}`;
  const binding = bindHttp({ method: 'GET', url, body: new Uint8Array() });
  if (!binding) throw new Error('no binding');
  return binding;
}

/** An order over 25 sat for the scheme's article A. */
export function articleOrder() {
  const { canonical, hash } = articleBinding();
  return { amountMsat: 25_000n, binding: canonical, requestHash: hash, expirySeconds: 300, label: 'percall-label' };
}

/** All texts of an error, as a log could print them: message, stack, fields and causes. */
export function everythingOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const causes = error.cause === undefined ? '' : everythingOf(error.cause);
  return `${error.stack} ${JSON.stringify(error)} ${causes}`;
}
