// Package codec turns values into bytes and back, by content type.
package codec

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"
)

// Codec encodes values of one content type. It is safe for concurrent use.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// JSON encodes any value with encoding/json.
var JSON Codec = jsonCodec{}

// Raw passes bytes and strings through.
var Raw Codec = rawCodec{}

type jsonCodec struct{}

func (jsonCodec) ContentType() string                { return "application/json" }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

type rawCodec struct{}

func (rawCodec) ContentType() string { return "application/octet-stream" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("raw codec cannot encode a %T: publish []byte or string, or use another codec", v)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = data
		return nil
	case *string:
		*v = string(data)
		return nil
	}
	return fmt.Errorf("raw codec cannot decode into a %T: use *[]byte or *string, or another codec", v)
}

// ForContentType returns the first codec whose media type is that of ct. Parameters and case do not matter, and
// anything that ends in "+json" is JSON.
func ForContentType(ct string, codecs ...Codec) (Codec, bool) {
	for _, c := range codecs { // the usual case, without parsing
		if c.ContentType() == ct {
			return c, true
		}
	}
	media, _, err := mime.ParseMediaType(ct)
	if err != nil {
		return nil, false
	}
	if strings.HasSuffix(media, "+json") {
		media = "application/json"
	}
	for _, c := range codecs {
		if strings.EqualFold(c.ContentType(), media) {
			return c, true
		}
	}
	return nil, false
}
