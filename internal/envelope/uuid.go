package envelope

const (
	uuidSize = 16
	uuidText = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	hexDigit = "0123456789abcdef"
)

// uuidPairs is where the two digits of each byte stand in the text.
var uuidPairs = [uuidSize]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// notHex is the value of what is no digit in lower case.
const notHex = 0xff

// hexValues are those of all characters: each id of each message passes through here.
var hexValues = func() (values [256]uint8) {
	for c := range values {
		values[c] = notHex
	}
	for v, c := range []byte(hexDigit) {
		values[c] = uint8(v)
	}
	return values
}()

// ParseUUID returns the bytes of a UUID in canonical text: lower case, with dashes. Any other text is not one,
// because FormatUUID would not give it back.
func ParseUUID(s string) (id [uuidSize]byte, ok bool) {
	if !uuidShaped(s) {
		return id, false
	}
	var all uint8 // bits of any value
	for i, at := range uuidPairs {
		high, low := hexValues[s[at]], hexValues[s[at+1]]
		all |= high | low
		id[i] = high<<4 | low
	}
	return id, all != notHex
}

// isUUID reports whether ParseUUID takes s.
func isUUID(s string) bool {
	_, ok := ParseUUID(s)
	return ok
}

// uuidShaped reports whether a text has the length and the dashes of a UUID.
func uuidShaped(s string) bool {
	return len(s) == len(uuidText) && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-'
}

// FormatUUID returns the canonical text of the 16 bytes of id.
func FormatUUID(id []byte) string {
	text := [len(uuidText)]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	for i, at := range uuidPairs {
		text[at], text[at+1] = hexDigit[id[i]>>4], hexDigit[id[i]&0xf]
	}
	return string(text[:])
}
