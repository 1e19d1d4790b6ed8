/**
 * Sets a key as the newest of a map, which is kept in the order of setting. Where the map then holds more than `most`, its oldest key goes: so a
 * map whose keys strangers choose stays within memory.
 */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
