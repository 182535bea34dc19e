package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Silence keeps notices back for a time. What fires still shows, and if it still does in the end people are told.
type Silence struct {
	ID string `json:"id"`
	// Rule and Subject are patterns as of path.Match; "*" and empty are all.
	Rule    string    `json:"rule,omitempty"`
	Subject string    `json:"subject,omitempty"`
	Until   time.Time `json:"until"`
	Who     string    `json:"who,omitempty"`
	Comment string    `json:"comment,omitempty"`
}

// AddSilence silences for a time, and returns the id.
func AddSilence(ctx context.Context, b *ferry.Broker, s Silence, d time.Duration) (string, error) {
	if d < time.Second || d > 366*24*time.Hour {
		return "", driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a silence of %v", d), "use a second to a year", nil)
	}
	if err := CheckSilences([]Silence{s}); err != nil {
		return "", err
	}
	s.ID, s.Until = uuid7.New(time.Now()), time.Now().Add(d)
	data, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	w := driver.Write{Name: "silence/" + s.ID, Data: data, TTL: d}
	return s.ID, b.Driver().KV().Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err
}

// CheckSilences says what is wrong with patterns of silences, or nil.
func CheckSilences(all []Silence) error {
	for _, s := range all {
		for _, p := range []string{s.Rule, s.Subject} {
			if _, err := path.Match(p, ""); err != nil {
				return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the pattern %.80q of a silence is broken", p),
					"write orders/*", nil)
			}
		}
	}
	return nil
}

// RemoveSilence ends a silence. ErrNotFound: there is none of this id, or it is over.
func RemoveSilence(ctx context.Context, b *ferry.Broker, id string) error {
	kv, name := b.Driver().KV(), "silence/"+id
	values, err := kv.Get(ctx, bucket, name)
	if err != nil {
		return err
	}
	if values[0].Revision == 0 {
		return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no silence %.80q", id),
			"ferry alert silences lists them", nil)
	}
	return kv.Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: name, Delete: true})[0].Err
}

// Silences are those of the broker, and those of the options that last. These have no ID: they end with the options.
func (w *Watch) Silences(ctx context.Context) ([]Silence, error) {
	found, err := silences(ctx, w.broker.Driver().KV())
	for _, s := range w.settings.Load().silences {
		if s.Until.IsZero() || time.Now().Before(s.Until) {
			found = append(found, s)
		}
	}
	return found, err
}

// Silences are those of the broker that last.
func Silences(ctx context.Context, b *ferry.Broker) ([]Silence, error) {
	return silences(ctx, b.Driver().KV())
}

func silences(ctx context.Context, kv driver.KV) ([]Silence, error) {
	var found []Silence
	err := list(ctx, kv, bucket, "silence/", all, func(v driver.Value) error {
		var s Silence
		if err := json.Unmarshal(v.Data, &s); err != nil {
			return err
		}
		found = append(found, s)
		return nil
	})
	return found, err
}

// covers reports whether a silence is about an alert.
func (s Silence) covers(rule, subject string) bool {
	return covers(s.Rule, rule) && covers(s.Subject, subject)
}

func covers(pattern, name string) bool {
	if pattern == "" || pattern == "*" || pattern == name {
		return true
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func silenced(all []Silence, rule, subject string) bool {
	for _, s := range all {
		if s.covers(rule, subject) {
			return true
		}
	}
	return false
}
