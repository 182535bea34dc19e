package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// tooLarge is the error of a body that would have more bytes than allowed.
func tooLarge(limit int) error { return fmt.Errorf("it has more than %d bytes", limit) }

// zstdFormat is a frame of zstd that says how large its content is.
type zstdFormat struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	rooms   sync.Pool // of *[]byte, to encode into: 3 kB instead of 13 for each body (BenchmarkApply/zstd)
}

// keepRoom is how large a room may be that is used again.
const keepRoom = 1 << 20

func newZstd() (*zstdFormat, error) {
	// The fastest level is half as fast again as the next, for bodies that are 3 % larger (BenchmarkApply).
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	return &zstdFormat{encoder: encoder, decoder: decoder}, err
}

// compress returns a slice of the size that it needs: that is faster than to guess it (BenchmarkApply).
func (z *zstdFormat) compress(body []byte) ([]byte, error) {
	room, _ := z.rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	*room = z.encoder.EncodeAll(body, (*room)[:0])
	out := bytes.Clone(*room)
	if cap(*room) <= keepRoom {
		z.rooms.Put(room)
	}
	return out, nil
}

// decompress gives the decoder room for what the frame says it has, and not a byte more.
func (z *zstdFormat) decompress(body []byte, limit int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(body); err != nil {
		return nil, err
	}
	switch {
	case !h.HasFCS || h.Skippable:
		return nil, errors.New("its frame does not say how large the content is")
	case h.FrameContentSize > uint64(limit):
		return nil, tooLarge(limit)
	}
	return z.decoder.DecodeAll(body, make([]byte, 0, h.FrameContentSize))
}

// s2Format is a block of S2, which begins with its size.
type s2Format struct{}

func (s2Format) compress(body []byte) ([]byte, error) { return s2.Encode(nil, body), nil }

func (s2Format) decompress(body []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(body)
	switch {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, tooLarge(limit)
	}
	return s2.Decode(nil, body)
}

// lz4Format is a frame of LZ4. The library itself uses its large tables again.
type lz4Format struct{}

func (lz4Format) compress(body []byte) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, len(body)/2))
	w := lz4.NewWriter(out)
	if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.SizeOption(uint64(len(body)))); err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

func (lz4Format) decompress(body []byte, limit int) ([]byte, error) {
	if len(body) == 0 { // which the reader takes for the end of frames that were there
		return nil, io.ErrUnexpectedEOF
	}
	return readAll(lz4.NewReader(bytes.NewReader(body)), limit)
}

// gzipFormat is gzip. Writers and readers, which have large tables, are used again: 5 kB instead of 1 MB for each body
// (BenchmarkApply/gzip).
type gzipFormat struct{ writers, readers sync.Pool }

func (g *gzipFormat) compress(body []byte) ([]byte, error) {
	w, _ := g.writers.Get().(*gzip.Writer)
	if w == nil {
		w = gzip.NewWriter(nil)
	}
	out := bytes.NewBuffer(make([]byte, 0, len(body)/2))
	w.Reset(out)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	g.writers.Put(w)
	return out.Bytes(), err
}

func (g *gzipFormat) decompress(body []byte, limit int) ([]byte, error) {
	r, _ := g.readers.Get().(*gzip.Reader)
	if r == nil {
		r = new(gzip.Reader)
	}
	if err := r.Reset(bytes.NewReader(body)); err != nil {
		return nil, err
	}
	out, err := readAll(r, limit)
	if err == nil { // another one may be in any state
		g.readers.Put(r)
	}
	return out, err
}

// readAll reads at most limit bytes, however many the beginning promises.
func readAll(r io.Reader, limit int) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(out) > limit:
		return nil, tooLarge(limit)
	}
	return out, nil
}
