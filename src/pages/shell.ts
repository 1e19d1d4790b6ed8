import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { type Encodable, type Encoded, encodeWhenAsked } from '../http/answers.ts';
import type { NamedChain } from '../lib/service.ts';
import { type Html, html, markupOf } from './html.ts';

// The frame of all pages, and the assets that it names: each path has a hash of its bytes.

interface Page {
  readonly site: Site;
  /** Without the service's name. */
  readonly title: string;
  /** Marks its link in the navigation. */
  readonly path: string;
  readonly body: Html;
  /** One sentence for search engines, and for those who link to the page. */
  readonly description?: string;
  /** Assets, in the order in which they run after the page was parsed. */
  readonly scripts?: readonly string[];
  /** Assets besides the common `pages.css`. */
  readonly styles?: readonly string[];
}

export function renderPage({ site, title, path, body, description, scripts = [], styles = [] }: Page): string {
  const { chain } = site;
  const named = path === '/' ? title : `${title} · percall`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${named}</title>
${description && renderPreview(site, named, path, description)}
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${assetPath('icon.svg')}" type="image/svg+xml">
${['pages.css', ...styles].map(
  (name) => html`<link rel="stylesheet" href="${assetPath(name)}">
`,
)}${scripts.map(scriptOf)}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${chain.isPlayMoney && PLAY_MONEY}<header class="top">
<a class="brand" href="/"><img src="${assetPath('icon.svg')}" alt="" width="22" height="22"> percall</a>
<p class="chain"><span class="unseen">Chain: </span>${chain.name}</p>
<nav aria-label="Pages"><ul class="routes">${NAVIGATION.map((item) => linkOf(item, path))}</ul></nav>
</header>
<main id="main" tabindex="-1">
${body}
</main>
${renderFooter(site)}
</body>
</html>
`;
  return markupOf(page);
}

/** Libraries that define a global variable. All other scripts are modules. */
const PLAIN_SCRIPTS = new Set(['uplot.js']);

function scriptOf(name: string): Html {
  const src = assetPath(name);
  return PLAIN_SCRIPTS.has(name)
    ? html`<script src="${src}" defer></script>
`
    : html`<script src="${src}" type="module"></script>
`;
}

const NAVIGATION: readonly { path: string; label: string }[] = [
  { path: '/', label: 'Overview' },
  { path: '/market', label: 'Market' },
  { path: '/docs', label: 'Reference' },
  { path: '/status', label: 'Status' },
];

function linkOf({ path, label }: { path: string; label: string }, current: string): Html {
  const mark = path === current && html` aria-current="page"`;
  return html`<li><a href="${path}"${mark}>${label}</a></li>`;
}

const PLAY_MONEY = html`<p class="ribbon"><strong>Demo, play money.</strong> This chain runs on one machine, and its \
coins are worth nothing.</p>
`;

function renderPreview({ origin }: Site, title: string, path: string, description: string): Html {
  return html`<meta name="description" content="${description}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="percall">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta property="og:url" content="${origin}${path}">
<meta property="og:image" content="${origin}/preview.png">
<meta property="og:image:alt" content="percall: data by the call">
<meta name="twitter:card" content="summary_large_image">`;
}

function renderFooter({ sourceUrl, termsUrl, contactUrl }: Site): Html {
  return html`<footer class="bottom">
<p>A failing call costs nothing. No signup, no key, no cookies, no trackers.</p>
<ul class="routes" aria-label="About this service">
${sourceUrl && html`<li><a href="${sourceUrl}" rel="noopener">Source</a></li>`}
<li><a href="${termsUrl}">Terms</a></li>
${contactUrl && html`<li><a href="${contactUrl}" rel="noopener">Contact</a></li>`}
</ul>
<ul class="routes" aria-label="For machines">
<li><a href="/openapi.json">OpenAPI</a></li>
<li><a href="/v1/paid">Price list</a></li>
<li><a href="/llms.txt">llms.txt</a></li>
<li><a href="/.well-known/x402">x402</a></li>
</ul>
</footer>`;
}

interface Site {
  readonly chain: NamedChain;
  readonly origin: string;
  readonly sourceUrl: string | null;
  readonly termsUrl: string;
  readonly contactUrl: string | null;
}

export interface SiteSettings {
  readonly publicOrigin: string;
  readonly network: NamedChain;
  readonly web: { readonly contactUrl: string | null };
  readonly site: { readonly sourceUrl: string | null; readonly termsUrl: string | null };
}

/** Without the operator's own terms, pages link to the service's. */
export function siteOf({ publicOrigin: origin, network: chain, web, site }: SiteSettings): Site {
  const { sourceUrl, termsUrl } = site;
  return { chain, origin, sourceUrl, termsUrl: termsUrl ?? '/terms', contactUrl: web.contactUrl };
}

const FOLDER = join(import.meta.dirname, 'assets');
const require = createRequire(import.meta.url);

const LIBRARIES: Readonly<Record<string, string>> = {
  'uplot.js': require.resolve('uplot/dist/uPlot.iife.min.js'),
  'uplot.css': require.resolve('uplot/dist/uPlot.min.css'),
  'qr.js': require.resolve('qr'),
};

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

/** An import of a neighbouring script, at once or on demand, or of the library `qr`, as the formatter writes it. */
const IMPORT = /(^import |\bfrom |\bawait import\()'(?:\.\/([\w-]+\.js)|(qr))'/gm;

const FILES = new Map(
  [
    ...readdirSync(FOLDER).map((name): [string, string] => [name, join(FOLDER, name)]),
    ...Object.entries(LIBRARIES),
  ].filter(([name]) => extname(name) in CONTENT_TYPES),
);
const byName = new Map<string, string>();
const byPath = new Map<string, Encodable>();
for (const name of FILES.keys()) assetPath(name);

export async function findAsset(path: string): Promise<Encoded | undefined> {
  return byPath.get(path)?.encoded();
}

/**
 * Throws for an unknown name, so that no page has a dead link. Scripts that a file imports are read first, because it
 * names their hashes: so a cached script never loads another version of one.
 */
export function assetPath(name: string): string {
  const known = byName.get(name);
  if (known !== undefined) return known;
  const file = FILES.get(name);
  if (file === undefined) throw new Error(`there is no asset ${name}`);
  const extension = extname(name);
  const source = readFileSync(file, 'utf8');
  const text =
    name in LIBRARIES
      ? source
      : source.replace(IMPORT, (_all, from, other, library) => `${from}'${assetPath(other ?? `${library}.js`)}'`);
  const asset = encodeWhenAsked(Buffer.from(text), CONTENT_TYPES[extension] ?? '');
  const path = `/assets/${name.slice(0, -extension.length)}.${asset.hash}${extension}`;
  byName.set(name, path);
  byPath.set(path, asset);
  return path;
}
