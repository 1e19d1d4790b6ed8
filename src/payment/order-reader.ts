import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { paymentKey } from './authorization.ts';
import { hashClient, hashRequest } from './ledger.ts';
import type { Order, PaidRequest, Presentation } from './order.ts';
import { hashIdentifier } from './protocols/x402/http.ts';
import type { PurchaseRail, SignedPayment } from './rail.ts';

/** Reads presentations as requests and orders. */
export function createOrderReader<S>({ sources, network }: { sources: S; network: string }) {
  return {
    /** Step 2: the parameters and the payment identifier. Throws BadParameter. */
    readRequest: (
      endpoint: Endpoint<S>,
      rail: PurchaseRail,
      { credential, query, client }: Presentation,
    ): PaidRequest<S> => {
      const params = parseParams(endpoint, query);
      endpoint.checkParams(params, sources);
      return {
        ...{ endpoint, params, rail, client, protocol: credential.protocol },
        price: endpoint.price?.units ?? 0n,
        requestHash: hashRequest(listedPath(endpoint), params),
        identifierHash: credential.identifierHash ?? hashIdentifier(credential.extensions),
        isSingleUse: credential.identifierHash !== undefined,
      };
    },
    /** A request with a payment that is settled after the call is served. */
    orderOf: (request: PaidRequest<S>, payment: SignedPayment, { identity }: Presentation): Order<S> => {
      const { authorization, authorizationHash } = payment;
      return {
        ...{ ...request, payment, authorization, authorizationHash },
        key: paymentKey(authorization, network, request.rail.contract),
        clientHash: hashClient(authorization.nonce, identity),
      };
    },
  };
}
