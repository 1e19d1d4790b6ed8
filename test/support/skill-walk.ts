import { randomBytes } from 'node:crypto';
import { hexToBigInt } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';

// A program that knows nothing of percall but where its skill is. Each path, header field and member that it uses is read off the skill's text. What
// the text does not say it cannot do: it throws.

/** The first group of a pattern. */
function said(text: string, pattern: RegExp): string {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) throw new Error(`the skill does not say ${pattern}`);
  return found;
}

/** The text below the heading with this number. */
const step = (skill: string, number: number): string =>
  said(skill, new RegExp(`^## ${number}\\. .*\\n([^]*?)(?=^## )`, 'm'));

type Json = Record<string, unknown>;

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, name) => (found as Json)[name], value);
}

const decode = (value: string | null): Json => JSON.parse(Buffer.from(value ?? '', 'base64').toString('utf8'));

/** Fills in what stands in <>. */
function fill(form: unknown, meaning: (asked: string) => unknown): unknown {
  if (typeof form === 'string') {
    const [, asked] = /^<(.*)>$/.exec(form) ?? [];
    return asked === undefined ? form : meaning(asked);
  }
  if (Array.isArray(form)) return form.map((one) => fill(one, meaning));
  if (typeof form !== 'object' || form === null) return form;
  return Object.fromEntries(Object.entries(form).map(([name, one]) => [name, fill(one, meaning)]));
}

/** What the skill's placeholders of an authorization stand for. */
function partOf(asked: string, entry: Json, address: string): unknown {
  const seconds = /^now in Unix seconds \+ (\d+)$/.exec(asked)?.[1];
  if (seconds) return String(Math.floor(Date.now() / 1000) + Number(seconds));
  const bytes = /^0x and (\d+) random bytes in hex$/.exec(asked)?.[1];
  if (bytes) return `0x${randomBytes(Number(bytes)).toString('hex')}`;
  const member = /^entry\.([\w.]+)$/.exec(asked)?.[1];
  if (member) return at(entry, member);
  if (asked === 'your address') return address;
  throw new Error(`the skill asks for <${asked}>, which nothing explains`);
}

/** A wallet signs typed data; its whole numbers are of any size. */
async function sign(account: PrivateKeyAccount, typed: Json): Promise<string> {
  const { message, types, primaryType } = typed as {
    message: Json;
    types: Record<string, Json[]>;
    primaryType: string;
  };
  const wide = (types[primaryType] ?? []).filter(({ type }) => type === 'uint256').map(({ name }) => String(name));
  const numbers = Object.entries(message).map(([name, value]) => [
    name,
    wide.includes(name) ? BigInt(String(value)) : value,
  ]);
  return account.signTypedData({ ...typed, message: Object.fromEntries(numbers) } as never);
}

/** The question's best route, as a URL with its required parameters: by the examples of the search, as a model would choose values. */
export async function findRoute(skill: string, question: string) {
  const origin = said(skill, /^Service: (\S+), which stands before every path/m);
  const text = step(skill, 1);
  const search = said(text, /`GET (\S*\{question\})` \(free\)/);
  const [list, members] = [said(text, /answers `(\w+)`, the best first/), said(text, /Each has ([^:]*):/)];
  const [url = '', price = '', , params = ''] = [...members.matchAll(/`(\w+)`/g)].map(([, name]) => String(name));
  const [name = '', required = '', , example = ''] = [
    ...said(text, /parameters, with ([^.]*)\./).matchAll(/`(\w+)`/g),
  ].map(([, one]) => String(one));
  const found = await fetch(origin + search.replace('{question}', encodeURIComponent(question)));
  const [best] = ((await found.json()) as Record<string, Json[]>)[list] ?? [];
  if (!best) throw new Error(`nothing on sale answers ${question}`);
  const route = new URL(String(best[url]));
  for (const param of best[params] as Json[]) {
    if (param[required]) route.searchParams.set(String(param[name]), String(param[example]));
  }
  return { origin, url: route.href, priceUsd: String(best[price]) };
}

/** Reads the price, signs a payment of at most the skill's ceiling, and presents it. `again` presents it once more. */
export async function payFor(skill: string, url: string, privateKey: `0x${string}`) {
  const [asking, paying] = [step(skill, 2), step(skill, 3)];
  const unpaid = await fetch(url);
  const challengeField = said(asking, /header `([\w-]+)` is base64 of JSON/);
  const challenge = decode(unpaid.headers.get(challengeField));
  const wanted = [...said(asking, /take the \*entry\* with (.*?); without one/).matchAll(/`([\w.]+)` `([^`]+)`/g)];
  const entries = challenge[said(asking, /In its `(\w+)` take/)] as Json[];
  const entry = entries.find((one) => wanted.every(([, path = '', value]) => at(one, path) === value));
  if (wanted.length < 3 || !entry) throw new Error('no entry is what the skill says to take');
  const ceiling = BigInt(said(asking, /The dearest route asks `(\d+)`/));
  if (BigInt(String(entry[said(asking, /`(\w+)` is the price/)])) > ceiling) throw new Error('above the ceiling');
  const hint = said(asking, /If `(\w+)` in the body has/);
  if (String(((await unpaid.json()) as Json)[hint]).includes(said(asking, /has "([^"]+)"/))) throw new Error('mend it');

  const account = privateKeyToAccount(privateKey);
  const [first = '', second = ''] = [...paying.matchAll(/```json\n(.*)\n```/g)].map(([, block]) => String(block));
  const typed = fill(JSON.parse(first), (asked) => partOf(asked, entry, account.address)) as Json;
  const signature = await sign(account, typed);
  const payment = fill(JSON.parse(second), (asked) => {
    const characters = /^(\d+) to \d+ random letters and digits$/.exec(asked)?.[1];
    if (characters) return randomBytes(Number(characters)).toString('hex');
    const parts: Json = { entry, '0x signature': signature, message: typed.message };
    if (!(asked in parts)) throw new Error(`the skill asks for <${asked}>, which nothing explains`);
    return parts[asked];
  });
  const field = said(paying, /with the header `([\w-]+)`: base64 of the payment/);
  const receiptField = said(paying, /its header `([\w-]+)` is base64 JSON/);
  const transaction = said(paying, /is base64 JSON with the `(\w+)`/);
  const header = Buffer.from(JSON.stringify(payment)).toString('base64');
  const present = async () => {
    const answer = await fetch(url, { headers: { [field]: header } });
    const body = await answer.text();
    const receipt = answer.headers.get(receiptField);
    const refused = answer.headers.get(challengeField);
    const reason = refused ? decode(refused)[said(step(skill, 4), /402 again: `(\w+)` in/)] : null;
    return { status: answer.status, reason, body, transaction: receipt ? String(decode(receipt)[transaction]) : null };
  };
  const { nonce } = typed.message as { nonce: `0x${string}` };
  if (hexToBigInt(nonce) === 0n) throw new Error('the nonce is not random');
  const lookup = said(step(skill, 4), /`GET (\S*\{nonce\})`/).replace('{nonce}', nonce);
  return { unpaid, amount: BigInt(String(entry.amount)), answer: await present(), again: present, lookup };
}
