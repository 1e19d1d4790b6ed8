/** A JSON Schema as the OpenAPI document writes it; only the members that say which fields there are. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }>
  >;
}

/** An OpenAPI document, as far as answers are described. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** The fields of one answer: a path such as `hours[].at`, and the JSON types that it can have, `optional` among them where the field may be missing. */
export type Shape = Record<string, string>;

/**
 * The shape of every JSON answer with status 200, by method and path. A Lightning or MPP route that is sold in USDC too is left out: its answer is the
 * same.
 */
export function answerShapes(document: ApiDocument): Record<string, Shape> {
  const shapes: Record<string, Shape> = {};
  for (const [path, operations] of Object.entries(document.paths)) {
    const twin = path.replace(/^\/v1\/(lightning|mpp)\//, '/v1/paid/');
    if (twin !== path && twin in document.paths) continue;
    for (const [method, { responses }] of Object.entries(operations)) {
      const schema = responses?.['200']?.content?.['application/json']?.schema;
      if (schema !== undefined) shapes[`${method.toUpperCase()} ${path}`] = shapeOf(schema, document);
    }
  }
  return shapes;
}

function shapeOf(schema: Schema, document: ApiDocument): Shape {
  const types = new Map<string, Set<string>>();
  const note = (path: string, type: string) => types.set(path, (types.get(path) ?? new Set()).add(type));

  function walk(given: Schema, path: string): void {
    const read = given.$ref === undefined ? given : document.components.schemas[given.$ref.split('/').at(-1) ?? ''];
    if (read === undefined) throw new Error(`${given.$ref} is not in the document`);
    for (const part of read.anyOf ?? []) walk(part, path);
    for (const type of [read.type ?? typeOfConst(read.const)].flat()) if (type !== undefined) note(path, type);
    for (const [name, property] of Object.entries(read.properties ?? {})) {
      const below = path === '' ? name : `${path}.${name}`;
      if (!read.required?.includes(name)) note(below, 'optional');
      walk(property, below);
    }
    if (read.items) walk(read.items, `${path}[]`);
    if (typeof read.additionalProperties === 'object') walk(read.additionalProperties, `${path}{}`);
  }

  walk(schema, '');
  types.delete('');
  return Object.fromEntries([...types].map(([path, set]) => [path, [...set].sort().join(' ')]));
}

function typeOfConst(value: unknown): string | undefined {
  return value === undefined ? undefined : value === null ? 'null' : typeof value;
}

/**
 * What a client of the released shapes would miss in the present ones, as sentences; empty when they only grew. A field may be added. A field that stays
 * has no type that it did not have, because its readers do not expect one.
 */
export function lostFrom(released: Record<string, Shape>, present: Record<string, Shape>): string[] {
  return Object.entries(released).flatMap(([route, shape]) => {
    const now = present[route];
    if (now === undefined) return [`${route} is gone`];
    return Object.entries(shape).flatMap(([path, types]) => {
      const found = now[path];
      if (found === undefined) return [`${route}: ${path} is gone`];
      const isNew = (type: string) =>
        !types.split(' ').some((known) => known === type || (known === 'number' && type === 'integer'));
      const grown = found.split(' ').filter(isNew);
      return grown.length === 0 ? [] : [`${route}: ${path} was ${types}, and can be ${grown.join(' ')} now`];
    });
  });
}
