const HEX = /0x(?:[0-9a-f]{64}|[0-9a-f]{40})\b/gi;
/** Chosen by a test, as `0x5e5e…`, so not random. */
const ONE_BYTE = /^0x(..)\1+$/i;
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const INVOICE = /\bln(?:bc|tb)[0-9a-z]{100,}\b/g;
const SECONDS = /("(?:at|retrievedAt)":)(\d{10})\b/g;
/** Times near the present are replaced. The examples in challenges have other times, which stay. */
const NEAR_SECONDS = 3600;
const AGE = /("ageSeconds":)\d+/g;
/** A block of the embedded chain. Block numbers of the examples are higher and stay. */
const BLOCK = /("block":)\d{1,5}\b/g;
/** The service's own version, which a release changes. */
const SERVER_VERSION = /("name":"percall"[^{}]*"version":)"[^"]+"/g;
const REQUEST_ID = /("requestId":")[^"]+/g;
/** The members of a challenge that differ with each invoice. Unit tests decode them. */
const CHALLENGE = /\b(macaroon|id|request|expires|opaque)="[^"]+"/g;
/** The members that name a challenge or a time in text. */
const OF_CHALLENGE = /("(?:challengeId|timestamp)":)"[^"]+"/g;
/** The run count of a test endpoint's handler. Examples have the tag `none` and stay. */
const RUN = /("tag":"(?!none")[^"]*","run":)(\d+)/g;

/**
 * Replaces values that differ between two runs by names. Values of one kind are numbered by first appearance.
 * So a transcript still shows where a value appears again. Addresses and hashes in `constants` stay.
 */
export function createPlaceholders(constants: string) {
  const kept = new Set((constants.match(HEX) ?? []).map((one) => one.toLowerCase()));
  const named = new Map<string, string>();
  const given = new Map<string, string>();
  const counts = new Map<string, number>();

  function nameOf(kind: string, value: string): string {
    const key = `${kind} ${value.toLowerCase()}`;
    const known = named.get(key);
    if (known !== undefined) return known;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const name = `<${kind} ${count}>`;
    named.set(key, name);
    return name;
  }

  function nameHex(value: string): string {
    if (ONE_BYTE.test(value) || kept.has(value.toLowerCase())) return value;
    return nameOf(value.length > 42 ? 'hash' : 'address', value);
  }

  return {
    /** Gives a name to a value that has no form of its own, from now on. */
    name: (value: string, name: string): void => {
      given.set(value, `<${name}>`);
    },
    apply(text: string): string {
      const nowSeconds = Date.now() / 1000;
      let result = text;
      for (const [value, name] of given) result = result.replaceAll(value, name);
      return result
        .replace(HEX, nameHex)
        .replace(SERVER_VERSION, '$1"<version>"')
        .replace(UUID, (value) => nameOf('uuid', value))
        .replace(INVOICE, (value) => nameOf('invoice', value))
        .replace(SECONDS, (all, member, value) =>
          Math.abs(Number(value) - nowSeconds) < NEAR_SECONDS ? `${member}<seconds>` : all,
        )
        .replace(AGE, '$1<seconds>')
        .replace(BLOCK, '$1<number>')
        .replace(CHALLENGE, '$1="<changes>"')
        .replace(OF_CHALLENGE, '$1"<changes>"')
        .replace(REQUEST_ID, '$1<request id>')
        .replace(RUN, (_all, member, value) => `${member}${nameOf('run', value)}`);
    },
  };
}
