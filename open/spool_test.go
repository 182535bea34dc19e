package open_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/spool"
)

// TestSpool: a URL puts a spool in front of its broker, and what is published while that is away is kept.
func TestSpool(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	dir := filepath.Join(t.TempDir(), "a spool")
	b, err := open.URL(t.Context(), server.URL()+"?spool="+url.QueryEscape(dir)+"&spool_bytes=10000&spool_messages=2")
	if err != nil {
		t.Fatal(err)
	}
	s := b.Driver().(*spool.Driver)
	if st := s.SpoolStats(); st.MaxBytes != 10000 || st.MaxMessages != 2 {
		t.Errorf("%+v", st)
	}
	if r, err := ferry.Publish(t.Context(), b, "orders", "1", ferry.Key("k")); err != nil || r.Spooled {
		t.Errorf("%+v, %v", r, err)
	}
	server.Kill()
	for range 2 {
		if r, err := ferry.Publish(t.Context(), b, "orders", "2", ferry.Key("k")); err != nil || !r.Spooled {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", "3", ferry.Key("k")); !errors.Is(err, ferry.ErrFull) {
		t.Error(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBadSpools(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"memory://?spool=x", "redis://localhost?spool=", "redis://localhost?spool_bytes=1",
		"redis://localhost?spool=x&spool_bytes=much"} {
		if _, err := open.URL(t.Context(), u); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "spool") {
			t.Errorf("%s: %v", u, err)
		}
	}
}
