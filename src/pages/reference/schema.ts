/** The parts of JSON Schema that our document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
}

/** Follows a reference within the document. One that leads nowhere gives an empty object. */
export type Resolve = <T extends object>(part: T) => T;

/** An example of a value: the schema's own, or one that is made of the examples of its required members. */
export function exampleOf(schema: Schema, resolve: Resolve): unknown {
  const own = schema.example ?? schema.examples?.[0] ?? schema.const ?? schema.default ?? schema.enum?.[0];
  if (own !== undefined) return own;
  if (schema.properties === undefined) return schema.type === 'object' ? {} : null;
  const required = schema.required ?? [];
  return Object.fromEntries(
    Object.entries(schema.properties).flatMap(([name, member]) =>
      required.includes(name) ? [[name, exampleOf(resolve(member), resolve)]] : [],
    ),
  );
}
