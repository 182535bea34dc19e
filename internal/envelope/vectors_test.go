package envelope

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

// goldenMessages and goldenDeadLetters are what the vectors hold. To add one, add it here and run the test with
// -update; to change one is to break the format.
func goldenMessages() map[string]*driver.Message {
	beside := plain()
	beside.Topic, beside.PublishedAt = "", time.Time{}
	return map[string]*driver.Message{
		"01 empty":                      {},
		"02 plain":                      plain(),
		"03 topic and time kept beside": beside,
		"04 full":                       full(),
		"05 held, low":                  {ID: "h", Priority: driver.Low, Delay: driver.Hold},
		"06 text": {ID: plainID, Topic: "t", Key: "客户-7", Body: []byte("摆渡\n"),
			ContentType: "text/plain; charset=utf-8"},
		"07 binary body": {ID: plainID, Body: []byte{0, 0x7d, 0xff, 0x08, 0x01},
			ContentType: "application/octet-stream"},
		"08 upper-case id":           {ID: "01890A5D-AC96-774B-BCCE-B302099A8057"},
		"09 at 1970":                 {ID: "e", At: time.Unix(0, 0)},
		"10 negative delay":          {ID: "n", Delay: -1},
		"11 empty retry":             {ID: "r", Retry: &driver.RetryPolicy{}},
		"12 one retry delay of zero": {ID: "z", Retry: &driver.RetryPolicy{Delays: []time.Duration{0}}},
	}
}

func goldenDeadLetters() map[string]*driver.DeadLetter {
	return map[string]*driver.DeadLetter{
		"01 empty": {},
		"02 full":  dead(),
		"03 plain, expired": {Message: plain(), Reason: driver.ReasonExpired, Action: driver.ActionDiscard,
			DiedAt: time.Unix(1_800_000_000, 0)},
	}
}

func hexPairs(pairs []Pair) [][2]string {
	var out [][2]string
	for _, p := range pairs {
		out = append(out, [2]string{p.Name, hex.EncodeToString(p.Value)})
	}
	return out
}

// currentVectors encodes the goldens with the code as it is.
func currentVectors() vectors {
	v := vectors{Version: Version}
	messages := goldenMessages()
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		m := messages[name]
		v.Messages = append(v.Messages, messageVector{name, toJSON(m), hex.EncodeToString(Append(nil, m)),
			hexPairs(ToFields(Stream, nil, m)), hexPairs(ToFields(Kafka, nil, m))})
	}
	letters := goldenDeadLetters()
	for _, name := range slices.Sorted(maps.Keys(letters)) {
		v.DeadLetters = append(v.DeadLetters, deadLetterVector{name, deadToJSON(letters[name]),
			hex.EncodeToString(AppendDeadLetter(nil, letters[name]))})
	}
	return v
}

func TestVectorsAreWhatWeWrite(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(currentVectors()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	same(t, string(must[[]byte](t)(os.ReadFile(vectorFile))), want.String())
}

func TestVectorsAreWhatWeRead(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if v.Version != Version || len(v.Messages) == 0 || len(v.DeadLetters) == 0 {
		t.Fatalf("version %d, %d messages and %d dead letters", v.Version, len(v.Messages), len(v.DeadLetters))
	}
	for _, c := range v.Messages {
		want := c.Message.message(t)
		same(t, must[*driver.Message](t)(Decode(c.envelope(t))), want)
		for form, pairs := range [][][2]string{Stream: c.Stream, Kafka: c.Kafka} {
			var in []Pair
			for _, p := range pairs {
				in = append(in, Pair{p[0], must[[]byte](t)(hex.DecodeString(p[1]))})
			}
			same(t, must[*driver.Message](t)(unpack(Form(form), in, want.Key, want.Body)), want)
		}
	}
	for _, c := range v.DeadLetters {
		same(t, must[*driver.DeadLetter](t)(DecodeDeadLetter(c.envelope(t))), c.DeadLetter.deadLetter(t))
	}
}
