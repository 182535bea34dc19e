package open_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Main(m)) }

func TestMemoryURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"memory://", "MEMORY://", "memory://?max_messages=10",
		"memory://?max_body=64&max_messages=10"} {
		b, err := open.URL(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
			t.Errorf("%s: publish: %v", url, err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
	}
}

func TestParametersTakeEffect(t *testing.T) {
	t.Parallel()
	b, err := open.URL(t.Context(), "memory://?max_messages=1&max_body=4")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if _, err := ferry.Publish(t.Context(), b, "orders", []byte("12345")); !errors.Is(err, ferry.ErrTooLarge) {
		t.Errorf("a body over max_body: got %v, want ErrTooLarge", err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", []byte("1234")); err != nil {
		t.Errorf("a body of max_body bytes: %v", err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", []byte("1234")); !errors.Is(err, ferry.ErrFull) {
		t.Errorf("a message over max_messages: got %v, want ErrFull", err)
	}
}

func TestTwoSetsOfOptionsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := open.URL(t.Context(), "memory://", ferry.Options{}, ferry.Options{}); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestOptionsReachTheBroker(t *testing.T) {
	t.Parallel()
	published := 0
	b, err := open.URL(t.Context(), "memory://", ferry.Options{Hooks: ferry.Hooks{
		Published: func(context.Context, ferry.Event) { published++ },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
		t.Fatal(err)
	}
	if published != 1 {
		t.Errorf("the Published hook was called %d times, want 1", published)
	}
}

func TestServersAndDirectories(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{Password: canary})
	dir := filepath.Join(t.TempDir(), "data")
	for _, url := range []string{
		server.URL() + "?prefix=tenant-a&shards=2&max_body=64&pool=4",
		strings.Replace(server.URL(), "redis", "redisstream", 1) +
			"?prefix=tenant-a&partitions=2&window=100&max_body=64&pool=4",
		"disk://" + dir, "disk://" + dir + "?sync=50ms&max_body=64", "disk://" + dir + "?sync=always",
	} {
		b, err := open.URL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
			t.Errorf("publish: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, err := open.URL(t.Context(), strings.Replace(server.URL(), canary, canary+"-wrong", 1))
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("a wrong password: %v", err)
	}
}

// canary stands for a password; no error may repeat it.
const canary = "Hunter2Canary"

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		kind error
	}{
		{"", ferry.ErrInvalid},
		{"memory", ferry.ErrInvalid},
		{"://", ferry.ErrInvalid},
		{canary, ferry.ErrInvalid},
		{"user:" + canary + "@localhost", ferry.ErrInvalid},
		{canary + "@localhost:6379", ferry.ErrInvalid},
		{"\x1b[31m" + canary + "://x", ferry.ErrInvalid},
		{"carrier-pigeon://user:" + canary + "@loft", ferry.ErrInvalid},
		{"memory://user:" + canary + "@", ferry.ErrInvalid},
		{"memory://" + canary, ferry.ErrInvalid},
		{"memory:///" + canary, ferry.ErrInvalid},
		{"memory://%zz" + canary, ferry.ErrInvalid},
		{"memory://h:" + canary, ferry.ErrInvalid},
		{"memory://#" + canary, ferry.ErrInvalid},
		{"memory://?password=" + canary, ferry.ErrInvalid},
		{"memory://?" + canary, ferry.ErrInvalid},
		{"memory://?max_messages=" + canary, ferry.ErrInvalid},
		{"memory://?max_messages=0", ferry.ErrInvalid},
		{"memory://?max_body=-1", ferry.ErrInvalid},
		{"memory://?max_body=1&max_body=2", ferry.ErrInvalid},
		{"memory://?max_body=1;" + canary, ferry.ErrInvalid},
		{"memory://?max_body=%" + canary, ferry.ErrInvalid},
		{"disk://" + canary, ferry.ErrInvalid},
		{"disk://", ferry.ErrInvalid},
		{"disk:///tmp/x?sync=" + canary, ferry.ErrInvalid},
		{"disk:///tmp/x?sync=-1s", ferry.ErrInvalid},
		{"disk:///tmp/x?" + canary + "=1", ferry.ErrInvalid},
		{"redis://user:" + canary + "@localhost:port", ferry.ErrInvalid},
		{"redis://user:" + canary + "@localhost/db", ferry.ErrInvalid},
		{"redis://user:" + canary + "@localhost?shards=0", ferry.ErrInvalid},
		{"redis://user:" + canary + "@localhost?strict=perhaps", ferry.ErrInvalid},
		{"redis://user:" + canary + "@localhost?prefix=a%20b", ferry.ErrInvalid},
		{"rediss://:" + canary + "@localhost?password=" + canary, ferry.ErrInvalid},
		{"redis+sentinel://:" + canary + "@localhost", ferry.ErrInvalid},
		{"redis+carrier-pigeon://:" + canary + "@localhost", ferry.ErrInvalid},
		{"redisstream://user:" + canary + "@localhost:port", ferry.ErrInvalid},
		{"redisstream://user:" + canary + "@localhost?partitions=0", ferry.ErrInvalid},
		{"redisstream://user:" + canary + "@localhost?shards=2", ferry.ErrInvalid},
		{"redisstreams+sentinel://:" + canary + "@localhost", ferry.ErrInvalid},
		{"redisstream+carrier-pigeon://:" + canary + "@localhost", ferry.ErrInvalid},
		{"kafka://", ferry.ErrInvalid},
		{"kafka://user:" + canary + "@", ferry.ErrInvalid},
		{"kafka://user:" + canary + "@h1:port", ferry.ErrInvalid},
		{"kafka://user:" + canary + "@h1,,h2", ferry.ErrInvalid},
		{"kafka://user:" + canary + "@h1/path", ferry.ErrInvalid},
		{"kafka://user:" + canary + "@h1?sasl=" + canary, ferry.ErrInvalid},
		{"kafka://h1?sasl=plain", ferry.ErrInvalid},
		{"kafka://h1?foreign=" + canary, ferry.ErrInvalid},
		{"kafka://h1?partitions=0", ferry.ErrInvalid},
		{"kafka://h1?namespace=a%20b", ferry.ErrInvalid},
		{"kafka://h1?ca=/x", ferry.ErrInvalid},
		{"kafkas://h1?sasl_password=" + canary, ferry.ErrInvalid},
		{"kafkas://h1?ca=/" + canary, ferry.ErrInvalid},
		{"kafkas://h1?cert=/" + canary, ferry.ErrInvalid},
		{"kafka://user:" + canary + "@127.0.0.1:1", ferry.ErrNotApplied},
		{"ferry://", ferry.ErrInvalid},
		{"ferry://user:" + canary + "@h1", ferry.ErrInvalid},
		{"ferry://h1:" + canary, ferry.ErrInvalid},
		{"ferry://h1?token=" + canary, ferry.ErrInvalid},
		{"ferry://h1?token_file=/" + canary, ferry.ErrInvalid},
		{"ferry://h1?ca=/x", ferry.ErrInvalid},
		{"ferrys://h1?ca=/" + canary, ferry.ErrInvalid},
		{"ferry://127.0.0.1:1", ferry.ErrNotApplied},
	} {
		b, err := open.URL(t.Context(), c.url)
		if b != nil {
			t.Errorf("%q opened a broker", c.url)
			continue
		}
		if !errors.Is(err, c.kind) {
			t.Errorf("%q: got %v, want %v", c.url, err, c.kind)
			continue
		}
		if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(canary)) {
			t.Errorf("%q: the error tells the secret: %v", c.url, err)
		}
		var fe *ferry.Error
		if !errors.As(err, &fe) || fe.Hint == "" {
			t.Errorf("%q: the error does not say what to do: %v", c.url, err)
		}
	}
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open.URL(ctx, "memory://"); !errors.Is(err, context.Canceled) || !errors.Is(err, ferry.ErrNotApplied) {
		t.Errorf("got %v, want ErrNotApplied because of context.Canceled", err)
	}
}
