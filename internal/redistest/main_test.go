package redistest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(abandonVariable) != "" {
		abandon() // does not return
	}
	goleak.VerifyTestMain(Main(m))
}

// must returns the text of a reply.
func must(t *testing.T) func(Reply, error) string {
	return func(r Reply, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
}
