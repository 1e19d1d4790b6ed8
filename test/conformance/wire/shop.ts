import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { USDC } from '../../support/usdc/payments.ts';
import { createTranscript, type Transcript } from '../../support/wire/transcript.ts';

/** The configured public address, so that no port and no random address is in any answer. */
export const PLACE = {
  PUBLIC_ORIGIN: 'https://percall.example',
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  EXPLORER_URL: 'https://explorer.example',
  CHAIN_SEGMENT: 'arc',
};
/** The Gateway's wallet contract that payers sign for. */
export const WALLET = `0x${'77'.repeat(20)}` as const;

/** The endpoints that the suites sell besides the real ones. Each suite changes the mode of its own endpoint only. */
export const sold = {
  usdc: moodyEndpoint('/test/usdc'),
  sats: moodyEndpoint('/test/sats'),
  tool: moodyEndpoint('/test/tool'),
  latch: latchedEndpoint('/test/latch'),
};
/** Sold over Lightning only. */
const satsAlone = { ...moodyEndpoint('/test/sats-alone').endpoint, onlyOn: 'lightning' } as const;

/** The real service with all real endpoints, under the same address and seller in each run. */
export async function openShop(network: EmbeddedNetwork, env: Record<string, string> = {}, clock?: Clock) {
  const { usdc, sats, tool, latch } = sold;
  const service = await startService(network, {
    catalogue: [...catalogue, usdc.endpoint, sats.endpoint, tool.endpoint, latch.endpoint, satsAlone],
    env: { ...PLACE, ...env },
    ...(clock && { clock }),
  });
  await until('the service is ready', () => isReady(service));
  return { service, network, origin: service.origin };
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

/** A transcript that keeps the values of the catalogue's examples, and names the seller's Lightning node. */
export function openTranscript(network: EmbeddedNetwork): Transcript {
  const examples = JSON.stringify(catalogue.map(({ example }) => example));
  const transcript = createTranscript(`${examples} ${USDC}`);
  if (network.lightning) transcript.name(network.lightning.nodeId, 'node');
  return transcript;
}

/** True when every rail was checked and the relayer's balance was read: only then `/readyz` has that member. */
async function isReady(service: Service): Promise<boolean> {
  const { status, body } = await service.get('/readyz');
  const { gateway, lightning, settlement } = JSON.parse(body).checks;
  const isFine = gateway?.detail === undefined && lightning.detail === undefined;
  return status === 200 && isFine && settlement.detail !== undefined;
}
