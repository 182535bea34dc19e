package envelope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genMessage.Draw(t, "message")
		prefix := genAny.Draw(t, "prefix")
		data := Append([]byte(prefix), want)
		if !strings.HasPrefix(string(data), prefix) {
			t.Fatalf("Append changed what was in dst")
		}
		data = data[len(prefix):]
		if size := Size(want); size != len(data) {
			t.Fatalf("Size says %d, but it has %d bytes", size, len(data))
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		if again := Append(nil, want.Clone()); !bytes.Equal(again, data) {
			t.Fatalf("equal messages, different bytes:\n%x\n%x", data, again)
		}
	})
}

func TestOverheadOfPlainMessage(t *testing.T) {
	t.Parallel()
	m := plain()
	whole := len(Append(nil, m)) - len(m.Body)
	beside := *m
	beside.Topic, beside.PublishedAt = "", time.Time{}
	least := len(Append(nil, &beside)) - len(m.Body)
	t.Logf("overhead: %d bytes with topic and time, %d with both kept outside", whole, least)
	if whole != 46 || least != 29 {
		t.Errorf("overhead is %d and %d bytes, docs/envelope.md says 46 and 29 (and at most 60)", whole, least)
	}
}

// sealed returns fields as an envelope with a right version and checksum.
func sealed(fields ...[]byte) []byte {
	return seal(append(appendVersion(nil), bytes.Join(fields, nil)...), 0)
}

func TestDecodeSkipsUnknownFields(t *testing.T) {
	t.Parallel()
	var unknown []byte
	unknown = protowire.AppendVarint(protowire.AppendTag(unknown, 21, protowire.VarintType), 7)
	unknown = protowire.AppendString(protowire.AppendTag(unknown, 1000, protowire.BytesType), "later")
	unknown = protowire.AppendFixed64(protowire.AppendTag(unknown, 22, protowire.Fixed64Type), 7)
	unknown = protowire.AppendTag(unknown, 23, protowire.StartGroupType)
	unknown = protowire.AppendTag(unknown, 23, protowire.EndGroupType)
	got := must[*driver.Message](t)(Decode(sealed(unknown, appendText(nil, numKey, "k"), unknown)))
	same(t, got, &driver.Message{Key: "k"})

	inRetry := appendText(appendInt(nil, numBase, 5), 99, "later")
	got = must[*driver.Message](t)(Decode(sealed(nest(inRetry, 0, numRetry))))
	same(t, got.Retry, &driver.RetryPolicy{Base: 5})
}

func TestDecodeTakesWhatOtherWritersWrite(t *testing.T) {
	t.Parallel()
	unpacked := appendInt(appendInt(nil, numDelays, 5), numDelays, 6) // not packed
	twice := append(appendText(nil, numKey, "first"), appendText(nil, numKey, "last")...)
	entry := nest(appendText(appendText(nil, 2, "value first"), 1, "name"), 0, numHeaders)
	got := must[*driver.Message](t)(Decode(sealed(nest(unpacked, 0, numRetry), twice, entry)))
	same(t, got, &driver.Message{Key: "last", Headers: map[string]string{"name": "value first"},
		Retry: &driver.RetryPolicy{Delays: []time.Duration{5, 6}}})
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	newer := appendUint(nil, numVersion, 2)
	bad := func(field ...byte) []byte { return sealed(field) }
	for _, c := range []struct {
		name, says string
		data       []byte
	}{
		{"nothing", "does not begin with a version", nil},
		{"text", "does not begin with a version", []byte(`{"id":1}`)},
		{"a cut version", "version is cut off", []byte{numVersion << 3}},
		{"a newer version", "version 2, this program reads version 1", append(newer, "anything at all"...)},
		{"version alone", "end with a checksum", appendVersion(nil)},
		{"a wrong checksum", "checksum is 00000000, but its content gives", append(appendVersion(nil), crcTag, 0, 0, 0, 0)},
		{"a short uuid", "id_uuid has 3 bytes", bad(appendText(nil, numIDUUID, "abc")...)},
		{"an unknown content type", "content type number 9", bad(appendUint(nil, numContentTypeCode, 9)...)},
		{"a priority beyond the lanes", "priority 3", bad(appendUint(nil, numPriority, protowire.EncodeZigZag(3))...)},
		{"a priority beyond 8 bits", "priority 256", bad(appendUint(nil, numPriority, protowire.EncodeZigZag(256))...)},
		{"a number where text belongs", "field key has the wrong type", bad(appendUint(nil, numKey, 1)...)},
		{"text where a number belongs", "field delay_ns has the wrong type", bad(appendText(nil, numDelay, "x")...)},
		{"a length beyond the end", "field body is cut off", bad(numBody<<3|2, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"field number 0", "a field is cut off", bad(0, 0)},
		{"an unknown field cut off", "field 30 is cut off", bad(protowire.AppendTag(nil, 30, protowire.Fixed64Type)...)},
		{"a delay cut off", "a retry delay is cut off", bad(nest(appendText(nil, numDelays, "\x80"), 0, numRetry)...)},
		{"a header cut off", "field value is cut off", bad(nest([]byte{2<<3 | 2, 9}, 0, numHeaders)...)},
	} {
		m, err := Decode(c.data)
		if m != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Decode(%x) = %v, %v; want ErrInvalid that says %q", c.name, c.data, m, err, c.says)
		}
	}
}

func TestDecodeFindsEveryFlippedBitAndEveryCut(t *testing.T) {
	t.Parallel()
	data := Append(nil, full())
	for i := range data {
		if m, err := Decode(data[:i]); err == nil {
			t.Fatalf("cut after %d of %d bytes: decoded as %+v", i, len(data), m)
		}
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			if m, err := Decode(flipped); err == nil {
				t.Fatalf("bit %d of byte %d flipped: decoded as %+v", bit, i, m)
			}
		}
	}
}

func TestBodyIsPartOfInputAndNothingElseIs(t *testing.T) {
	t.Parallel()
	data := Append(nil, full())
	before := bytes.Clone(data)
	got := must[*driver.Message](t)(Decode(data))
	_ = append(got.Body, "more"...)
	if !bytes.Equal(data, before) {
		t.Error("appending to the body wrote into the input")
	}
	if &got.Body[0] != &data[bytes.Index(data, got.Body)] {
		t.Error("the body was copied")
	}
	want := full()
	clear(data)
	want.Body = make([]byte, len(want.Body))
	same(t, got, want)
}

// A hostile envelope must not make us allocate out of proportion to its size.
func TestDecodeMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	fill := func(field []byte) []byte { return sealed(bytes.Repeat(field, size/len(field))) }
	header := func(i uint16) []byte {
		return nest(appendText(nil, 1, binary.BigEndian.AppendUint16(nil, i)), 0, numHeaders)
	}
	var headers []byte
	for i := range uint16(1<<16 - 1) {
		headers = append(headers, header(i)...)
	}
	failure := nest(nil, 0, numHistory)
	for _, c := range []struct {
		name string
		data []byte
		dead bool
	}{
		{"uuids", fill(appendText(nil, numIDUUID, make([]byte, 16))), false},
		{"delays", fill(nest(nest(make([]byte, 1000), 0, numDelays), 0, numRetry)), false},
		{"headers", sealed(headers), false},
		{"failures", fill(failure), true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		if c.dead {
			_, err = DecodeDeadLetter(c.data)
		} else {
			_, err = Decode(c.data)
		}
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d bytes for %d of input", c.name, used, len(c.data))
		if err != nil || used > 64*uint64(len(c.data)) {
			t.Errorf("%s: %v, %d bytes allocated for %d of input", c.name, err, used, len(c.data))
		}
	}
}

func TestTimesBeyondNanosecondsSaturate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, want time.Time }{
		{time.Unix(0, 0), time.Unix(0, 0)},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 1<<63-1)},
		{time.Date(1066, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, -1<<63)},
		{time.Unix(0, 1<<63-2), time.Unix(0, 1<<63-2)},
		{time.Unix(0, -1<<63+1), time.Unix(0, -1<<63+1)},
		{time.Date(2262, 1, 1, 0, 0, 0, 1, time.FixedZone("", 3600)),
			time.Date(2262, 1, 1, 0, 0, 0, 1, time.FixedZone("", 3600))},
		{time.Date(1678, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(1678, 1, 1, 0, 0, 0, 1, time.UTC)},
	} {
		got := must[*driver.Message](t)(Decode(Append(nil, &driver.Message{At: c.at})))
		if !got.At.Equal(c.want) || got.At.Location() != time.UTC {
			t.Errorf("At %v came back as %v, want %v in UTC", c.at, got.At, c.want)
		}
	}
}

func TestChecksumIsCRC32C(t *testing.T) {
	t.Parallel()
	if got := crc32.Checksum([]byte("123456789"), castagnoli); got != 0xe3069283 { // the check value of the standard
		t.Errorf("checksum of 123456789 is %08x, want e3069283", got)
	}
	data := Append(nil, plain())
	end := len(data) - 4
	if sum := crc32.Checksum(data[:end-1], castagnoli); binary.LittleEndian.Uint32(data[end:]) != sum {
		t.Errorf("the envelope %x does not end with the sum %08x of what is before it", data, sum)
	}
}

func TestUUIDText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", plainID[:35], plainID + "0", strings.ToUpper(plainID),
		strings.ReplaceAll(plainID, "-", "_"),
		strings.Replace(plainID, "0", "g", 1), strings.Replace(plainID, "-", "0", 1)} {
		if _, ok := ParseUUID(s); ok {
			t.Errorf("ParseUUID(%q) is a UUID", s)
		}
	}
	id, ok := ParseUUID(plainID)
	if got := FormatUUID(id[:]); !ok || got != plainID {
		t.Errorf("%s came back as %s, %v", plainID, got, ok)
	}
}
