package cluster

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestThrifty: text and zeros are compressed, and come back; what is random or small is left alone.
func TestThrifty(t *testing.T) {
	t.Parallel()
	random := make([]byte, 100_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for name, c := range map[string]struct {
		src   []byte
		codec kgo.CompressionCodecType
	}{
		"text":        {[]byte(strings.Repeat(`{"order":1138,"name":"世界"}`, 500)), kgo.CodecLz4},
		"zeros":       {make([]byte, 5000), kgo.CodecLz4},
		"random":      {random, kgo.CodecNone},
		"random, few": {random[:1500], kgo.CodecNone},
		"small":       {[]byte("tiny"), kgo.CodecNone},
		"empty":       {nil, kgo.CodecNone},
	} {
		out, codec := newCompressor().Compress(&bytes.Buffer{}, c.src)
		if codec != c.codec || codec == kgo.CodecLz4 && len(out) >= len(c.src)/2 {
			t.Errorf("%s: codec %d, %d bytes of %d", name, codec, len(out), len(c.src))
		}
		back, err := kgo.DefaultDecompressor().Decompress(out, codec)
		if err != nil || !bytes.Equal(back, c.src) {
			t.Errorf("%s: came back as %d bytes, %v", name, len(back), err)
		}
	}
}
