import { z } from 'zod';
import { jsonOrNull } from '../../../../lib/json-or-null.ts';
import type { Upstream } from '../../../../upstream/client/http.ts';
import { macaroonPermissions } from '../../../lnbtc/macaroon.ts';
import { askNode } from './ask-node.ts';
import { invoiceText, nodeKeyText } from './node-answers.ts';
import type { Receiver } from './receiver.ts';

interface LndOptions {
  readonly upstream: Upstream;
  /** Base URL of the node's REST interface. */
  readonly url: string;
  /** Hex. */
  readonly macaroon: string;
}

const NEED = 'info:read, invoices:read and invoices:write';
/** Permissions that can send money from the node. A `uri` permission allows one call by its name. */
const SPENDING = new Set(['offchain:write', 'onchain:write', 'signer:generate', 'macaroon:generate', 'macaroon:write']);
const HARMLESS_CALL =
  /^uri:\/(lnrpc\.Lightning\/(AddInvoice|LookupInvoice|ListInvoices|SubscribeInvoices|GetInfo|DecodePayReq|CheckMacaroonPermissions)|invoicesrpc\.Invoices\/\w+)$/;

const created = z.object({ payment_request: invoiceText });
const info = z.object({ identity_pubkey: nodeKeyText });
const looked = z.object({ state: z.string() });
const checked = z.object({ valid: z.boolean() });

/**
 * An LND node over its REST interface (`/v1/invoices`, `/v1/invoice/{r_hash}`, `/v1/getinfo`). Amounts are decimal strings, because the interface is
 * protobuf's JSON, in which 64-bit numbers are strings. Throws UpstreamFailed when the node is away or refuses.
 */
export function createLnd({ upstream, url, macaroon }: LndOptions): Receiver {
  const headers = { 'Grpc-Metadata-macaroon': macaroon };
  const get = (path: string, signal: AbortSignal) => ({ url: `${url}${path}`, headers, signal });
  const post = (path: string, body: object, signal: AbortSignal) => ({
    url: `${url}${path}`,
    method: 'POST' as const,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });

  /** For a macaroon that we cannot read: asks the node whether it allows writing to `entity`. Null when the node does not say. */
  async function mayWrite(entity: string, signal: AbortSignal): Promise<boolean | null> {
    const permissions = [{ entity, action: 'write' }];
    const body = { macaroon: Buffer.from(macaroon, 'hex').toString('base64'), permissions };
    const { status, body: answer } = await upstream.fetch(post('/v1/macaroon/checkpermissions', body, signal));
    if (status === 400) return false;
    const parsed = status === 200 ? checked.safeParse(jsonOrNull(answer)) : null;
    return parsed?.success ? parsed.data.valid : null;
  }

  return {
    kind: 'lnd',
    nodeKey: async (signal) => (await askNode(upstream, get('/v1/getinfo', signal), info, NEED)).identity_pubkey,
    inspect: async (signal) => {
      const permissions = macaroonPermissions(Buffer.from(macaroon, 'hex'));
      if (permissions) {
        const powers = permissions.filter(
          (name) => SPENDING.has(name) || (name.startsWith('uri:') && !HARMLESS_CALL.test(name)),
        );
        return powers.length > 0 ? [tooWide(powers.join(', '))] : [];
      }
      const answers = [await mayWrite('offchain', signal), await mayWrite('onchain', signal)];
      if (answers.includes(true)) return [tooWide('writing off-chain or on-chain')];
      return answers.includes(null) ? [`the node does not show what the macaroon allows; ${NEED} are enough`] : [];
    },
    createInvoice: async ({ amountMsat, requestHash, expirySeconds }, signal) => {
      const order = {
        value_msat: amountMsat.toString(),
        description_hash: Buffer.from(requestHash).toString('base64'),
        expiry: expirySeconds.toString(),
      };
      return (await askNode(upstream, post('/v1/invoices', order, signal), created, NEED)).payment_request;
    },
    isPaid: async (paymentHash, signal) => {
      const path = `/v1/invoice/${Buffer.from(paymentHash).toString('hex')}`;
      return (await upstream.json(get(path, signal), looked))?.state === 'SETTLED';
    },
    close: async () => undefined,
  };
}

function tooWide(powers: string): string {
  return `the macaroon allows more than receiving (${powers}); ${NEED} are enough`;
}
