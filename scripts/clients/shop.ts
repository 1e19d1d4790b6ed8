import { freePort } from '../../dev/child.ts';
import type { EmbeddedLightning } from '../../dev/lightning/lightning.ts';
import { type Account, createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { startEmbeddedService } from '../../dev/serve.ts';
import { balanceOf } from '../../dev/tokens.ts';
import { decodeInvoice } from '../../src/payment/lightning/bolt11.ts';
import { startGatewayStandIn } from '../../test/support/usdc/gateway-stand-in.ts';
import { untilChannelsOffered } from '../lib/channels-offered.ts';

/** The service as the demonstration starts it, with every way to pay, and wallets for one client after the other. */
export interface Shop {
  readonly origin: string;
  readonly network: EmbeddedNetwork;
  /** Makes a new wallet, with play money on every rail. */
  newWallet(): Promise<Wallet>;
  stop(): Promise<void>;
}

/** A buyer's money on every rail. */
export interface Wallet {
  readonly account: Account;
  /** Pays an invoice through the buyer's Lightning node. */
  payInvoice(args: { invoice: string }): Promise<{ preimage: string }>;
  /** What has left the wallet so far, by rail. Amounts in base units. */
  spent(): Promise<Spent>;
}

export interface Spent {
  /** On the chain, a channel's deposit included. */
  readonly usdc: bigint;
  readonly gateway: bigint;
  /** Each paid invoice: its amount, and its payment hash in hex. */
  readonly invoices: readonly { readonly amountMsat: bigint; readonly paymentHash: string }[];
}

/** The contract that payers of the Gateway's stand-in sign for. */
export const GATEWAY_WALLET = `0x${'77'.repeat(20)}` as const;
/** 5 USDC on the chain and in the Gateway: more than the least deposit of a channel. */
const FUNDS = 5_000_000n;

interface ShopOptions {
  /** Added to the service's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** The service's port; a free one by default. */
  readonly port?: number;
}

/** Starts the local chain, two Lightning nodes, a stand-in of Circle's Gateway, and the service. */
export async function openShop({ env = {}, port }: ShopOptions = {}): Promise<Shop> {
  const network = await startEmbeddedNetwork({ lightning: true });
  const gateway = await startGatewayStandIn(network.chainId, GATEWAY_WALLET);
  const rails = { GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: GATEWAY_WALLET, MPP: 'on' };
  // The table of docs/clients.md shows what was paid. It does not change with the catalogue's price.
  const own = { ...rails, PRICES: 'fees/estimate=0.0005' };
  const service = await startEmbeddedService(network, { port: port ?? (await freePort()), env: { ...own, ...env } });
  const { lightning } = network;
  if (!lightning) throw new Error('the network was started without Lightning');
  // Channels are offered some seconds after the start.
  await untilChannelsOffered(`${service.url}/v1/paid/fees/estimate`);

  return {
    origin: service.url,
    network,
    async newWallet() {
      const account = createAccount();
      await network.fundUsdc(account.address, FUNDS);
      gateway.deposit(account.address, FUNDS);
      const { invoices, payInvoice } = openWallet(lightning);
      return {
        account,
        payInvoice,
        spent: async () => ({
          usdc: FUNDS - (await balanceOf(network, account.address)),
          gateway: FUNDS - gateway.depositOf(account.address),
          invoices: [...invoices],
        }),
      };
    },
    async stop() {
      await service.stop();
      await gateway.stop();
      await network.stop();
    },
  };
}

function openWallet(lightning: EmbeddedLightning) {
  const invoices: { amountMsat: bigint; paymentHash: string }[] = [];
  return {
    invoices,
    payInvoice: async ({ invoice }: { invoice: string }) => {
      const read = decodeInvoice(invoice);
      if (!read) throw new Error('the invoice cannot be read');
      const preimage = await lightning.pay(invoice);
      invoices.push({ amountMsat: read.amountMsat, paymentHash: Buffer.from(read.paymentHash).toString('hex') });
      return { preimage };
    },
  };
}
