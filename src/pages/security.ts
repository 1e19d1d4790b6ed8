/**
 * The content security policy of our pages: own scripts, styles and images, and requests to the own origin.
 * No inline script or style exists, so none is allowed. So a third party's text could not run anything even if it became markup.
 * Charts set styles through the DOM, which the policy does not cover.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of every page and asset, besides those of every answer. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  // Other sites do not learn which page a reader came from.
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
