package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of a password, in bytes.
const (
	MinPassword = 10
	MaxPassword = 1 << 10
)

// The cost of a hash: 19 MiB and two passes, what OWASP asks for argon2id at least. It is kept with each hash, so that
// it can grow.
const (
	hashMemory  = 19 << 10 // KiB
	hashPasses  = 2
	hashThreads = 1
	saltSize    = 16
	hashSize    = 32

	// The most that a stored hash may ask for: whoever writes to the broker must not make a login cost gigabytes.
	mostHashMemory = 256 << 10
	mostHashPasses = 16
)

// hashSlots bounds the hashes that are computed at once in this process, and so the memory that logins take.
var hashSlots = make(chan struct{}, 2)

// inHashSlot computes something costly when there is a slot for it.
func inHashSlot(ctx context.Context, compute func()) error {
	select {
	case hashSlots <- struct{}{}:
		defer func() { <-hashSlots }()
		compute()
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "too many logins at once", "try again in a moment", ctx.Err())
	}
}

// checkPassword says why a text is not good for a password, or nil.
func checkPassword(p Secret) error {
	switch text := p.Reveal(); {
	case len(text) < MinPassword:
		return driver.NewError(driver.ErrInvalid, "the password is too short",
			fmt.Sprintf("use at least %d characters", MinPassword), nil)
	case len(text) > MaxPassword:
		return driver.NewError(driver.ErrInvalid, "the password is too long",
			fmt.Sprintf("use at most %d bytes", MaxPassword), nil)
	case !utf8.ValidString(text):
		return driver.NewError(driver.ErrInvalid, "the password is not UTF-8",
			"check the encoding of the terminal or the file", nil)
	}
	return nil
}

// hashPassword returns the form of a password that is kept: PHC, with its salt and cost.
func hashPassword(ctx context.Context, p Secret) (string, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // which cannot fail
	var hash []byte
	err := inHashSlot(ctx, func() {
		hash = argon2.IDKey([]byte(p.Reveal()), salt, hashPasses, hashMemory, hashThreads, hashSize)
	})
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash)), err
}

// nobodysHash costs as much as that of a user: an answer that comes early would tell that there is none of a name.
var nobodysHash = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses,
	hashThreads,
	base64.RawStdEncoding.EncodeToString(make([]byte, saltSize)),
	base64.RawStdEncoding.EncodeToString(make([]byte, hashSize)))

// matchesHash reports whether a password is the one of a hash.
func matchesHash(ctx context.Context, stored string, p Secret) (bool, error) {
	memory, passes, threads, salt, want, err := parseHash(stored)
	if err != nil || len(p.Reveal()) > MaxPassword {
		return false, err
	}
	var got []byte
	if err := inHashSlot(ctx, func() {
		got = argon2.IDKey([]byte(p.Reveal()), salt, passes, memory, threads, uint32(len(want)))
	}); err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

// parseHash takes a stored hash apart, and refuses one that would cost too much.
func parseHash(stored string) (memory, passes uint32, threads uint8, salt, hash []byte, err error) {
	bad := driver.NewError(driver.ErrInvalid, "the stored hash of a password cannot be read",
		"set the password again: ferry user set NAME", nil)
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return 0, 0, 0, nil, nil, bad
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil {
		return 0, 0, 0, nil, nil, bad
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	hash, hashErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || hashErr != nil || len(hash) != hashSize || passes < 1 || passes > mostHashPasses ||
		threads != hashThreads || memory > mostHashMemory {
		return 0, 0, 0, nil, nil, bad
	}
	return memory, passes, threads, salt, hash, nil
}
