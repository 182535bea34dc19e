package gateway

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// leases makes the handles that clients in other languages hold: which gateway, which session, which delivery, and a signature.
type leases struct {
	node string
	key  []byte
}

func newLeases(node string) leases {
	if node == "" {
		node = strings.ToLower(rand.Text()[:8])
	}
	return leases{node: node, key: []byte(rand.Text())}
}

// macSize is how many bytes of a signature are in a handle.
const macSize = 16

// handle is the handle of a delivery.
func (l leases) handle(session string, n uint64) string {
	text := l.node + "." + session + "." + strconv.FormatUint(n, 36)
	return text + "." + l.sign(text)
}

func (l leases) sign(text string) string {
	h := hmac.New(sha256.New, l.key)
	_, _ = h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:macSize])
}

// parse reads a handle. One of another gateway is errElsewhere: its session is there.
func (l leases) parse(handle string) (session string, n uint64, err error) {
	parts := strings.Split(handle, ".")
	if len(parts) != 4 || len(handle) > 256 {
		return "", 0, errHandle()
	}
	if parts[0] != l.node {
		return "", 0, driver.NewError(driver.ErrConflict, fmt.Sprintf("the lease is held by gateway %.40q, and this is %q", parts[0], l.node),
			"send it to the gateway that gave it, or let it run out; the message is delivered again", errElsewhere)
	}
	if !hmac.Equal([]byte(parts[3]), []byte(l.sign(strings.Join(parts[:3], ".")))) {
		return "", 0, errHandle()
	}
	n, err = strconv.ParseUint(parts[2], 36, 64)
	if err != nil {
		return "", 0, errHandle()
	}
	return parts[1], n, nil
}

func errHandle() error {
	return invalid("the lease is not one that this gateway gave", "send it as it was received", nil)
}
