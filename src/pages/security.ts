/**
 * What a page of ours may do: load its own scripts, styles and images and ask its own origin. No inline script or style exists, so none is
 * allowed, and text of a stranger's that got into a page as markup could still run nothing. (Charts set styles through the DOM, which a policy does not see.)
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

/** The headers of every page and asset, beside those of every answer. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  // Where a reader goes from here is nobody's business.
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
