import type { HttpProtocol, ToolProtocol } from './protocol.ts';
import { x402Http } from './protocols/x402/http.ts';
import { x402Tool } from './protocols/x402/tool-payment.ts';

/** The protocol that priced routes speak. */
export const httpProtocol: HttpProtocol = x402Http;

/** The protocol that priced tools speak. */
export const toolProtocol: ToolProtocol = x402Tool;
