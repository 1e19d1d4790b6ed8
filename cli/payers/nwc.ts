import { printable } from '../printable.ts';
import { type LightningPayer, NotPaid } from './payer.ts';

/**
 * NIP-47's codes after which the wallet has paid nothing. `PAYMENT_FAILED` is not one of them: a time-out is among its
 * reasons, and then the payment
 * may still arrive.
 */
const NOTHING_PAID = new Set([
  'INSUFFICIENT_BALANCE',
  'QUOTA_EXCEEDED',
  'RATE_LIMITED',
  'NOT_IMPLEMENTED',
  'RESTRICTED',
  'UNAUTHORIZED',
]);

/**
 * Makes a payer of a wallet over Nostr Wallet Connect (NIP-47). The protocol has no fee limit, so the wallet's own
 * limit applies.
 */
export async function createNwcPayer(connection: string): Promise<LightningPayer> {
  // Imported on demand, because it loads a Nostr client.
  const { NWCClient, Nip47WalletError } = await import('@getalby/sdk/nwc');
  const client = new NWCClient({ nostrWalletConnectUrl: connection });

  /**
   * The client prints messages that it cannot read, and puts them into errors. They may hold a preimage, so both are
   * suppressed.
   */
  async function ask<T>(request: () => Promise<T>): Promise<T> {
    const { error: print } = console;
    console.error = () => {};
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof Nip47WalletError)) throw new Error(`no usable answer from the wallet (${nameOf(error)})`);
      const { code } = error;
      throw NOTHING_PAID.has(code) ? new NotPaid(printable(code)) : new Error(`the wallet says ${printable(code)}`);
    } finally {
      console.error = print;
    }
  }

  return {
    name: 'NWC_PAYER',
    limitsFee: false,
    pay: async (invoice) => (await ask(() => client.payInvoice({ invoice }))).preimage,
    async find(_invoice, paymentHash) {
      const found = await ask(() => client.lookupInvoice({ payment_hash: paymentHash }));
      if (found.preimage) return found.preimage;
      // The wallet may still be paying. Only one that says so is certain that nothing was paid.
      if (found.state === 'failed') return null;
      throw new Error('the wallet knows of no finished payment');
    },
    close: () => client.close(),
  };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.constructor.name : typeof error;
}
