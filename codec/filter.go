package codec

import "context"

// Filter changes bodies between the codec and the broker, to compress or to encrypt them for example, and back before
// any handler. It is safe for concurrent use, and neither changes nor keeps the bodies that it is given; what it
// returns may be one of them.
type Filter interface {
	// Names are those of the encodings that Undo understands: letters, digits and '-'.
	Names() []string
	// Apply returns the body as it is to be stored, and its encoding: one of the names, with what Undo has to know
	// behind a semicolon, as in "aes-gcm;k=2". An empty encoding means that the body stays as it is. A publish whose
	// filter fails is not sent.
	Apply(ctx context.Context, body []byte, a About) (out []byte, encoding string, err error)
	// Undo returns the body that Apply was given, or an error if it has more than limit bytes. Whatever the bytes are,
	// it does not panic, and what it allocates is bounded by their number and the limit. An error is final unless it is
	// an ErrUnavailable.
	Undo(ctx context.Context, body []byte, encoding string, a About, limit int) ([]byte, error)
}

// About is what a filter is told of the message: what identifies it, and stays the same while it is stored.
type About struct {
	Topic, ID, Key string
}
