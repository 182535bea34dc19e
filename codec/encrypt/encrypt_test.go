package encrypt_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/encrypt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var about = codec.About{Topic: "orders", ID: "7", Key: "user-1"}

// keyOf is a key whose secret follows from its id.
func keyOf(id string) encrypt.Key {
	return encrypt.Key{ID: id, Secret: bytes.Repeat([]byte{id[0]}, encrypt.SecretSize)}
}

func filterOf(t testing.TB, active string, old ...string) *encrypt.Filter {
	t.Helper()
	ring := encrypt.KeyRing{}
	if active != "" {
		ring.Active = keyOf(active)
	}
	for _, id := range old {
		ring.Old = append(ring.Old, keyOf(id))
	}
	f, err := encrypt.New(encrypt.Options{Keys: ring})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRoundTrip: bodies of every size come back, and two of the same are stored differently.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := filterOf(t, "2", "1")
	for _, body := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("body "), 1000)} {
		one, encoding, err := f.Apply(t.Context(), body, about)
		if err != nil || encoding != "aes-gcm;k=2" {
			t.Fatalf("%q, %v", encoding, err)
		}
		two, _, err := f.Apply(t.Context(), body, about)
		if err != nil || bytes.Equal(one, two) || len(body) > 3 && bytes.Contains(one, body[:4]) {
			t.Errorf("%x and %x, %v", one, two, err)
		}
		if plain, err := f.Undo(t.Context(), one, encoding, about, len(body)); err != nil || !bytes.Equal(plain, body) {
			t.Errorf("%q came back as %q, %v", body, plain, err)
		}
	}
}

// TestTampering: whatever is changed of what is stored, the body is refused.
func TestTampering(t *testing.T) {
	t.Parallel()
	f := filterOf(t, "2", "1")
	stored, encoding, err := f.Apply(t.Context(), []byte("pay 10 to Ann"), about)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, body []byte, encoding string, a codec.About) {
		t.Helper()
		if plain, err := f.Undo(t.Context(), body, encoding, a, 1000); err == nil {
			t.Errorf("%s: decrypted as %q", what, plain)
		}
	}
	for i := range stored { // nonce, ciphertext and tag
		for bit := range 8 {
			changed := bytes.Clone(stored)
			changed[i] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d", bit, i), changed, encoding, about)
		}
		refused(fmt.Sprintf("cut to %d", i), stored[:i], encoding, about)
	}
	refused("a byte more", append(bytes.Clone(stored), 0), encoding, about)
	refused("another topic", stored, encoding, codec.About{Topic: "refunds", ID: "7", Key: "user-1"})
	refused("another id", stored, encoding, codec.About{Topic: "orders", ID: "8", Key: "user-1"})
	refused("another key", stored, encoding, codec.About{Topic: "orders", ID: "7", Key: "user-2"})
	refused("the same letters", stored, encoding, codec.About{Topic: "orders7", Key: "user-1"})
	refused("another key of the ring", stored, "aes-gcm;k=1", about)
	for _, bad := range []string{"", "aes-gcm", "aes-gcm;k=", "aes-gcm;K=2", "zstd", "aes-gcm;k=2;x",
		"aes-gcm;k=" + strings.Repeat("2", 65)} {
		refused(fmt.Sprintf("encoding %q", bad), stored, bad, about)
	}
	if _, err := f.Undo(t.Context(), stored, encoding, about, 5); err == nil ||
		!strings.Contains(err.Error(), "more than the 5") {
		t.Errorf("over the limit: %v", err)
	}
}

// TestRotation: a new key is given to all as an old one, then used, and the former one is kept until nothing needs it.
func TestRotation(t *testing.T) {
	t.Parallel()
	f := filterOf(t, "1")
	before, encoding, err := f.Apply(t.Context(), []byte("body"), about)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rotate(encrypt.KeyRing{Active: keyOf("2"), Old: []encrypt.Key{keyOf("1")}}); err != nil {
		t.Fatal(err)
	}
	if _, now, err := f.Apply(t.Context(), nil, about); err != nil || now != "aes-gcm;k=2" {
		t.Errorf("after the rotation: %q, %v", now, err)
	}
	if plain, err := f.Undo(t.Context(), before, encoding, about, 100); err != nil || string(plain) != "body" {
		t.Errorf("of the old key: %q, %v", plain, err)
	}
	if err := f.Rotate(encrypt.KeyRing{Active: keyOf("2"), Old: []encrypt.Key{keyOf("2")}}); err == nil {
		t.Error("two keys of one id are accepted")
	}
	if err := f.Rotate(encrypt.KeyRing{Active: keyOf("2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Undo(t.Context(), before, encoding, about, 100); err == nil ||
		!strings.Contains(err.Error(), `no key "1" here: add it to KeyRing.Old`) {
		t.Errorf("of a key that is gone: %v", err)
	}
}

// TestOnlyDecrypts: without an active key nothing is sent as it is.
func TestOnlyDecrypts(t *testing.T) {
	t.Parallel()
	if _, _, err := filterOf(t, "", "1").Apply(t.Context(), []byte("body"), about); err == nil {
		t.Error("a body passed without a key")
	}
	if _, err := encrypt.New(encrypt.Options{}); err == nil {
		t.Error("a filter without keys is accepted")
	}
	if _, err := encrypt.New(encrypt.Options{Keys: encrypt.KeyRing{Active: encrypt.Key{Secret: make([]byte, 32)},
		Old: []encrypt.Key{keyOf("1")}}}); err == nil {
		t.Error("a key without an id is accepted")
	}
}

// TestLookup: a key management service is asked once for each key, and not again at once for one that it does not know.
func TestLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored, encoding, err := filterOf(t, "k").Apply(t.Context(), []byte("body"), about)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		answer := func() ([]byte, error) { return nil, errors.New("no route") }
		f, err := encrypt.New(encrypt.Options{Lookup: func(_ context.Context, id string) ([]byte, error) {
			asked = append(asked, id)
			return answer()
		}})
		if err != nil {
			t.Fatal(err)
		}
		undo := func() error {
			_, err := f.Undo(t.Context(), stored, encoding, about, 100)
			return err
		}
		if err := undo(); !errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("away: %v", err)
		}
		answer = func() ([]byte, error) { return nil, nil }
		for range 3 {
			if err := undo(); err == nil || errors.Is(err, codec.ErrUnavailable) {
				t.Errorf("unknown: %v", err)
			}
		}
		answer = func() ([]byte, error) { return []byte("short"), nil }
		time.Sleep(6 * time.Second)
		if err := undo(); err == nil || !strings.Contains(err.Error(), "has 5 bytes") {
			t.Errorf("a short secret: %v", err)
		}
		answer = func() ([]byte, error) { return keyOf("k").Secret, nil }
		for range 3 {
			if err := undo(); err != nil {
				t.Error(err)
			}
		}
		if len(asked) != 4 {
			t.Errorf("asked %d times, want 4: away, unknown, short, known", len(asked))
		}
	})
}

// TestLookupOfMany: callers that want the same key at the same time ask once, and share what came of it; if who asked
// gives up, another one does.
func TestLookupOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored, encoding, err := filterOf(t, "k").Apply(t.Context(), []byte("body"), about)
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		var answer error
		f, err := encrypt.New(encrypt.Options{Lookup: func(ctx context.Context, _ string) ([]byte, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return keyOf("k").Secret, answer
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		undo := func(ctx context.Context, want error) {
			if _, err := f.Undo(ctx, stored, encoding, about, 100); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		many := func(want error) {
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() { undo(t.Context(), want) })
			}
			callers.Wait()
		}
		answer = errors.New("no route")
		many(codec.ErrUnavailable)
		if n := asked.Swap(0); n != 1 {
			t.Errorf("away: asked %d times", n)
		}
		answer = nil
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var first sync.WaitGroup
		first.Go(func() { undo(hurried, codec.ErrUnavailable) })
		synctest.Wait()
		many(nil)
		first.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("after one that gave up: asked %d times, want 2", n)
		}
	})
}

// TestKeysAsText: keys come from a variable or a file, the first is active, and no error shows a secret.
func TestKeysAsText(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString(keyOf("s").Secret)
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("2:"+secret+"\n1:"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEYS_A", "2:"+secret+",1:"+secret)
	t.Setenv("KEYS_B_FILE", file)
	for _, name := range []string{"KEYS_A", "KEYS_B"} {
		ring, err := encrypt.KeysFromEnv(name)
		if err != nil || ring.Active.ID != "2" || len(ring.Old) != 1 || ring.Old[0].ID != "1" ||
			!bytes.Equal(ring.Active.Secret, keyOf("s").Secret) {
			t.Errorf("%s: %v, %v", name, ring, err)
		}
	}
	t.Setenv("KEYS_A_FILE", file)
	t.Setenv("KEYS_C_FILE", file+".none")
	for _, name := range []string{"KEYS_A", "KEYS_C", "KEYS_NONE"} {
		if _, err := encrypt.KeysFromEnv(name); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, bad := range []string{"", " ,\n", secret, "2:" + secret[:20], ":" + secret, secret + ":2",
		"2:not base64!" + secret, "a b:" + secret} {
		_, err := encrypt.ParseKeys(bad)
		if err == nil {
			t.Errorf("%q is accepted", bad)
			continue
		}
		if strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

// TestSecretsAreNotPrinted: however a ring is printed, its secrets are not.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	ring := encrypt.KeyRing{Active: keyOf("s"), Old: []encrypt.Key{keyOf("s")}}
	data, err := json.Marshal(ring)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(ring), fmt.Sprintf("%+v", ring), fmt.Sprintf("%#v", ring),
		fmt.Sprint(&ring), string(data)} {
		if strings.Contains(text, "115") || strings.Contains(text, "ssss") || strings.Contains(text, "0x73") ||
			strings.Contains(text, "c3Nz") {
			t.Errorf("it shows the secret: %s", text)
		}
	}
}

// FuzzUndo: whatever the bytes and the encoding are, nothing but what was encrypted is decrypted.
func FuzzUndo(f *testing.F) {
	filter := filterOf(f, "2", "1")
	stored, encoding, err := filter.Apply(f.Context(), []byte("body"), about)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored, encoding)
	f.Add(stored[:27], encoding)
	f.Add([]byte{}, "aes-gcm;k=1")
	f.Fuzz(func(t *testing.T, data []byte, encoding string) {
		plain, err := filter.Undo(t.Context(), data, encoding, about, 1000)
		if err == nil && string(plain) != "body" { // each process of a fuzzer has encrypted it anew
			t.Errorf("%x was decrypted as %q", data, plain)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	f := filterOf(b, "1")
	for _, size := range []int{128, 10_000} {
		body := make([]byte, size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, _, err := f.Apply(b.Context(), body, about); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
