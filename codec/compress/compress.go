// Package compress is a filter that compresses bodies, if they are large enough and it helps.
//
//	smaller, err := compress.New(compress.Options{})
//	broker, err := open.URL(ctx, url, ferry.Options{Filters: []codec.Filter{smaller}})
//
// Put it in front of encryption: what is encrypted does not become smaller. Bodies are in the usual forms of their
// algorithms, which tools of any language read: a frame of zstd, LZ4 or gzip, a block of S2.
package compress

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/codec"
)

// Algorithm is how bodies are compressed. It is the name of the encoding, too.
type Algorithm string

// Algorithms.
const (
	Zstd Algorithm = "zstd" // small and fast: the default
	S2   Algorithm = "s2"   // the fastest
	LZ4  Algorithm = "lz4"  // fast, and known to most
	Gzip Algorithm = "gzip" // known to all
	// None compresses nothing. What others compressed is still read.
	None Algorithm = "none"
)

// DefaultMinSize is the least size of a body that is compressed.
const DefaultMinSize = 512

// worthwhile is how much of a body must go for it to be stored compressed: a sixteenth. Less is not worth the time of
// its readers.
const worthwhile = 16

// Options of a filter.
type Options struct {
	// Algorithm compresses; all of them are read. Defaults to Zstd.
	Algorithm Algorithm
	// MinSize is the least size in bytes of a body that is compressed. Defaults to DefaultMinSize.
	MinSize int
}

// Filter compresses and decompresses. It is a codec.Filter.
type Filter struct {
	algorithm Algorithm
	minSize   int
	formats   map[Algorithm]format
}

var _ codec.Filter = (*Filter)(nil)

// format is one algorithm.
type format interface {
	compress(body []byte) ([]byte, error)
	// decompress returns at most limit bytes; an error if there would be more.
	decompress(body []byte, limit int) ([]byte, error)
}

// New returns a filter.
func New(o Options) (*Filter, error) {
	zstd, err := newZstd()
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if o.Algorithm == "" {
		o.Algorithm = Zstd
	}
	if o.MinSize == 0 {
		o.MinSize = DefaultMinSize
	}
	f := &Filter{algorithm: o.Algorithm, minSize: o.MinSize,
		formats: map[Algorithm]format{Zstd: zstd, S2: s2Format{}, LZ4: lz4Format{}, Gzip: new(gzipFormat)}}
	switch {
	case o.MinSize < 0:
		return nil, fmt.Errorf("compress: MinSize %d is negative: leave it zero for the default", o.MinSize)
	case o.Algorithm != None && f.formats[o.Algorithm] == nil:
		return nil, fmt.Errorf("compress: there is no algorithm %q: use zstd, s2, lz4, gzip or none",
			string(o.Algorithm))
	}
	return f, nil
}

// Names returns those of all algorithms.
func (*Filter) Names() []string { return []string{string(Zstd), string(S2), string(LZ4), string(Gzip)} }

// Apply compresses a body that is large enough, if that helps.
func (f *Filter) Apply(_ context.Context, body []byte, _ codec.About) ([]byte, string, error) {
	if f.algorithm == None || len(body) < f.minSize {
		return nil, "", nil
	}
	out, err := f.formats[f.algorithm].compress(body)
	if err != nil {
		return nil, "", fmt.Errorf("compress: %w", err)
	}
	if len(out) > len(body)-len(body)/worthwhile {
		return nil, "", nil
	}
	return out, string(f.algorithm), nil
}

// Undo decompresses a body.
func (f *Filter) Undo(_ context.Context, body []byte, encoding string, _ codec.About, limit int) ([]byte, error) {
	format := f.formats[Algorithm(encoding)]
	if format == nil {
		return nil, fmt.Errorf("compress: there is no algorithm %.40q: correct the producer", encoding)
	}
	out, err := format.decompress(body, limit)
	if err != nil {
		return nil, fmt.Errorf("compress: the body is no %s of at most %d bytes: %w", encoding, limit, err)
	}
	return out, nil
}
