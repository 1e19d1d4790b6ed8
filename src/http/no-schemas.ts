/**
 * Fastify's option `schemaController` for an instance whose routes have no schemas, or that sets its own compilers. With Fastify's compilers each start would
 * load Ajv and its code generator, a tenth of a start. A route with a schema throws when it is registered.
 */
export const NO_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new Error('a route has a schema, and no compiler for it');
}
