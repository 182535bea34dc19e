const letters = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"; // without those that look alike
const length = 20; // 115 bits

/** newPassword makes one that nobody guesses, of letters that can be read out. */
export function newPassword(): string {
  let made = "";
  while (made.length < length) {
    const [byte = 0] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < Math.floor(256 / letters.length) * letters.length) made += letters[byte % letters.length] ?? "";
  }
  return made;
}
