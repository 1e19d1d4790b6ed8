import { own } from '../lib/untrusted.ts';
import type { Entry } from './entry.ts';
import { readBody, readParams } from './listed-params.ts';
import { isObject } from './market/market-text.ts';

/** What one document says about a listing. Empty text, null and no parameters mean that the document says nothing. All text is plain and limited in length. */
export interface Description {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly category: string;
  readonly params: Entry['params'];
  readonly body: Entry['body'];
  readonly keywords: string;
  readonly method: Entry['method'] | null;
}

/** The description of a document that says nothing. */
export const NO_DESCRIPTION: Description = {
  name: '',
  label: '',
  description: '',
  category: '',
  params: [],
  body: null,
  keywords: '',
  method: null,
};

/** Joins descriptions. Each member comes from the first description that has it. */
export function joinDescriptions(...descriptions: readonly Description[]): Description {
  const text = (key: 'name' | 'label' | 'description' | 'category' | 'keywords') =>
    descriptions.map((one) => one[key]).find((words) => words !== '') ?? '';
  // The example must come from the same document as the parameters.
  const described = descriptions.find(({ params }) => params.length > 0);
  return {
    name: text('name'),
    label: text('label'),
    description: text('description'),
    category: text('category'),
    keywords: text('keywords'),
    params: described?.params ?? [],
    body: described?.body ?? descriptions.find(({ body }) => body !== null)?.body ?? null,
    method: descriptions.find(({ method }) => method !== null)?.method ?? null,
  };
}

/** Whether no further document is needed. */
export function isComplete({ name, description, params }: Description): boolean {
  return name !== '' && description !== '' && params.length > 0;
}

/** Reads a method that entries may have; null for any other, because our entries cannot express its call. */
export function methodOf(value: unknown): Entry['method'] | null {
  const word = typeof value === 'string' ? value.toUpperCase() : '';
  return word === 'GET' || word === 'POST' ? word : null;
}

/** Reads the input of a route from any form that documents use: a JSON Schema, or groups such as `queryParams`. */
export function describeInput(input: unknown, method: Entry['method'], url: URL): Pick<Description, 'params' | 'body'> {
  const params = readParams(input, method, decodeBraces(url.href));
  return { params, body: readBody(input, params) };
}

/** Joins a group's JSON Schema and its example: every member that either names, with its example. */
export function groupOf(schema: unknown, example: unknown): object | undefined {
  const [described, shown] = [own(schema, 'properties'), example].map((one) => (isObject(one) ? one : {}));
  const named = new Set([...Object.keys(described ?? {}), ...Object.keys(shown ?? {})]);
  const names = [...named].filter((name) => name !== '__proto__');
  if (names.length === 0) return undefined;
  const members = names.map((name): [string, object] => {
    const [member, value] = [own(described, name), own(shown, name)];
    const type = Array.isArray(value) ? 'array' : typeof value;
    return [name, { type, ...(isObject(member) ? member : {}), ...(value === undefined ? {} : { example: value }) }];
  });
  return { properties: Object.fromEntries(members), required: own(schema, 'required') };
}

/** Unescapes braces. Listings show placeholders; called URLs escape them. */
export function decodeBraces(text: string): string {
  return text.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}
