// Package codec turns values into bytes and back, by content type. Formats that need a library are packages of their
// own below it.
package codec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
)

// Codec encodes values of one content type. It is safe for concurrent use.
type Codec interface {
	// ContentType is the media type of what Marshal returns, for example "application/json".
	ContentType() string
	// Marshal encodes v for a topic. The bytes may be v itself: do not change one while the other is used. The context
	// bounds what a codec asks elsewhere, a schema registry for example; most do not look at it.
	Marshal(ctx context.Context, topic string, v any) ([]byte, error)
	// Unmarshal decodes data that came from a topic into what v points to, which may be data itself afterwards. The topic
	// is empty where there is none. Whatever the bytes are, it returns an error and does not panic, and what it allocates
	// is bounded by their number.
	Unmarshal(ctx context.Context, topic string, data []byte, v any) error
}

// ErrUnavailable marks an error of what a codec asks elsewhere: the same value or body may pass later. Any other error
// of a codec is final.
var ErrUnavailable = errors.New("unavailable")

// JSON encodes any value with encoding/json.
var JSON Codec = jsonCodec{}

// Raw passes bytes and strings through unchanged.
var Raw Codec = rawCodec{}

type jsonCodec struct{}

// ContentType returns "application/json".
func (jsonCodec) ContentType() string { return "application/json" }

// Marshal encodes v as json.Marshal does.
func (jsonCodec) Marshal(_ context.Context, _ string, v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal decodes data as json.Unmarshal does.
func (jsonCodec) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	return json.Unmarshal(data, v)
}

type rawCodec struct{}

// ContentType returns "application/octet-stream".
func (rawCodec) ContentType() string { return "application/octet-stream" }

// Marshal returns the bytes of a []byte, json.RawMessage or string, and an error for any other type.
func (rawCodec) Marshal(_ context.Context, _ string, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case json.RawMessage:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("codec: raw cannot encode a %T: use []byte or string, or another codec such as codec.JSON", v)
}

// Unmarshal sets a *[]byte or *json.RawMessage to data itself, a *string to a copy of it.
func (rawCodec) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = data
		return nil
	case *json.RawMessage:
		*v = data
		return nil
	case *string:
		*v = string(data)
		return nil
	}
	return fmt.Errorf("codec: raw cannot decode into a %T: use *[]byte or *string, or another codec such as codec.JSON", v)
}

// ForContentType returns the first codec whose media type is that of ct. Parameters and case do not matter. A type that
// ends in a suffix such as "+json" and has no codec of its own is read by that of the suffix, here "application/json".
func ForContentType(ct string, codecs ...Codec) (Codec, bool) {
	for _, c := range codecs { // the usual case, without parsing
		if c.ContentType() == ct {
			return c, true
		}
	}
	want, ok := mediaType(ct)
	if !ok {
		return nil, false
	}
	if c, ok := find(want, codecs); ok {
		return c, true
	}
	if i := strings.LastIndexByte(want, '+'); i >= 0 {
		return find("application/"+want[i+1:], codecs)
	}
	return nil, false
}

func find(want string, codecs []Codec) (Codec, bool) {
	for _, c := range codecs {
		if media, ok := mediaType(c.ContentType()); ok && media == want {
			return c, true
		}
	}
	return nil, false
}

// mediaType returns ct in lower case without its parameters, even if these are malformed.
func mediaType(ct string) (string, bool) {
	media, _, err := mime.ParseMediaType(ct)
	return media, err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)
}

// Nameless is a codec that does not know what the fields of its bodies are called, for example of Protobuf without a
// schema: who hides fields by name finds none in what it decodes.
type Nameless interface {
	Codec
	Nameless()
}
