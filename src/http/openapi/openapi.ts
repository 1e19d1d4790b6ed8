import swagger from '@fastify/swagger';
import Fastify from 'fastify';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { describeParams } from '../../catalogue/params.ts';
import { type Mount, operationIdOf, pathOn, surfacesOf } from '../../catalogue/paths.ts';
import type { NamedChain } from '../../lib/service.ts';
import { dearestRequirement } from '../dearest-requirement.ts';
import { createLlmsText } from '../llms-text.ts';
import { NO_SCHEMAS } from '../no-schemas.ts';
import type { Requirement, RequirementOf } from '../requirement.ts';
import { componentSchemas } from './openapi-components.ts';
import { describePayment, describeServiceInfo, SECURITY_SCHEMES } from './openapi-payments.ts';
import { componentResponses, describeResponses, UNREAD_RESPONSES } from './openapi-responses.ts';
import type { Declared, Json, Operation } from './openapi-shapes.ts';
import { COMPONENT_HEADERS } from './openapi-shared.ts';
import { describeService, tagsWith } from './openapi-text.ts';

/** The interface's own version, as its document states it; not the package's. */
const INTERFACE_VERSION = '0.1.0';

export interface OpenApiOptions {
  readonly catalogue: readonly Endpoint<never>[];
  /** What is served besides the catalogue. */
  readonly declared: Declared;
  readonly requirementOf: RequirementOf;
  /** Every way to pay for an endpoint, as its 402 offers them. By default the plain one alone. */
  acceptsOf?(endpoint: Endpoint<never>): readonly Requirement[];
  /** The chain that is named in the texts. */
  readonly chain: NamedChain;
  readonly publicOrigin: string;
  /** Whether the USDC routes stand under `/v1/mpp` too. */
  readonly mpp?: boolean;
  /** The operator's contact (http, https, mailto). Without one the service's own address is used. */
  readonly contactUrl?: string | null;
}

/**
 * Creates the OpenAPI 3.1 document of the catalogue, deterministically, from declarations only.
 * The plugin assembles it on an instance that never listens, so that the served routes have no schemas. They parse their parameters themselves; a second
 * validator would cost time and could disagree.
 */
export async function createOpenApi(options: OpenApiOptions): Promise<Json> {
  const { catalogue, requirementOf, acceptsOf = (endpoint) => [requirementOf(endpoint)] } = options;
  const { declared, publicOrigin, mpp = false, contactUrl } = options;
  const scribe = Fastify({ exposeHeadRoutes: false, schemaController: NO_SCHEMAS });
  scribe.setValidatorCompiler(() => () => true);
  scribe.setSerializerCompiler(() => JSON.stringify);
  await scribe.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'percall',
        version: INTERFACE_VERSION,
        description: describeService(dearestRequirement(catalogue, requirementOf), options.chain),
        contact: describeContact(contactUrl ?? publicOrigin),
        license: { name: 'MIT', identifier: 'MIT' },
        // Agents look here for a short introduction.
        ...{ 'x-guidance': createLlmsText(options) },
      },
      externalDocs: { url: `${publicOrigin}/llms.txt`, description: 'The same in short, for models' },
      servers: [{ url: publicOrigin }],
      tags: tagsWith(mpp),
      components: { securitySchemes: SECURITY_SCHEMES as Record<string, never> },
    },
  });
  // Stated for each operation, because crawlers treat a missing statement as unknown: no operation needs an account or a key. Alternatives of
  // `security` are payments.
  const add = ({ method, url, schema }: Operation) =>
    scribe.route({ method, url, schema: { security: [], ...schema }, handler: () => null });
  const sold = catalogue.flatMap((endpoint) => mountsOf(endpoint, options).map((mount) => ({ endpoint, mount })));
  for (const { endpoint, mount } of sold) {
    const schema = describeOperation(endpoint, mount, { requirementOf, acceptsOf });
    add({ method: 'GET', url: pathOn(endpoint, mount), schema });
  }
  for (const operation of declared.operations) add(operation);
  await scribe.ready();
  const document = structuredClone(scribe.swagger()) as Described;
  await scribe.close();
  addResponses(document, sold);
  return {
    ...document,
    'x-service-info': describeServiceInfo(publicOrigin),
    components: {
      schemas: componentSchemas(catalogue, declared.schemas),
      responses: componentResponses(mpp),
      ...{ headers: COMPONENT_HEADERS, securitySchemes: SECURITY_SCHEMES },
    },
  };
}

type Described = Json & { readonly paths: Record<string, Partial<Record<'get' | 'post', Json>>> };

/** Adds the answers of the catalogue's operations, and those that every operation has, because the plugin takes no references to responses. */
function addResponses({ paths }: Described, sold: readonly { endpoint: Endpoint<never>; mount: Mount }[]): void {
  for (const { endpoint, mount } of sold) {
    const operation = paths[pathOn(endpoint, mount)]?.get;
    if (operation) operation.responses = describeResponses(endpoint, mount);
  }
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    operation.responses = { ...UNREAD_RESPONSES, ...(operation.responses as Json) };
  }
}

/** Every mount of an entry. What is sold in USDC may stand under two: MPP asks for the plain entry alone. */
function mountsOf(endpoint: Endpoint<never>, { mpp = false, requirementOf, acceptsOf }: OpenApiOptions): Mount[] {
  const isPlain = (): boolean => acceptsOf?.(endpoint).includes(requirementOf(endpoint)) ?? true;
  return surfacesOf(endpoint).flatMap((surface): Mount[] =>
    surface === 'paid' && mpp && isPlain() ? ['paid', 'mpp'] : [surface],
  );
}

function describeOperation(
  endpoint: Endpoint<never>,
  mount: Mount,
  terms: Required<Pick<OpenApiOptions, 'requirementOf' | 'acceptsOf'>>,
): Json {
  const params = describeParams(endpoint);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return {
    operationId: operationIdOf(endpoint.path, mount),
    tags: [mount],
    summary: endpoint.label,
    description: endpoint.summary,
    ...(params.length > 0
      ? { querystring: { type: 'object', properties: Object.fromEntries(properties), required } }
      : {}),
    ...describePayment(endpoint, mount, terms),
  };
}

function describeContact(url: string): Json {
  const mailto = /^mailto:([^?]+)/.exec(url)?.[1];
  return mailto === undefined ? { url } : { email: mailto };
}
