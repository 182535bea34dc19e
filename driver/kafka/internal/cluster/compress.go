package cluster

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kgo"
)

// selectiveCompressor compresses batches that are worth it.
type selectiveCompressor struct{ lz4 kgo.Compressor }

// newCompressor returns a compressor. It never fails: lz4 is always there.
func newCompressor() kgo.Compressor {
	lz4, err := kgo.DefaultCompressor(kgo.Lz4Compression())
	if err != nil {
		return nil // nothing is compressed
	}
	return selectiveCompressor{lz4}
}

// Compress implements kgo.Compressor. A batch that is not compressed stays as it is.
func (t selectiveCompressor) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte,
	kgo.CompressionCodecType) {
	if !compressible(src) {
		return src, kgo.CodecNone
	}
	return t.lz4.Compress(dst, src, flags...)
}

const (
	worthBytes  = 512 // below it, compressing costs more than it saves
	sampleBytes = 1024
	// manyValues of a byte are in a sample of what is compressed or encrypted already: 251 on average, of text fewer than
	// 100.
	manyValues = 225
)

// compressible looks at some bytes of a batch. What is random does not get smaller.
func compressible(src []byte) bool {
	if len(src) < worthBytes {
		return false
	}
	var seen [256]bool
	values, step := 0, max(1, len(src)/sampleBytes)
	for i := 0; i < len(src); i += step {
		if b := src[i]; !seen[b] {
			seen[b] = true
			values++
		}
	}
	return values < manyValues
}
