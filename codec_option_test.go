package ferry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver/memory"
)

// shout is a codec of a program's own.
type shout struct{ codec.Codec }

func (shout) ContentType() string { return "text/shout" }
func (shout) Marshal(_ context.Context, topic string, v any) ([]byte, error) {
	return []byte(topic + ": " + v.(string) + "!"), nil
}

func TestCodecOption(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	if _, err := ferry.Publish(t.Context(), b, "words", "hey", ferry.Codec(shout{})); err != nil {
		t.Fatal(err)
	}
	if _, err := ferry.Publish(t.Context(), b, "words", "hey"); err != nil {
		t.Fatal(err)
	}
	ds := receive(t, b, "words", 2)
	if d := ds[0]; string(d.Body) != "words: hey!" || d.ContentType != "text/shout" {
		t.Errorf("with the option: %q as %s", d.Body, d.ContentType)
	}
	if d := ds[1]; string(d.Body) != `"hey"` || d.ContentType != "application/json" {
		t.Errorf("without it: %q as %s", d.Body, d.ContentType)
	}
	if _, err := ferry.Publish(t.Context(), b, "words", 1, ferry.Codec(codec.Raw)); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a number as raw bytes: got %v, want ErrInvalid", err)
	}
}

// moody is a codec whose registry does not answer, or refuses.
type moody struct {
	codec.Codec
	err error
}

func (moody) ContentType() string                                    { return "text/moody" }
func (m moody) Marshal(context.Context, string, any) ([]byte, error) { return nil, m.err }
func (m moody) Unmarshal(context.Context, string, []byte, any) error { return m.err }

func TestErrorsOfACodecTellWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ err, want error }{
		{fmt.Errorf("registry: %w", codec.ErrUnavailable), ferry.ErrNotApplied},
		{errors.New("no such field"), ferry.ErrInvalid},
	} {
		b := newBroker(t, nil, ferry.Options{Codecs: []codec.Codec{moody{err: c.err}}})
		_, published := ferry.Publish(t.Context(), b, "words", "hey")
		_, decoded := ferry.Decode[string](t.Context(), b,
			&ferry.Delivery{Message: &ferry.Message{Topic: "words", ContentType: "text/moody"}})
		for _, err := range []error{published, decoded} {
			if !errors.Is(err, c.want) || !errors.Is(err, c.err) {
				t.Errorf("%v: got %v, want %v", c.err, err, c.want)
			}
		}
	}
}

func TestSeveralCodecsOnOneTopic(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, ferry.Options{Codecs: []codec.Codec{codec.JSON, codec.Raw, shout{codec.Raw}}})
	for _, opts := range [][]ferry.PublishOption{nil, {ferry.Codec(codec.Raw)}, {ferry.Codec(shout{})}} {
		if _, err := ferry.Publish(t.Context(), b, "words", "hey", opts...); err != nil {
			t.Fatal(err)
		}
	}
	for i, d := range receive(t, b, "words", 3) {
		want := []string{"hey", "hey", "words: hey!"}[i]
		if m, err := ferry.Decode[string](t.Context(), b, d); err != nil || m.Value != want {
			t.Errorf("%s: got %v, error %v, want %q", d.ContentType, m, err, want)
		}
	}
	strange := &ferry.Delivery{Message: &ferry.Message{ContentType: "text/strange"}}
	if _, err := ferry.Decode[string](t.Context(), b, strange); err == nil ||
		!strings.Contains(err.Error(), "application/json, application/octet-stream, text/shout") {
		t.Errorf("an unknown content type: error %v does not name the known ones", err)
	}
}

func TestCodecsThatWouldNeverDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		codecs []codec.Codec
		ok     bool
	}{
		"nil":       {[]codec.Codec{codec.JSON, nil}, false},
		"twice":     {[]codec.Codec{codec.JSON, codec.Raw, named{codec.JSON, "Application/JSON; charset=utf-8"}}, false},
		"by suffix": {[]codec.Codec{codec.JSON, named{codec.JSON, "application/cloudevents+json"}}, true},
	} {
		_, err := ferry.New(newMemory(t, memory.Options{}), ferry.Options{Codecs: c.codecs})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

type named struct {
	codec.Codec
	contentType string
}

func (n named) ContentType() string { return n.contentType }
