package open_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

func TestPasswordInClear(t *testing.T) {
	t.Parallel()
	for url, warned := range map[string]bool{
		"redis://:" + canary + "@db.example:6379/0":                         true,
		"redis://user:" + canary + "@10.0.0.7":                              true,
		"redisstream://user:" + canary + "@db.example":                      true,
		"redis+sentinel://:" + canary + "@localhost,h2/primary":             true,
		"redis+sentinel://localhost,h2/primary?sentinel_password=" + canary: true,
		"redis+cluster://:" + canary + "@h1,h2":                             true,
		"kafka://user:" + canary + "@h1:9092,h2:9092":                       true,
		"kafka://user:" + canary + "@h1:9092?insecure=false":                true,
		"kafka://user:" + canary + "@h1:9092?insecure=true":                 false,
		"redis://:" + canary + "@db.example?insecure=true":                  false,
		"rediss://:" + canary + "@db.example":                               false,
		"redisstreams+cluster://:" + canary + "@h1,h2":                      false,
		"kafkas://user:" + canary + "@h1:9092":                              false,
		"redis://:" + canary + "@localhost:6379":                            false,
		"redis://:" + canary + "@127.0.0.1":                                 false,
		"redis://:" + canary + "@[::1]:6379":                                false,
		"redis://:" + canary + "@":                                          false,
		"redis://user@db.example":                                           false,
		"redis://db.example":                                                false,
		"kafka://h1:9092":                                                   false,
		"ferry://h1:7070?token_file=/" + canary:                             true,
		"ferry://h1:7070?token_file=/" + canary + "&insecure=true":          false,
		"ferrys://h1:7070?token_file=/" + canary:                            false,
		"ferry://localhost:7070?token_file=/" + canary:                      false,
		"ferry://h1:7070":                                                   false,
		"disk:///data":                                                      false,
		"memory://":                                                         false,
		"rubbish":                                                           false,
	} {
		fs := open.Diagnose(url)
		if (len(fs) == 1) != warned {
			t.Errorf("%s: %+v", url, fs)
		}
		for _, f := range fs {
			if f.Severity != driver.SeverityWarning || f.Hint == "" || strings.Contains(f.Text+f.Hint, canary) ||
				strings.Contains(f.Text+f.Hint, "example") {
				t.Errorf("%s: %+v", url, f)
			}
		}
	}
}

// What Diagnose finds is also in the log of who opens the broker.
func TestPasswordInClearIsLogged(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{Password: canary})
	for url, warned := range map[string]bool{server.URL(): false,
		strings.Replace(server.URL(), "127.0.0.1", "0.0.0.0", 1):                    true,
		strings.Replace(server.URL(), "127.0.0.1", "0.0.0.0", 1) + "?insecure=true": false} {
		var log bytes.Buffer
		b, err := open.URL(t.Context(), url, ferry.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "without TLS") != warned || strings.Contains(log.String(), canary) {
			t.Errorf("logged %q, and a warning was expected: %v", &log, warned)
		}
	}
}

// A misspelt parameter is named, and the hint lists those of this very driver.
func TestHintListsTheDriversParameters(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][2]string{
		"memory://?max_message=5": {`memory:// URL: it has no parameter "max_message"`,
			"memory:// takes the parameters max_messages, max_body"},
		"disk:///x?synch=always":         {`"synch"`, "disk:// takes the parameters sync, reserve"},
		"redis://h?shard=2":              {`"shard"`, "prefix, shards, strict"},
		"redis+cluster://h?partitions=2": {`"partitions"`, "shards"},
		"redisstream://h?shards=2":       {`"shards"`, "prefix, partitions, window"},
		"rediss://h?timeuot=3s":          {`"timeuot"`, "timeout"},
		"kafka://h?partition=3&transaction=on": {`it has no parameter "partition"; it has no parameter "transaction"`,
			"kafka:// takes the parameters namespace, partitions"},
		"kafka://h?insecure=perhaps": {`"insecure" must be true or false`, "insecure"},
	} {
		_, err := open.URL(t.Context(), url)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) {
			t.Errorf("%s: %v", url, err)
		}
		for _, other := range []string{"internal_partitions", "reserve", "window"} {
			if base, _, _ := strings.Cut(url, ":"); strings.Contains(text, other) && base != "kafka" && base != "disk" &&
				base != "redisstream" {
				t.Errorf("%s: the hint speaks of %s, which is of another driver: %v", url, other, err)
			}
		}
	}
}
