// Package unique keeps messages unique: a named value says which message has a unique id, from before it is stored
// until its last group has settled it.
//
//	place    where the value of a unique id lies, and what it holds
//	claim    the value is written before the message is stored
//	gone     a value that outlived its message is noticed by who wants the id next
//	settle   the value is removed after the last group has settled the message
//	keeper   what is written later than its caller waits for
package unique

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// buckets is over how many the values are spread: each is one slot or partition of the backend, and holds
// driver.MaxValues.
const buckets = 16

// place is where the value of one unique id lies.
type place struct{ bucket, name string }

// placeOf names it. Names of topics and ids are so short that what they make is shorter than driver.MaxValueName.
func placeOf(topic, id string) place { return placeNamed(topic + "/" + id) }

func placeNamed(name string) place {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return place{bucketNames[h.Sum32()%buckets], name}
}

var bucketNames = func() (names [buckets]string) {
	for i := range names {
		names[i] = fmt.Sprintf("%s.%02x", driver.UniqueBucket, i)
	}
	return names
}()

// record is what a value holds.
type record struct {
	// ID of the message.
	ID string `json:"id"`
	// Stored says that the broker has acknowledged it: if it is not there any more, it is gone and not still to come.
	Stored bool `json:"stored,omitempty"`
	// Ref is where it is stored, if it stays there.
	Ref string `json:"ref,omitempty"`
	// Settled are the groups that have settled it, while others have not.
	Settled []string `json:"settled,omitempty"`
}

func (r *record) encode() []byte {
	data, _ := json.Marshal(r) // strings and a bool: never fails
	return data
}

func decode(data []byte) (r record, ok bool) { return r, json.Unmarshal(data, &r) == nil && r.ID != "" }

// header is what a message carries: the epoch of its value, and the value's name.
func header(epoch uint64, name string) string { return strconv.FormatUint(epoch, 10) + " " + name }

// withHeader returns headers with one more. Those of the caller are not ours to change.
func withHeader(headers map[string]string, value string) map[string]string {
	out := make(map[string]string, len(headers)+1)
	for k, v := range headers {
		out[k] = v
	}
	out[driver.UniqueHeader] = value
	return out
}

// claimed reads the header of a message.
func claimed(m *driver.Message) (at place, epoch uint64, ok bool) {
	value, ok := m.Headers[driver.UniqueHeader]
	if !ok {
		return place{}, 0, false
	}
	number, name, found := strings.Cut(value, " ")
	epoch, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil || epoch == 0 || driver.CheckValueNames(driver.UniqueBucket, name) != nil {
		return place{}, 0, false // somebody else's header
	}
	return placeNamed(name), epoch, true
}

// complete reports whether all groups of a topic are among those that have settled a message.
func (r *record) complete(groups []string) bool {
	for _, g := range groups {
		if !slices.Contains(r.Settled, g) {
			return false
		}
	}
	return true
}
