import type { Entry } from './entry.ts';
import type { Json } from './market-text.ts';
import type { Param } from './read-params.ts';

/** What one document says of a listing. Empty text, null and no parameters stand for silence. Plain and capped, whatever it was. */
export interface Description {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly category: string;
  readonly params: readonly Param[];
  readonly body: Json;
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
