package result

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/internal/uuid7"
)

// Results of messages that were published together lie together, and those of others, or under ids of their publishers,
// are spread over all buckets.
func TestPlaces(t *testing.T) {
	t.Parallel()
	begin := time.UnixMilli(1 << 40)
	together := map[string]bool{}
	for range 100 {
		together[placeOf(nil, "reports", "default", uuid7.New(begin)).bucket] = true
	}
	if len(together) != 1 {
		t.Errorf("messages of the same millisecond lie in %d buckets, want one", len(together))
	}
	for name, id := range map[string]func(i int) string{
		"of Ferry":          func(i int) string { return uuid7.New(begin.Add(time.Duration(i) * 16 * time.Millisecond)) },
		"of its publisher":  func(i int) string { return fmt.Sprint("order-", i) },
		"a UUID of another": func(i int) string { return fmt.Sprintf("01234567-89ab-4cde-8000-%012d", i) },
	} {
		spread := map[string]int{}
		for i := range 6400 {
			p := placeOf(nil, "reports", "default", id(i))
			if !strings.HasSuffix(p.name, "/"+p.id) {
				t.Fatalf("the result of %s is named %s", p.id, p.name)
			}
			spread[p.bucket]++
		}
		for bucket, n := range spread {
			if n > 200 {
				t.Errorf("ids %s: %d of 6400 results lie in %s", name, n, bucket)
			}
		}
		if len(spread) != buckets {
			t.Errorf("ids %s: results lie in %d buckets, want %d", name, len(spread), buckets)
		}
	}
}
