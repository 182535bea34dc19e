package ferry_test

import (
	"errors"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
)

// shout is a codec of a program's own.
type shout struct{ codec.Codec }

func (shout) ContentType() string           { return "text/shout" }
func (shout) Marshal(v any) ([]byte, error) { return []byte(v.(string) + "!"), nil }

func TestCodecOption(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	if _, err := ferry.Publish(t.Context(), b, "words", "hey", ferry.Codec(shout{})); err != nil {
		t.Fatal(err)
	}
	if _, err := ferry.Publish(t.Context(), b, "words", "hey"); err != nil {
		t.Fatal(err)
	}
	ds := receive(t, b, "words", 2)
	if d := ds[0]; string(d.Body) != "hey!" || d.ContentType != "text/shout" {
		t.Errorf("with the option: %q as %s", d.Body, d.ContentType)
	}
	if d := ds[1]; string(d.Body) != `"hey"` || d.ContentType != "application/json" {
		t.Errorf("without it: %q as %s", d.Body, d.ContentType)
	}
	if _, err := ferry.Publish(t.Context(), b, "words", 1, ferry.Codec(codec.Raw)); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a number as raw bytes: got %v, want ErrInvalid", err)
	}
}
