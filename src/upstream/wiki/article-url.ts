/** The public address of an article, not that of a mirror. The title is encoded as MediaWiki does. */
export function articleUrl(lang: string, title: string): string {
  const path = encodeURIComponent(title.replaceAll(' ', '_')).replace(/%(3A|2C|2F|3B|40|24)/g, decodeURIComponent);
  return `https://${lang}.wikipedia.org/wiki/${path}`;
}
