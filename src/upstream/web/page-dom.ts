import type { PageNode } from './page-text.ts';

/** The parts of a DOM's elements and documents that are used. linkedom's own types would need the browser's. */
export interface PageElement extends PageNode {
  textContent: string | null;
  readonly childNodes: ArrayLike<PageElement>;
  readonly firstChild: PageElement | null;
  readonly parentNode: PageElement | null;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

export interface PageDocument {
  readonly documentElement: PageElement | null;
  readonly body: PageElement | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}
