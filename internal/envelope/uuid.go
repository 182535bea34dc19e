package envelope

const (
	uuidSize = 16
	uuidText = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	hexDigit = "0123456789abcdef"
)

// parseUUID returns the bytes of a UUID in canonical text: lower case, with dashes. Any other text is not one,
// because formatUUID would not give it back.
func parseUUID(s string) (id [uuidSize]byte, ok bool) {
	if len(s) != len(uuidText) {
		return id, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if uuidText[i] == '-' {
			if s[i] != '-' {
				return id, false
			}
			continue
		}
		digit, ok := hexValue(s[i])
		if !ok {
			return id, false
		}
		id[n/2] = id[n/2]<<4 | digit
		n++
	}
	return id, true
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// formatUUID returns the canonical text of the 16 bytes of id.
func formatUUID(id []byte) string {
	var text [len(uuidText)]byte
	n := 0
	for i := range text {
		if uuidText[i] == '-' {
			text[i] = '-'
			continue
		}
		b := id[n/2]
		if n%2 == 0 {
			b >>= 4
		}
		text[i] = hexDigit[b&0xf]
		n++
	}
	return string(text[:])
}
