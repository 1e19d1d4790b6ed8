import type { HttpProtocol } from './protocol.ts';
import { x402Http } from './protocols/x402/http.ts';

/** The protocol that priced routes speak. */
export const httpProtocol: HttpProtocol = x402Http;
