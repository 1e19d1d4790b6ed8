import { z } from 'zod';

/** In characters. RFC 9110 asks for support of 8000; most pages need 200. */
const MAX_URL = 2048;

/** The part of the description that both routes share. */
export const WEB_RULES =
  'http and https on the default port, public addresses only, redirects included: anything else is 400 `url_not_public`. ' +
  'One page at the request of one buyer: robots.txt is not consulted; the User-Agent names this service. ' +
  'Requests to one host are limited for all buyers together (429).';

/** The `url` parameter. The fetch checks whether the host is public, so that a literal address and a name get the same answer. */
export const urlParam = z
  .string('required: a public http(s) URL')
  .max(MAX_URL, `at most ${MAX_URL} characters`)
  .refine((text) => URL.canParse(text), 'a whole URL, for example https://example.com/page')
  .meta({ description: `The page's URL. ${WEB_RULES}`, format: 'uri', maxLength: MAX_URL });

export const finalUrl = z.string().meta({ description: 'Where the answer came from, after redirects' });
