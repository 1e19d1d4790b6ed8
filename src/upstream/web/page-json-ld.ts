/** What a page says about its article in schema.org's words, as it says it. */
export interface ArticleFacts {
  readonly author: string | null;
  readonly datePublished: string | null;
}

/** A page has one to three blocks of a few KB. Larger ones describe catalogues. Blocks without an end count too, because each costs a search. */
const MAX_BLOCKS = 8;
const MAX_BLOCK_UNITS = 100_000;
/** Things that are looked at in one block. */
const MAX_THINGS = 50;
const MAX_AUTHORS = 5;
const MAX_TYPES = 10;

type Thing = Readonly<Record<string, unknown>>;

/** Reads the JSON-LD blocks of a page's markup. They are scripts, which are removed before a tree is built. Looks at the first few only, whatever they hold. */
export function articleFacts(html: string): ArticleFacts {
  let author: string | null = null;
  let datePublished: string | null = null;
  for (const thing of thingsOf(html)) {
    author ??= authorOf(thing.author);
    if (typeof thing.datePublished === 'string') datePublished ??= thing.datePublished;
  }
  return { author, datePublished };
}

/** The articles first, then other things. */
function thingsOf(html: string): Thing[] {
  const things = blocksOf(html).flatMap(flatten);
  const isArticle = (thing: Thing) => /Article|Posting|Report|Book|Thesis/.test(typesOf(thing));
  const isWork = (thing: Thing) => /Page|Work|Video|Recipe/.test(typesOf(thing));
  return [...things.filter(isArticle), ...things.filter((thing) => !isArticle(thing) && isWork(thing))];
}

/** The names of what a thing is. Other values than names may be nested deeper than the call stack. */
function typesOf(thing: Thing): string {
  const types = thing['@type'];
  const named = (Array.isArray(types) ? types : [types]).slice(0, MAX_TYPES);
  return named.filter((type) => typeof type === 'string').join(' ');
}

function blocksOf(html: string): unknown[] {
  const blocks: unknown[] = [];
  const opening = /application\/ld\+json[^>]{0,200}>/gi;
  for (let found = opening.exec(html); found && blocks.length < MAX_BLOCKS; found = opening.exec(html)) {
    const within = html.slice(opening.lastIndex, opening.lastIndex + MAX_BLOCK_UNITS);
    const end = within.search(/<\/script/i);
    try {
      blocks.push(end < 0 ? null : JSON.parse(within.slice(0, end)));
    } catch {
      // Many pages write JSON with mistakes. Their other data are used.
      blocks.push(null);
    }
  }
  return blocks;
}

/** A block is one thing, a list of things, or a graph of them. */
function flatten(block: unknown): Thing[] {
  const list = Array.isArray(block) ? block : [block];
  const things = list.slice(0, MAX_THINGS).filter(isThing);
  return things.flatMap((thing) => (Array.isArray(thing['@graph']) ? flattenGraph(thing['@graph']) : [thing]));
}

function flattenGraph(graph: readonly unknown[]): Thing[] {
  return graph.slice(0, MAX_THINGS).filter(isThing);
}

function isThing(value: unknown): value is Thing {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A name, a person with a name, or a list of either. */
function authorOf(value: unknown): string | null {
  const names = (Array.isArray(value) ? value : [value]).slice(0, MAX_AUTHORS).flatMap((one) => {
    const name = isThing(one) ? one.name : one;
    return typeof name === 'string' && name.trim() !== '' ? [name.trim()] : [];
  });
  return names.length === 0 ? null : names.join(', ');
}
