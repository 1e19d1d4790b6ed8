import { own } from '../lib/own-property.ts';
import type { Entry } from './entry.ts';
import { readBody, readParams } from './listed-params.ts';
import { isObject } from './market/market-text.ts';

/** What one document says of a listing. Empty text, null and no parameters stand for silence. Plain and capped, whatever it was. */
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

/** Nothing was said. */
export const SILENCE: Description = {
  name: '',
  label: '',
  description: '',
  category: '',
  params: [],
  body: null,
  keywords: '',
  method: null,
};

/** What several documents say together: of each thing, what the first of them says that is not silent about it. */
export function joinDescriptions(...said: readonly Description[]): Description {
  const text = (key: 'name' | 'label' | 'description' | 'category' | 'keywords') =>
    said.map((one) => one[key]).find((words) => words !== '') ?? '';
  // An example belongs to the parameters of the same document.
  const described = said.find(({ params }) => params.length > 0);
  return {
    name: text('name'),
    label: text('label'),
    description: text('description'),
    category: text('category'),
    keywords: text('keywords'),
    params: described?.params ?? [],
    body: described?.body ?? said.find(({ body }) => body !== null)?.body ?? null,
    method: said.find(({ method }) => method !== null)?.method ?? null,
  };
}

/** Whether another document need not be asked for. */
export function isComplete({ name, description, params }: Description): boolean {
  return name !== '' && description !== '' && params.length > 0;
}

/** The methods of entries; a listing of any other one cannot be called by what we tell. */
export function methodOf(value: unknown): Entry['method'] | null {
  const word = typeof value === 'string' ? value.toUpperCase() : '';
  return word === 'GET' || word === 'POST' ? word : null;
}

/** What a request of a route holds, as documents describe it in several ways: a JSON Schema, or groups such as `queryParams`. */
export function describeInput(input: unknown, method: Entry['method'], url: URL): Pick<Description, 'params' | 'body'> {
  const params = readParams(input, method, decodeBraces(url.href));
  return { params, body: readBody(input, params) };
}

/** One group of an input, from its JSON Schema and an example of it: what either names, each with its example. */
export function groupOf(schema: unknown, example: unknown): object | undefined {
  const [described, shown] = [own(schema, 'properties'), example].map((one) => (isObject(one) ? one : {}));
  const named = new Set([...Object.keys(described ?? {}), ...Object.keys(shown ?? {})]);
  const names = [...named].filter((name) => name !== '__proto__');
  if (names.length === 0) return undefined;
  const members = names.map((name): [string, object] => {
    const [said, value] = [own(described, name), own(shown, name)];
    const type = Array.isArray(value) ? 'array' : typeof value;
    return [name, { type, ...(isObject(said) ? said : {}), ...(value === undefined ? {} : { example: value }) }];
  });
  return { properties: Object.fromEntries(members), required: own(schema, 'required') };
}

/** Placeholders are readable in what is listed, and escaped in what is called. */
export function decodeBraces(text: string): string {
  return text.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}
