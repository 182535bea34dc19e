package notify

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Channel sends to one kind of destination. It is called by several goroutines, for one destination by one at a time. A
// channel may also have Check(to string) error, which refuses a destination before anything is queued, Attaches() bool,
// Health(ctx) error and Close() error.
type Channel interface {
	// Send delivers one rendered part to one destination. Its error should be an *Error: any other is tried again. It
	// must return when ctx ends.
	Send(ctx context.Context, r Rendered) (Sent, error)
	// Limits says what the vendor allows. It is constant.
	Limits() Limits
}

// Rendered is what a channel sends.
type Rendered struct {
	// ID is the same whenever the same part is sent to the same target: the idempotency key for vendors that take one.
	ID string
	To string

	Title, Body string
	Format      Format
	Priority    Priority
	// Part is which of Parts this is, from 1. The title is that of all.
	Part, Parts int

	Data        map[string]string
	Metadata    map[string]string
	Attachments []Attachment
}

// Heading is the title, with the number of the part where there are several.
func (r Rendered) Heading() string {
	if r.Parts <= 1 {
		return r.Title
	}
	return fmt.Sprintf("%s (%d/%d)", r.Title, r.Part, r.Parts)
}

// Content is the heading and the body as one text.
func (r Rendered) Content() string {
	return strings.Trim(r.Heading()+"\n"+r.Body, "\n")
}

// Sent is a vendor's word that it took a notification.
type Sent struct {
	// ID is what the vendor calls it. May be empty.
	ID string
}

// Limits are what a vendor allows.
type Limits struct {
	// Rates hold for each destination. None: no limit.
	Rates []Rate
	// MaxBytes bounds the body of one part, by format. None: no limit. Of formats that Split names a longer one is sent
	// in parts, of others it is refused.
	MaxBytes map[Format]int
	Split    []Format
	// Formats are those the channel shows; a body in another one is sent as text. None: all.
	Formats []Format
	// Digest is sent in place of what Rates hold up: messages that wait for one destination are merged into one.
	Digest bool
}

// Rate is how many sends a vendor takes within a time.
type Rate struct {
	Sends int
	Per   time.Duration
}

// Func is a channel without limits of a function.
type Func func(ctx context.Context, r Rendered) (Sent, error)

// Send calls the function.
func (f Func) Send(ctx context.Context, r Rendered) (Sent, error) { return f(ctx, r) }

// Limits are none.
func (Func) Limits() Limits { return Limits{} }

// checker is a channel that knows what a destination looks like.
type checker interface{ Check(to string) error }

// attacher is a channel that takes attachments.
type attacher interface{ Attaches() bool }

// counter is a channel that needs several sends for one part, at times.
type counter interface{ Sends(r Rendered) int }

// healthy is a channel that can tell whether it works, without sending anything.
type healthy interface {
	Health(ctx context.Context) error
}

// closer is a channel that holds something.
type closer interface{ Close() error }

// Robot is an address of a chat that takes messages, with what it is secured by.
type Robot struct {
	// URL holds a key: it is shown to nobody.
	URL string
	// Secret signs what is sent, for vendors that sign.
	Secret string
	// Unsigned allows a robot of such a vendor without a secret: one that is secured by keywords or addresses alone.
	Unsigned bool
	// Keyword is one that the robot asks for: it is added to what lacks it.
	Keyword string
}

// HTTP says which servers a channel may call.
type HTTP struct {
	// AllowPrivate are private networks that may be called: an intranet. Defaults to none.
	AllowPrivate []netip.Prefix
	// RootCAs verify servers. Defaults to those of the system.
	RootCAs *x509.CertPool
}
