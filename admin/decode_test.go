package admin

import (
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/cbor"
	"github.com/ferrymq/ferry/codec/msgpack"
	"github.com/ferrymq/ferry/codec/protobuf"
)

// payload is published in several formats.
type payload struct {
	ID   int               `json:"id"`
	Card string            `json:"card"`
	Tags map[string]string `json:"tags"`
}

// show returns a message that was published with a content type, as whoever asks sees it.
func (r *rig) show(m *ferry.Message) api.Message {
	r.Helper()
	receipt, err := r.broker.Publish(r.Context(), m)
	if err != nil {
		r.Fatal(err)
	}
	var v api.Views
	r.get(api.Base+"/topics/"+topic+"/messages/"+receipt.ID, &v)
	if len(v.Messages) != 1 {
		r.Fatalf("%d views", len(v.Messages))
	}
	return v.Messages[0]
}

// encoded is a message with a payload in the format of a codec.
func (r *rig) encoded(c codec.Codec) *ferry.Message {
	r.Helper()
	body, err := c.Marshal(r.Context(), topic, payload{7, "4111", map[string]string{"a": "世界"}})
	if err != nil {
		r.Fatal(err)
	}
	return &ferry.Message{Topic: topic, ContentType: c.ContentType(), Body: body}
}

// TestBodiesAreDecoded: a body of a format that the server reads is shown as JSON beside its bytes; one that it cannot
// read says why.
func TestBodiesAreDecoded(t *testing.T) {
	virtual(t, Options{Codecs: []codec.Codec{msgpack.Codec, cbor.Codec}}, func(r *rig) {
		for _, c := range r.api.o.Codecs {
			got := r.show(r.encoded(c))
			if want := `{"card":"4111","id":7,"tags":{"a":"世界"}}`; got.Decoded != want || got.Undecoded != "" ||
				len(got.BodyBase64) == 0 {
				t.Errorf("%s: %q, want %q; %q, %d bytes", c.ContentType(), got.Decoded, want, got.Undecoded, len(got.BodyBase64))
			}
			broken := r.encoded(c)
			broken.Body = broken.Body[:len(broken.Body)-1]
			if got := r.show(broken); got.Decoded != "" || got.Undecoded == "" || len(got.BodyBase64) == 0 {
				t.Errorf("%s, cut off: %+v", c.ContentType(), got)
			}
			if got := r.as(auth.Grant{Role: auth.Viewer}).show(r.encoded(c)); got.Decoded != "" || !got.Hidden {
				t.Errorf("%s, of somebody who may not see bodies: %+v", c.ContentType(), got)
			}
		}
		for _, m := range []*ferry.Message{
			{Topic: topic, ContentType: "application/json", Body: []byte(`{"n":1}`)},
			{Topic: topic, ContentType: "application/avro", Body: []byte{8, 1}},
			{Topic: topic, ContentType: "application/cbor"},
		} {
			if got := r.show(m); got.Decoded != "" || got.Undecoded != "" {
				t.Errorf("%s: %+v", m.ContentType, got)
			}
		}
	})
}

// TestDecodedBodiesAreMasked: a mask hides fields of what is decoded, and the bytes that hold them.
func TestDecodedBodiesAreMasked(t *testing.T) {
	virtual(t, Options{Codecs: []codec.Codec{cbor.Codec}, Masks: []Mask{{Fields: []string{"card"}}}}, func(r *rig) {
		got := r.show(r.encoded(cbor.Codec))
		if want := `{"card":"***","id":7,"tags":{"a":"世界"}}`; got.Decoded != want || !got.Masked || len(got.BodyBase64) > 0 {
			t.Errorf("%+v, want %s", got, want)
		}
		broken := r.encoded(cbor.Codec)
		broken.Body = append(broken.Body, "4111"...)
		if got := r.show(broken); got.Undecoded == "" || strings.Contains(got.Undecoded, "4111") {
			t.Errorf("%+v", got)
		}
	})
}

// inProtobuf is a message of Protobuf, or the beginning of one.
func inProtobuf(bytes int) *ferry.Message {
	return &ferry.Message{Topic: topic, ContentType: "application/protobuf", Body: []byte("\x08\x07\x12\x044111")[:bytes]}
}

// TestProtobufIsShownWithoutSchema: fields have numbers for names.
func TestProtobufIsShownWithoutSchema(t *testing.T) {
	virtual(t, Options{Codecs: []codec.Codec{protobuf.Wire}}, func(r *rig) {
		got := r.show(inProtobuf(8))
		if want := `{"1 varint":7,"2 text":"4111"}`; got.Decoded != want || !got.Schemaless || got.Undecoded != "" {
			t.Errorf("%+v, want %s", got, want)
		}
		if got := r.show(inProtobuf(4)); got.Decoded != "" || got.Schemaless || got.Undecoded == "" {
			t.Errorf("cut off: %+v", got)
		}
		if got := r.as(auth.Grant{Role: auth.Viewer}).show(inProtobuf(8)); got.Decoded != "" || !got.Hidden {
			t.Errorf("of somebody who may not see bodies: %+v", got)
		}
	})
}

// TestMaskedProtobufIsHidden: a mask hides names, of which a body without a schema has none.
func TestMaskedProtobufIsHidden(t *testing.T) {
	o := Options{Codecs: []codec.Codec{protobuf.Wire}, Masks: []Mask{{Fields: []string{"card"}}}}
	virtual(t, o, func(r *rig) {
		for _, bytes := range []int{8, 4} {
			got := r.show(inProtobuf(bytes))
			if got.Decoded+got.Undecoded != "" || !got.Masked || len(got.BodyBase64) > 0 || *got.Body != masked {
				t.Errorf("%d bytes: %+v", bytes, got)
			}
		}
	})
}
