import { boundHashOf } from '../record/bound-hash.ts';
import type { ChannelHistory } from '../record/channel-history.ts';
import type { Presentation } from '../record/presentation.ts';
import type { World } from '../world/world.ts';
import { createChannelPaidCheck } from './channel-paid.ts';

/**
 * Why what the world holds does not pay for the request that was answered, or null where it does: by the chain's logs, the Gateway's transfers, the
 * node's books.
 */
export function createPaidCheck(world: World, history: ChannelHistory) {
  const { evidence, accounts, gateway, lightning, sources } = world;
  const fromChannel = createChannelPaidCheck(world, history);
  const seller = accounts.seller.address;

  function onChain({ authorization, route }: Presentation): string | null {
    if (!authorization) return 'there is no authorization';
    const { from, nonce } = authorization.terms;
    const ended = evidence.of(from, nonce);
    if (ended?.kind !== 'paid' || ended.to !== seller) return 'the chain holds no transfer to the seller';
    return ended.units >= route.price ? null : `${ended.units} were paid for what costs ${route.price}`;
  }

  function atGateway({ authorization, route }: Presentation): string | null {
    const { from, nonce } = authorization?.terms ?? {};
    const found = gateway.transfers().find((one) => one.from === from && one.nonce === nonce);
    if (!found || found.to !== seller || found.status === 'failed')
      return 'the Gateway holds no transfer to the seller';
    return found.units >= route.price ? null : `${found.units} were paid for what costs ${route.price}`;
  }

  function overLightning({ paymentHash, route, request }: Presentation): string | null {
    const found = lightning.invoices().find((one) => one.paymentHash === paymentHash);
    if (!found?.ours || !found.paid) return 'the node has no payment';
    // At the dearest price of a bitcoin that any two exchanges agreed on.
    const leastMsat =
      BigInt(Math.max(1, Math.floor((Number(route.price) * 100) / (sources.rates.most * 1.03)))) * 1000n;
    if (found.amountMsat < leastMsat) return `${found.amountMsat} msat were paid for what costs ${leastMsat}`;
    return found.descriptionHash === boundHashOf(request) ? null : 'the invoice was for another request';
  }

  return (presentation: Presentation): string | null => {
    if (presentation.rail === 'channels') return fromChannel(presentation);
    if (presentation.rail === 'lightning') return overLightning(presentation);
    return presentation.rail === 'gateway' ? atGateway(presentation) : onChain(presentation);
  };
}

/** A payment as a breach names it. */
export function nameOf({ authorization, voucher, paymentHash, by, route, tag, number }: Presentation): string {
  const what = voucher
    ? `${voucher.kind} ${voucher.channelId.slice(0, 10)} up to ${voucher.max}`
    : authorization
      ? `${authorization.rail} ${authorization.terms.nonce.slice(0, 10)}`
      : `lightning ${paymentHash?.slice(0, 8)}`;
  return `presentation ${number} by ${by} of ${what} for ${route.path} (${tag})`;
}
