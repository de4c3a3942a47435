import { SLOTS, SLOTS_OF_PARTITION } from './node-view.js';

const LAST_ASCII = 0x7f;

/**
 * The slot of a key by Redis' hash tag rule: only what stands between the first `{` and the first `}` after it counts,
 * unless that is empty.
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return crcOf(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

/** The partition of a resource, from 0 to 255. Resources with one hash tag are in one partition. Protocol 12.1. */
export function partitionOf(resource: string): number {
  return Math.floor(slotOf(resource) / SLOTS_OF_PARTITION);
}

/**
 * The hash tag of each partition, whose slot is the first one of the partition.
 *
 * Among the strings of the digits and the letters from a to z, the shortest with that slot was taken, of several the
 * first in the order of ASCII. The tags are part of the names of all keys: with another table, a process would not see
 * the locks of the others. They never change.
 * Protocol 12.1.
 */
export const TAGS: readonly string[] = [
  '1bz 5n3 53t d5m nbd 7me j3j 3xc 04s a2j if5 0i4 o4m cu4 kec 2jb',
  'dlj 5js 574 92e 3el bcu 74b fvs 003 4xr akm 0mt 23e cqt 6bk x3',
  '5nw dhn 96a 530 bgq 3ah frw 70f pt6 047 0ip 4e9 c1x ex oin 6fo',
  '5j7 9of d1i 57p 7ia fox 38o j7n 4x6 00w 0m0 4ay c58 a8 xw kag',
  '17p h8q he6 1j7 n7n 78o box 3ia 0ay 4m0 40w 0x6 06 6nf c9q mq',
  '130 hx9 hav 1nw 30f brw 7ah fgq 0e9 4ip 447 81f 4v kin 67a i1',
  'h85 174 1js her bvs 34b fcu 7el 4mt ekm 0xr 403 cdr 0r m5 63e',
  'qsu 13t 1n3 5bz 7xc n3j 3me jbd 4i4 8le e2j 44s 6jb 42 iu k4m',
  'fjl 7lu 712 3ys 1cj hlk 52d 975 265 k94 cmk 9k 05c a3z 4dm ebt',
  'ng4 7h5 75r f3k 9n2 5kc h5l 93u 22u 6z4 02bb 2o2 m2k 4yb ice 0ld',
  '7l1 nc0 3y7 71v 5og 9j6 1za h1h c0h dh 2k6 kd7 49n 8x7 8ax any',
  '7hq 3d8 wu7 756 hho 1gn 931 5rh 6zp 221 yg cio asv 01g 8e8 aj9',
  '356 su7 7d8 3hq 1rh h9a 5gn daw gio 6ov 621 la 8iq afp 41g 846',
  '31v 7y7 jc0 3l1 d8p 5za qkn 1og 5f 6k6 66q g0h 8m1 ab0 i6o 09n',
  'b3k 35r 3h5 jg4 092l l5l 1kc hdb 6o2 1b 2z4 62u 4ld 8i5 0yb i2k',
  '7ys 312 3lu bjl hym 12d des 5cj 6kr gmk he 665 abt 0dm 802 45c',
].flatMap((row) => row.split(' '));

/** CRC-16/XMODEM of the UTF-8 bytes. Those of an ASCII string are its character codes. */
function crcOf(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > LAST_ASCII) return Buffer.from(text).reduce(nextCrc, 0);
    crc = nextCrc(crc, code);
  }
  return crc;
}

/** Divides by the polynomial x^16 + x^12 + x^5 + 1, eight bits at a time and without a table. */
function nextCrc(crc: number, byte: number): number {
  const high = (crc >> 8) ^ byte;
  const folded = high ^ (high >> 4);
  return ((crc << 8) ^ (folded << 12) ^ (folded << 5) ^ folded) & 0xffff;
}
