import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { toJsonSchema } from '../../catalogue/params.ts';
import { pascal } from '../../catalogue/paths.ts';
import { sourceSchema } from '../../lib/source.ts';
import type { Json } from './openapi-shapes.ts';
import { answerName, problemName, reference } from './openapi-shared.ts';

const PROBLEM_EXAMPLE = {
  type: 'about:blank',
  title: 'Bad Request',
  status: 400,
  detail: 'gas: a whole number from 1 to 30000000',
  instance: '/v1/fees/estimate',
  code: 'bad_parameter',
  charged: false,
  requestId: 'Qm9vdFByZWZpeA-2s',
  errors: [{ path: 'gas', message: 'a whole number from 1 to 30000000' }],
};

/** The schemas that every operation may refer to: of failures, and of the member `source`. */
const OWN_SCHEMAS: Json = {
  Problem: {
    ...toJsonSchema(
      z.object({
        type: z.string(),
        title: z.string().meta({ description: 'The status in words' }),
        status: z.int(),
        detail: z.string().meta({ description: 'What the caller can do about it' }),
        instance: z.string().meta({ description: 'The path of the request' }),
        code: z.string().meta({ description: 'Stable, in snake_case; meant for programs' }),
        charged: z.union([z.boolean(), z.literal('unknown')]).meta({
          description:
            'false: no money moved or will move. true: the payment was taken, and its answer is no longer kept. "unknown": a settlement has no final answer yet, or the payment was not looked at; present the same one again',
        }),
        requestId: z.string().meta({ description: 'The same as X-Request-Id' }),
        errors: z
          .array(z.object({ path: z.string(), message: z.string() }))
          .optional()
          .meta({ description: 'Each parameter at fault' }),
      }),
      'input',
    ),
    description: 'RFC 9457 problem details; routes may add members',
    examples: [PROBLEM_EXAMPLE],
  },
  Hint: {
    type: 'object',
    properties: {
      hint: {
        type: 'string',
        description: 'What is wrong, or what the route sells; the price; what to do next; where to read more',
      },
    },
    required: ['hint'],
    additionalProperties: false,
  },
};
const SOURCE = toJsonSchema(sourceSchema, 'output');

/** How many answers must have a part before it is described once for all. */
const MIN_ANSWERS = 3;

/**
 * The component schemas of the document: those of declared routes, the answer of each entry, under which its example stands too, its problem where that has members of its own, and the parts that several answers have in
 * common, under the names of their members. An answer that is sold over several protocols is described once.
 */
export function componentSchemas(catalogue: readonly Endpoint<never>[], declared: Json): Json {
  const own: Json = { ...OWN_SCHEMAS, ...declared, Source: SOURCE };
  const answers = catalogue.map((endpoint) => ({ endpoint, schema: toJsonSchema(endpoint.result, 'output') }));
  const parts = commonParts(
    answers.map(({ schema }) => schema),
    own,
  );
  const names = new Map(parts.map(([name, text]) => [text, name]));
  const described = answers.map(({ endpoint, schema }) => [
    answerName(endpoint),
    { ...refer(schema, names), examples: [endpoint.example.result] },
  ]);
  const problems = catalogue.flatMap((endpoint) => {
    if (!endpoint.problemMembers) return [];
    const members = refer(toJsonSchema(endpoint.problemMembers, 'input'), names);
    return [[problemName(endpoint), { allOf: [reference('schemas', 'Problem'), members] }]];
  });
  const shared = parts.map(([name, text]) => [name, refer(JSON.parse(text), names)]);
  return { ...own, ...Object.fromEntries([...shared, ...described, ...problems]) };
}

/** The objects that are members of several answers, with a name each and their JSON. A name stands for the first part that has it. */
function commonParts(answers: readonly Json[], own: Json): [name: string, text: string][] {
  const found = new Map<string, { readonly name: string; answers: number }>();
  for (const answer of answers) {
    for (const [text, name] of new Map(membersOf(answer))) {
      const part = found.get(text) ?? { name, answers: 0 };
      part.answers += 1;
      found.set(text, part);
    }
  }
  const isTaken = (name: string, text: string) => Object.hasOwn(own, name) && JSON.stringify(own[name]) !== text;
  const common = [...found].filter(([text, { name, answers: count }]) => count >= MIN_ANSWERS && !isTaken(name, text));
  const byName = new Map(common.reverse().map(([text, { name }]) => [name, text]));
  return [...byName].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** The JSON and the name of every member of a schema, at any depth, that is an object. */
function membersOf(schema: Json): [text: string, name: string][] {
  return Object.entries(schema).flatMap(([key, value]): [string, string][] => {
    if (typeof value !== 'object' || value === null) return [];
    const within = Object.values(value).flatMap((one) => (isSchema(one) ? membersOf(one) : []));
    if (key !== 'properties') return [...membersOf(value as Json), ...within];
    const objects = Object.entries(value as Record<string, Json>).filter(([, member]) => member.type === 'object');
    return [...objects.map(([name, member]): [string, string] => [JSON.stringify(member), pascal(name)]), ...within];
  });
}

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null;

/** The same schema, with a reference in place of each part that has a component of its own. */
function refer(schema: Json, names: ReadonlyMap<string, string>): Json {
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (!isSchema(value)) return value;
    const name = names.get(JSON.stringify(value));
    return name === undefined ? refer(value, names) : reference('schemas', name);
  };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, replaced(value)]));
}
