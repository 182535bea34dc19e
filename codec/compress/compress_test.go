package compress_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/compress"
	"github.com/ferrymq/ferry/internal/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var algorithms = []compress.Algorithm{compress.Zstd, compress.S2, compress.LZ4, compress.Gzip}

func filterOf(t testing.TB, o compress.Options) *compress.Filter {
	t.Helper()
	f, err := compress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// corpus is bodies of about 10 KB of JSON, as programs publish them.
func corpus(t testing.TB) [][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	all := make([][]byte, len(names))
	for i, name := range names {
		if all[i], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func apply(t testing.TB, f *compress.Filter, body []byte) ([]byte, string) {
	t.Helper()
	out, encoding, err := f.Apply(t.Context(), body, codec.About{})
	if err != nil {
		t.Fatal(err)
	}
	return out, encoding
}

func undo(t testing.TB, f *compress.Filter, body []byte, encoding string, limit int) ([]byte, error) {
	t.Helper()
	return f.Undo(t.Context(), body, encoding, codec.About{}, limit)
}

// TestRoundTrip: each algorithm is read by a filter of any other, and says its name.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	reader := filterOf(t, compress.Options{Algorithm: compress.None})
	for _, a := range algorithms {
		f := filterOf(t, compress.Options{Algorithm: a})
		for _, body := range append(corpus(t), bytes.Repeat([]byte("0123456789"), 30_000)) {
			for range 2 { // with what was used before, too
				out, encoding := apply(t, f, body)
				if encoding != string(a) || len(out) >= len(body) {
					t.Fatalf("%s: %d bytes became %d, as %q", a, len(body), len(out), encoding)
				}
				if plain, err := undo(t, reader, out, encoding, len(body)); err != nil || !bytes.Equal(plain, body) {
					t.Fatalf("%s: %d bytes came back as %d, %v", a, len(body), len(plain), err)
				}
				if _, err := undo(t, reader, out, encoding, len(body)-1); err == nil {
					t.Errorf("%s: a body that is larger than allowed was read", a)
				}
			}
		}
	}
}

// TestOnlyIfItHelps: small bodies, and those that do not become smaller, are left as they are.
func TestOnlyIfItHelps(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 10_000)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	zeros := make([]byte, 2000)
	for _, a := range algorithms {
		f := filterOf(t, compress.Options{Algorithm: a, MinSize: 1000})
		for _, c := range []struct {
			body []byte
			want string
		}{{nil, ""}, {zeros[:999], ""}, {zeros[:1000], string(a)}, {zeros, string(a)}, {noise, ""}} {
			if _, got := apply(t, f, c.body); got != c.want {
				t.Errorf("%s: %d bytes are %q, want %q", a, len(c.body), got, c.want)
			}
		}
	}
	if _, got := apply(t, filterOf(t, compress.Options{}), zeros[:compress.DefaultMinSize-1]); got != "" {
		t.Errorf("less than the default: %q", got)
	}
	if _, got := apply(t, filterOf(t, compress.Options{Algorithm: compress.None}), zeros); got != "" {
		t.Errorf("with none: %q", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []compress.Options{{Algorithm: "brotli"}, {MinSize: -1}} {
		if _, err := compress.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	f := filterOf(t, compress.Options{})
	for _, encoding := range []string{"", "none", "brotli", "zstd;level=3", strings.Repeat("x", 1000)} {
		if _, err := undo(t, f, []byte("body"), encoding, 1000); err == nil {
			t.Errorf("encoding %.20q is accepted", encoding)
		}
	}
}

// bombs are small bodies that become so large.
func bombs(t testing.TB, size int) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, a := range algorithms {
		all[string(a)], _ = apply(t, filterOf(t, compress.Options{Algorithm: a}), make([]byte, size))
	}
	return all
}

// TestBombs: a body that becomes larger than allowed is refused, and takes no more memory than what is allowed.
func TestBombs(t *testing.T) {
	f := filterOf(t, compress.Options{})
	const limit = 1 << 20
	for encoding, bomb := range bombs(t, 16*limit) {
		runtime.GC()
		before := allocated()
		_, err := undo(t, f, bomb, encoding, limit)
		used := allocated() - before
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("more than ", limit)) {
			t.Errorf("%s: %v", encoding, err)
		}
		if used > 8*limit {
			t.Errorf("%s: a bomb of %d bytes took %d", encoding, len(bomb), used)
		}
	}
}

// allocated returns how many bytes were ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestMangled: whatever is cut or changed, there is an error or some bytes within the limit, and no panic; what was cut
// is never read. S2 has no checksum: what was changed may be read, as something else.
func TestMangled(t *testing.T) {
	t.Parallel()
	body := corpus(t)[0][:600]
	for _, a := range algorithms {
		f := filterOf(t, compress.Options{Algorithm: a})
		out, encoding := apply(t, f, body)
		for n := range out {
			if plain, err := undo(t, f, out[:n], encoding, 4000); err == nil {
				t.Errorf("%s: cut to %d of %d bytes, it was read as %d", a, n, len(out), len(plain))
			}
			for _, wrong := range []byte{0, 0x7f, 0xff, ^out[n]} {
				changed := bytes.Clone(out)
				changed[n] = wrong
				if plain, err := undo(t, f, changed, encoding, 4000); err == nil && len(plain) > 4000 {
					t.Errorf("%s: %d bytes", a, len(plain))
				}
			}
		}
	}
}

// FuzzUndo: whatever the bytes are, there is an error or some bytes within the limit.
func FuzzUndo(f *testing.F) {
	const limit = 1 << 16
	filter := filterOf(f, compress.Options{})
	for _, a := range algorithms {
		out, _ := apply(f, filterOf(f, compress.Options{Algorithm: a}), corpus(f)[0])
		f.Add(string(a), out)
		f.Add(string(a), out[:len(out)/2])
	}
	for encoding, bomb := range bombs(f, 4*limit) {
		f.Add(encoding, bomb[:min(len(bomb), 1<<14)])
	}
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		if plain, err := undo(t, filter, data, encoding, limit); err == nil && len(plain) > limit {
			t.Errorf("%s: %d bytes", encoding, len(plain))
		}
	})
}

// BenchmarkApply compresses the samples. It tells how many times smaller they become, and how many bytes of them pass
// in a second, on one core.
func BenchmarkApply(b *testing.B) {
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			f := filterOf(b, compress.Options{Algorithm: a})
			bodies, plain, stored := corpus(b), 0, 0
			for _, body := range bodies {
				out, _ := apply(b, f, body)
				plain, stored = plain+len(body), stored+len(out)
			}
			b.SetBytes(int64(plain / len(bodies)))
			b.ReportAllocs()
			begin := machine.Read()
			for i := 0; b.Loop(); i++ {
				if _, _, err := f.Apply(b.Context(), bodies[i%len(bodies)], codec.About{}); err != nil {
					b.Fatal(err)
				}
			}
			used := machine.Read().Process - begin.Process // on a busy machine it tells more than a rate
			b.ReportMetric(float64(plain/len(bodies))*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
			b.ReportMetric(float64(plain)/float64(stored), "times-smaller")
		})
	}
}

// BenchmarkUndo decompresses the samples.
func BenchmarkUndo(b *testing.B) {
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			f := filterOf(b, compress.Options{Algorithm: a})
			bodies, plain := corpus(b), 0
			stored := make([][]byte, len(bodies))
			for i, body := range bodies {
				stored[i], _ = apply(b, f, body)
				plain += len(body)
			}
			b.SetBytes(int64(plain / len(bodies)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := f.Undo(b.Context(), stored[i%len(stored)], string(a), codec.About{}, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
