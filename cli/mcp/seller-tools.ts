import { z } from 'zod';
import { followReference, isObject, own, plainText } from '../../src/lib/untrusted.ts';
import { listedPriceOf, readJson } from '../listing.ts';
import { parseUsd } from '../money.ts';
import type { Call, Rail } from '../port.ts';
import { printable } from '../printable.ts';
import { boundTo } from '../seller.ts';
import { cleanSchema, isPlainName, priceTextOf, type Schema } from './clean.ts';

// What a seller has to sell, as tools: the list of its MCP server, else the routes of its OpenAPI document. All of it
// is a third party's: bounded, cleaned, and bound to the seller's own origin, whatever it says.

/** One tool of a seller. */
export interface SellerTool {
  /** By which the seller knows it; one tool is the same in two lists by it. */
  readonly key: string;
  /** The name that it should have. */
  readonly wanted: string;
  readonly title: string;
  /** The seller's own words, cleaned and short. */
  readonly said: string;
  /** Null: too large to be shown. */
  readonly inputSchema: Schema | null;
  /** The listed price of a call in USD base units; null: none is listed. */
  readonly units: bigint | null;
  /** What buys it with these arguments. Throws BadArguments. */
  callOf(given: Readonly<Record<string, unknown>>): Call;
}

/** The arguments are no request of this tool. Nothing was asked or paid. */
export class BadArguments extends Error {}

export interface SellerList {
  /** Where it was read. */
  readonly from: string;
  readonly tools: readonly SellerTool[];
  /** How many were left out, and why. */
  readonly leftOut: readonly string[];
}

const MOST_TOOLS = 200;
const MOST_PAGES = 20;
const MOST_TITLE = 80;
const MOST_SAID = 1000;
/** Of one answer, and of one question. */
const MOST_BYTES = 4 * 1024 * 1024;
const LIST_WITHIN_MS = 20_000;

/**
 * Reads what a seller lists: at the given address where it has a path, else at `/mcp`, else in `/openapi.json`. A seller
 * that sells in bitcoin at an address of its own is asked there first. Throws where there is no list.
 */
export async function readSellerTools(seller: URL, rail: Rail | null): Promise<SellerList> {
  const hasPath = seller.pathname !== '/';
  const usual = rail === 'lightning' ? ['/mcp/lightning', '/mcp'] : ['/mcp'];
  const faults: string[] = [];
  for (const server of hasPath ? [seller] : usual.map((path) => new URL(path, seller))) {
    try {
      return await listOverMcp(server);
    } catch (error) {
      faults.push(`${server.href}: ${printable(error instanceof Error ? error.message : String(error)).slice(0, 200)}`);
    }
  }
  const address = new URL('/openapi.json', seller);
  const list = hasPath ? null : listOfOpenApi(await readJson(address), seller, address);
  if (list) return { ...list, from: `${list.from} (${faults.join('; ')})` };
  throw new Error(
    `${seller.host} lists no tools (${faults.join('; ')}${hasPath ? '' : `; no list in ${address.href}`})`,
  );
}

const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.unknown().optional() });

/** `tools/list` itself, not the client's `listTools`, which would compile the seller's schemas. */
async function listOverMcp(server: URL): Promise<SellerList> {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client({ name: 'percall', version: '1' });
  const transport = new StreamableHTTPClientTransport(
    new URL(server),
    boundTo({ bytes: MOST_BYTES, withinMs: LIST_WITHIN_MS }),
  );
  const within = { timeout: LIST_WITHIN_MS, signal: AbortSignal.timeout(LIST_WITHIN_MS) };
  const found: unknown[] = [];
  try {
    // The SDK's own types contradict each other under exactOptionalPropertyTypes.
    await client.connect(transport as never, within);
    let cursor: unknown;
    for (let page = 0; page < MOST_PAGES && found.length <= MOST_TOOLS; page++) {
      const params = typeof cursor === 'string' ? { cursor } : {};
      const { tools, nextCursor } = await client.request({ method: 'tools/list', params }, pageSchema, within);
      found.push(...tools.slice(0, MOST_TOOLS + 1));
      cursor = nextCursor;
      if (typeof cursor !== 'string' || cursor === '') break;
    }
  } finally {
    await client.close().catch(() => {});
  }
  const tools = new Map<string, SellerTool>();
  const leftOut: string[] = [];
  for (const listed of found.slice(0, MOST_TOOLS)) {
    const name = own(listed, 'name');
    if (!isPlainName(name)) leftOut.push(`a tool whose name is no plain text: ${printable(name).slice(0, 40)}`);
    else if (tools.has(name)) leftOut.push(`a second tool ${name}`);
    else tools.set(name, toolOf(server, name, listed));
  }
  if (found.length > MOST_TOOLS) leftOut.push(`all tools after the first ${MOST_TOOLS}`);
  return { from: server.href, tools: [...tools.values()], leftOut };
}

function toolOf(server: URL, name: string, listed: unknown): SellerTool {
  const price = priceTextOf(listed);
  return {
    key: name,
    wanted: name,
    title: plainText(own(listed, 'title'), MOST_TITLE),
    said: plainText(own(listed, 'description'), MOST_SAID),
    inputSchema: cleanSchema(own(listed, 'inputSchema')),
    units: price === null ? null : parseUsd(price),
    callOf: (given) => ({ kind: 'tool', server, name, arguments: sorted(given) }),
  };
}

/** The same arguments in another order are the same call. */
function sorted(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const inOrder = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inOrder);
    return isObject(value) ? sorted(value) : value;
  };
  const keys = Object.keys(given).sort();
  return Object.fromEntries(keys.map((key) => [key, inOrder(given[key])]));
}

/** A route's argument: where it goes. */
interface Parameter {
  readonly name: string;
  readonly place: 'path' | 'query';
  readonly isRequired: boolean;
  readonly schema: unknown;
}

/** The argument that holds a request's JSON. */
const BODY = 'body';
const METHODS = ['get', 'post'] as const;
const MOST_PARAMETERS = 100;

/** The document's routes of this origin: what is priced, then what may be read. Null for no document. */
function listOfOpenApi(document: unknown, origin: URL, address: URL): SellerList | null {
  const paths = own(document, 'paths');
  if (!isObject(paths)) return null;
  const leftOut: string[] = [];
  const routes = Object.entries(paths).flatMap(([path, item]) => {
    if (!path.startsWith('/') || path.startsWith('//') || !isPlainName(path)) {
      leftOut.push(`a path that is no plain text: ${printable(path).slice(0, 40)}`);
      return [];
    }
    const target = followReference(document, item);
    return METHODS.flatMap((method) => {
      const operation = own(target, method);
      const isPriced = own(operation, 'x-payment-info') !== undefined;
      // An unpriced POST may change something, and nobody says that it is for sale.
      if (!isObject(operation) || (method === 'post' && !isPriced)) return [];
      return [{ isPriced, route: { document, origin, path, method, operation, item: target } }];
    });
  });
  const inOrder = [...routes.filter(({ isPriced }) => isPriced), ...routes.filter(({ isPriced }) => !isPriced)];
  if (inOrder.length > MOST_TOOLS) leftOut.push(`all routes after the first ${MOST_TOOLS}`);
  return { from: address.href, tools: inOrder.slice(0, MOST_TOOLS).map(({ route }) => routeTool(route)), leftOut };
}

interface Route {
  readonly document: unknown;
  readonly origin: URL;
  readonly path: string;
  readonly method: (typeof METHODS)[number];
  readonly operation: Record<string, unknown>;
  readonly item: unknown;
}

function routeTool(route: Route): SellerTool {
  const { document, path, method, operation } = route;
  const parameters = parametersOf(route);
  const content = own(own(followReference(document, operation.requestBody), 'content'), 'application/json');
  const hasBody = method === 'post' && content !== undefined;
  const properties = parameters.map(({ name, schema }): [string, unknown] => [name, schema]);
  if (hasBody) properties.push([BODY, own(content, 'schema') ?? {}]);
  const required = parameters.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const schema = { type: 'object', properties: Object.fromEntries(properties), required, additionalProperties: false };
  const { operationId, summary, description } = operation;
  const words = [plainText(summary, MOST_TITLE), plainText(description, MOST_SAID)].filter((text) => text !== '');
  return {
    key: `${method.toUpperCase()} ${path}`,
    wanted: isPlainName(operationId) ? operationId : `${method}${path.replace(/[^A-Za-z0-9]+/g, '_')}`,
    title: plainText(summary, MOST_TITLE),
    said: plainText(words.join('. '), MOST_SAID),
    inputSchema: cleanSchema(schema, document),
    units: listedPriceOf(document, { path, method, asset: null })?.units ?? null,
    callOf: (given) => requestOf(route, { parameters, hasBody }, given),
  };
}

function parametersOf({ document, item, operation, path }: Route): Parameter[] {
  const found = new Map<string, Parameter>();
  for (const holder of [operation, item]) {
    const listed = own(holder, 'parameters');
    for (const one of Array.isArray(listed) ? listed.slice(0, MOST_PARAMETERS) : []) {
      const parameter = followReference(document, one);
      const [name, place] = [own(parameter, 'name'), own(parameter, 'in')];
      if (!isPlainName(name) || name === BODY || found.has(name) || (place !== 'path' && place !== 'query')) continue;
      const description = own(parameter, 'description');
      const schema = followReference(document, own(parameter, 'schema'));
      const isRequired = place === 'path' || own(parameter, 'required') === true;
      found.set(name, {
        name,
        place,
        isRequired,
        schema: isObject(schema) ? { ...schema, ...(typeof description === 'string' && { description }) } : {},
      });
    }
  }
  for (const [, name = ''] of path.matchAll(/\{([^{}]+)\}/g))
    if (!found.has(name)) found.set(name, { name, place: 'path', isRequired: true, schema: { type: 'string' } });
  return [...found.values()];
}

/** The request of a route. Its address is the seller's own, of this route and no other, whatever the arguments hold. */
function requestOf(
  { origin, path, method }: Route,
  { parameters, hasBody }: { readonly parameters: readonly Parameter[]; readonly hasBody: boolean },
  given: Readonly<Record<string, unknown>>,
): Call {
  const known = new Set([...parameters.map(({ name }) => name), ...(hasBody ? [BODY] : [])]);
  const stray = Object.keys(given).find((name) => !known.has(name));
  if (stray !== undefined) throw new BadArguments(`there is no argument ${printable(stray)}`);
  let filled = path;
  const query = new URLSearchParams();
  for (const { name, place, isRequired } of parameters) {
    const value = given[name];
    if (value === undefined || value === null) {
      if (isRequired) throw new BadArguments(`${name} is missing`);
      continue;
    }
    const values = (Array.isArray(value) ? value : [value]).map((one) => textOf(name, one));
    if (place === 'query') {
      for (const text of values) query.append(name, text);
      continue;
    }
    const part = values.join(',');
    // Such a part would lead to another route.
    if (['', '.', '..'].includes(part)) throw new BadArguments(`${name} cannot be ${JSON.stringify(part)}`);
    filled = filled.replaceAll(`{${name}}`, () => encodeURIComponent(part));
  }
  const url = new URL(filled, origin);
  if (url.origin !== origin.origin) throw new BadArguments('no such path of this route');
  // The same arguments are the same call, in whatever order the seller's list has them now.
  query.sort();
  url.search = query.toString();
  const bytes = hasBody && given[BODY] !== undefined ? Buffer.from(JSON.stringify(given[BODY])) : null;
  return {
    kind: 'http',
    method: method.toUpperCase(),
    url,
    body: bytes && { bytes, contentType: 'application/json' },
  };
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new BadArguments(`${name} is a text, a number, true or false, or a list of these`);
}
