import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';

/** Debian's Chromium without windows takes a quarter less processor time, and is used where it is installed. */
const [HEADLESS, FULL] = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const EXECUTABLE = process.env.CHROMIUM ?? (existsSync(HEADLESS) ? HEADLESS : FULL);
const IS_THERE = existsSync(EXECUTABLE);
if (!IS_THERE && process.env.REQUIRE_BROWSER === '1') {
  throw new Error(`REQUIRE_BROWSER is set, but there is no browser at ${EXECUTABLE} (CHROMIUM names another)`);
}

/**
 * Features that are turned off. Chromium heeds only the last list, so Playwright's own features that change how pages behave stand here again.
 * The omnibox's popups are pages of the browser's own, loaded beside each page of ours; with a renderer in reserve they took more than half of the
 * processor time of a visit.
 */
const UNUSED_FEATURES = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'SpareRendererForSitePerProcess',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
];

/** Flags that turn off what tests do not need, and keep the browser on this machine: no other name or address resolves, and no proxy is used. */
const FLAGS = [
  '--no-sandbox',
  // Pages of one profile share a process. Starting one costs as much as loading a page.
  '--renderer-process-limit=1',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-proxy-server',
  `--disable-features=${UNUSED_FEATURES.join(',')}`,
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];

/** Waits for the page end after this long, in milliseconds. A busy machine draws no frame for half a minute, so this only ends a test that hangs. */
const HANGS_MS = 240_000;

const VIEWPORTS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
} as const satisfies Record<string, BrowserContextOptions>;

export interface VisitOptions {
  readonly colorScheme?: 'light' | 'dark';
  readonly screen?: keyof typeof VIEWPORTS;
  /** Reduced by default: a scroll that moves over a long page, drawn without a graphics card, costs more than the page. */
  readonly reducedMotion?: 'reduce' | 'no-preference';
  /** False shows the page without scripts. Then most of Playwright's page functions do not work. */
  readonly javaScript?: boolean;
  /**
   * True opens the page in a new profile, without cache, storage and permissions. Else visits with the same options share a profile, unless `prepare` is
   * given.
   */
  readonly newProfile?: boolean;
  /** Changes the page before it is opened. Some changes, such as the clock, hold for all pages of a profile, so the page gets a new one. */
  readonly prepare?: (page: Page) => Promise<void>;
}

/** The page's events since it was opened, redirects and later navigations included. */
export interface Observed {
  /** Errors in the console, each with its source. A refused CSP source is one too. */
  readonly consoleErrors: string[];
  /** Exceptions that the page did not catch. */
  readonly pageErrors: string[];
  readonly cspViolations: string[];
  /** Requests without any answer. */
  readonly failedRequests: string[];
  /** Every requested URL. */
  readonly requests: string[];
  /** Bytes that were received, headers included, as compressed. */
  transferredBytes: number;
}

export interface Visit {
  readonly page: Page;
  readonly observed: Observed;
}

export interface TestBrowser {
  /** Opens the URL in a new page and resolves when it has loaded. The page is closed when the test ends. One that `beforeAll` opens is closed with the browser. */
  visit(url: string, options?: VisitOptions): Promise<Visit>;
}

/**
 * A suite that needs a browser. It shares one Chromium. Without a browser the suite is skipped, and its name says so.
 * With REQUIRE_BROWSER=1, as in the checks of every change, it fails instead, so that a missing browser is noticed.
 */
export function describeInBrowser(name: string, suite: (browser: TestBrowser) => void): void {
  if (!IS_THERE) {
    describe.skip(`${name} (skipped: no browser at ${EXECUTABLE})`, () => suite(NO_BROWSER));
    return;
  }
  describe(name, () => {
    let browser: Browser;
    const profiles = new Map<string, Promise<BrowserContext>>();
    let opened: { close(): Promise<void> }[] = [];
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS });
    });
    // What `beforeAll` opened is used by several tests, so this forgets it.
    beforeEach(() => {
      opened = [];
    });
    afterEach(async () => {
      await Promise.all(opened.map((one) => one.close()));
    });
    suite({
      visit: async (url, options = {}) => {
        const { newProfile, prepare } = options;
        const profileOptions = contextOptions(options);
        if (newProfile || prepare) {
          const profile = await createProfile(browser, profileOptions);
          opened.push(profile);
          return visit(profile, url, prepare);
        }
        const key = JSON.stringify(profileOptions);
        const profile = profiles.get(key) ?? createProfile(browser, profileOptions);
        profiles.set(key, profile);
        const visited = await visit(await profile, url);
        opened.push(visited.page);
        return visited;
      },
    });
    // Registered last, so it runs first at the end. Otherwise a server that the suite stops would wait for the connections of open pages.
    afterAll(() => browser.close());
  });
}

const NO_BROWSER: TestBrowser = { visit: () => Promise.reject(new Error('there is no browser')) };

function contextOptions(options: VisitOptions): BrowserContextOptions {
  const { colorScheme = 'light', screen = 'desktop', reducedMotion = 'reduce', javaScript = true } = options;
  return { ...VIEWPORTS[screen], colorScheme, reducedMotion, javaScriptEnabled: javaScript };
}

async function createProfile(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(HANGS_MS);
  return context;
}

async function visit(context: BrowserContext, url: string, prepare?: VisitOptions['prepare']): Promise<Visit> {
  const page = await context.newPage();
  const observed = await observe(page);
  await prepare?.(page);
  await page.goto(url);
  return { page, observed };
}

async function observe(page: Page): Promise<Observed> {
  const observed: Observed = {
    consoleErrors: [],
    pageErrors: [],
    cspViolations: [],
    failedRequests: [],
    requests: [],
    transferredBytes: 0,
  };
  page.on('console', (message) => {
    if (message.type() === 'error') observed.consoleErrors.push(`${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => observed.pageErrors.push(error.stack ?? error.message));
  page.on('request', (request) => observed.requests.push(request.url()));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'no reason given';
    // A request that was in flight when the test left the page. A refusal by the policy has another name.
    if (reason !== 'net::ERR_ABORTED') observed.failedRequests.push(`${request.url()}: ${reason}`);
  });
  await page.exposeFunction('reportCspViolation', (text: string) => observed.cspViolations.push(text));
  // Text, because the tests are type-checked without the DOM. The browser's own tools are not subject to the page's CSP.
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    reportCspViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile + ':' + event.lineNumber));`);
  const devtools = await page.context().newCDPSession(page);
  devtools.on('Network.loadingFinished', ({ encodedDataLength }) => {
    observed.transferredBytes += encodedDataLength;
  });
  await devtools.send('Network.enable');
  return observed;
}
