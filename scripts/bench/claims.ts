import { lightningProof } from '../lib/lightning/lightning-proofs.ts';
import { openRawClient, postOf } from './raw-client.ts';

/** Makes `count` settle calls for a facilitator, each for another payment. They are signed and encoded before the measurement starts. */
export function settleRequests(origin: string, count: number): Buffer[] {
  const terms = { createdAt: Math.floor(Date.now() / 1000), maxTimeoutSeconds: 3600 };
  const bodies = Array.from({ length: count }, () => lightningProof(terms).body);
  return bodies.map((body) => postOf(origin, '/facilitator/settle', JSON.stringify(body)));
}

/** Opens `count` connections to one server. */
export function openClients(origin: string, count: number) {
  return Promise.all(Array.from({ length: count }, () => openRawClient(origin)));
}

/** Sends every request once. Each client sends its next one as soon as its last one was answered. Throws unless all are claimed. */
export async function settleAll(clients: Awaited<ReturnType<typeof openClients>>, requests: readonly Uint8Array[]) {
  const times: number[] = [];
  let next = 0;
  const started = performance.now();
  const work = async ({ send }: (typeof clients)[number]) => {
    for (let bytes = requests[next++]; bytes; bytes = requests[next++]) {
      const sent = performance.now();
      const answer = await send(bytes);
      times.push(performance.now() - sent);
      if (!answer.startsWith('{"success":true')) throw new Error(`not claimed: ${answer}`);
    }
  };
  await Promise.all(clients.map(work));
  return { tookMs: performance.now() - started, times };
}
