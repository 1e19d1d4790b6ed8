import { NotPaid } from './lightning-not-paid.ts';
import type { LightningPayer } from './lightning-payer.ts';
import { printable } from './printable.ts';

/** NIP-47's codes after which the wallet has paid nothing. */
const NOTHING_PAID = new Set([
  'PAYMENT_FAILED',
  'INSUFFICIENT_BALANCE',
  'QUOTA_EXCEEDED',
  'RATE_LIMITED',
  'NOT_IMPLEMENTED',
  'RESTRICTED',
  'UNAUTHORIZED',
]);

/** A wallet as payer over Nostr Wallet Connect (NIP-47). The protocol has no limit for the network's fee: the wallet's own holds. */
export async function createNwcPayer(connection: string): Promise<LightningPayer> {
  // Loaded only where it is used: it brings a Nostr client with it.
  const { NWCClient, Nip47WalletError } = await import('@getalby/sdk/nwc');
  const client = new NWCClient({ nostrWalletConnectUrl: connection });
  return {
    name: 'NWC_PAYER',
    async pay(invoice) {
      try {
        return (await client.payInvoice({ invoice })).preimage;
      } catch (error) {
        if (!(error instanceof Nip47WalletError) || !NOTHING_PAID.has(error.code)) throw error;
        throw new NotPaid(printable(`${error.code}: ${error.message}`));
      }
    },
    async find(_invoice, paymentHash) {
      const found = await client.lookupInvoice({ payment_hash: paymentHash });
      return found.preimage || null;
    },
    close: () => client.close(),
  };
}
