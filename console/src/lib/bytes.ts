/** bytesOf reads base64. What is none is nothing. */
export function bytesOf(base64: string): Uint8Array {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

const width = 16;

/** hex shows bytes as a dump: where, what, and the characters that can be shown. */
export function hex(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += width) {
    const part = [...bytes.subarray(at, at + width)];
    const numbers = part.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const characters = part.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${numbers.padEnd(width * 3 - 1)}  ${characters}`);
  }
  return lines.join("\n");
}
