package redis

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The index has canonical UUIDs in 17 bytes and everything else as it is, and tells them apart.
func TestIndexIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
			rapid.StringMatching(`[0-9a-gA-F-]{36}`), rapid.StringN(1, -1, 128)).Draw(t, "id")
		packed := indexID(id)
		canonical := len(id) == 36 && id == strings.ToLower(id) &&
			strings.Trim(id[:8]+id[9:13]+id[14:18]+id[19:23]+id[24:], "0123456789abcdef") == "" &&
			id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
		if canonical != (len(packed) == 17 && packed[0] == 0 && packed != id) {
			t.Fatalf("%q is kept as %q", id, packed)
		}
		if id[0] != 0 && unindexID(packed) != id {
			t.Fatalf("%q came back as %q", id, unindexID(packed))
		}
	})
}
