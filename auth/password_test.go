package auth

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func TestPasswordHash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one, err := hashPassword(ctx, NewSecret("correct horse"))
	if err != nil || strings.Contains(one, "horse") {
		t.Fatal(one, err)
	}
	if other, _ := hashPassword(ctx, NewSecret("correct horse")); other == one {
		t.Error("two hashes of a password are the same: there is no salt")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct hors": false, "": false,
		strings.Repeat("x", MaxPassword+1): false} {
		if got, err := matchesHash(ctx, one, NewSecret(password)); got != want || err != nil {
			t.Errorf("%.20q: %v, %v", password, got, err)
		}
	}
	if got, err := matchesHash(ctx, nobodysHash, NewSecret("")); got || err != nil {
		t.Errorf("nobody has a password: %v, %v", got, err)
	}
}

// TestDamagedHash: a hash that somebody wrote to the broker costs neither gigabytes nor a panic.
func TestDamagedHash(t *testing.T) {
	t.Parallel()
	good := nobodysHash
	for _, bad := range []string{
		"", "x", strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "m=19456", "m=4294967295", 1),
		strings.Replace(good, "t=2", "t=0", 1), strings.Replace(good, "t=2", "t=1000", 1),
		strings.Replace(good, "p=1", "p=0", 1),
		strings.Replace(good, "p=1", "p=200", 1), good + "A", good[:len(good)-4],
		strings.Replace(good, "v=19", "v=16", 1), good + "$",
		strings.Replace(good, "m=19456,t=2,p=1", "m=-1,t=2,p=1", 1),
	} {
		if got, err := matchesHash(context.Background(), bad, NewSecret("anything at all")); got ||
			!errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// TestHashSlots: logins beyond the slots wait, and give up with their request.
func TestHashSlots(t *testing.T) { // not parallel: it takes all slots of the process
	for range cap(hashSlots) {
		hashSlots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := matchesHash(ctx, nobodysHash, NewSecret("x"))
	for range cap(hashSlots) {
		<-hashSlots
	}
	if !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("a login without a slot: %v", err)
	}
}
