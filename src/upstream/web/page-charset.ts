import { isUtf8 } from 'node:buffer';
import sniff from 'html-encoding-sniffer';

/** A page's text with the charset that it was read in, in lower case. */
export interface Decoded {
  readonly text: string;
  readonly charset: string;
}

/**
 * Decodes a page as browsers do: byte order mark, then the header, then the page's own declaration, then UTF-8 if it is valid and
 * windows-1252 if not. Bytes that are invalid in the charset become U+FFFD; no page is refused for them.
 */
export function decodePage(bytes: Uint8Array, contentType: string | null, kind: 'html' | 'xhtml' | 'text'): Decoded {
  const name = sniff(bytes, {
    xml: kind === 'xhtml',
    transportLayerEncodingLabel: charsetOf(contentType),
    defaultEncoding: isUtf8(bytes) ? 'UTF-8' : 'windows-1252',
  });
  // The "replacement" encoding is the standard's name for those that are unsafe to decode (ISO-2022-KR and others).
  const label = name === 'replacement' ? 'utf-8' : name.toLowerCase();
  return { text: new TextDecoder(label).decode(bytes), charset: label };
}

function charsetOf(contentType: string | null): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType ?? '')?.[1];
}
