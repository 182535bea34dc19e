package encrypt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SecretSize is the length of a secret in bytes: AES-256.
const SecretSize = 32

// KeyRing is the keys of a program.
type KeyRing struct {
	// Active encrypts.
	Active Key
	// Old decrypt, like the active one: keys of before, and one that is to be active next.
	Old []Key
}

// Key is a secret with a name.
type Key struct {
	// ID is in the header of each message: at most 64 letters, digits, '-', '_' or '.'.
	ID string
	// Secret has SecretSize random bytes. 'openssl rand -base64 32' makes some.
	Secret []byte `json:"-" yaml:"-"`
}

// String hides the secret.
func (k Key) String() string { return "key " + k.ID }

// GoString hides the secret.
func (k Key) GoString() string { return k.String() }

func (k Key) check() error {
	if err := checkID(k.ID); err != nil {
		return err
	}
	if len(k.Secret) != SecretSize {
		return fmt.Errorf("encrypt: key %q has %d bytes, not %d: make one with 'openssl rand -base64 32'", k.ID,
			len(k.Secret), SecretSize)
	}
	return nil
}

var errID = errors.New("encrypt: the id of a key is empty, too long or no name: use at most 64 letters, digits, '-', " +
	"'_' or '.'")

func checkID(id string) error {
	bad := id == "" || len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
	})
	if bad {
		return errID // without the id: who mixes the two up must not find a secret in the log
	}
	return nil
}

// ParseKeys reads keys as "ID:SECRET", the secret in base64, separated by commas or white space. The first one is the
// active key.
func ParseKeys(text string) (KeyRing, error) {
	var all []Key
	for _, field := range strings.FieldsFunc(text,
		func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t' }) {
		id, secret, found := strings.Cut(field, ":")
		if !found {
			return KeyRing{}, fmt.Errorf("encrypt: key %d has no id: write ID:SECRET", len(all)+1)
		}
		k := Key{ID: id}
		var err error
		if k.Secret, err = base64.StdEncoding.DecodeString(secret); err != nil {
			return KeyRing{}, fmt.Errorf("encrypt: the secret of key %d is not base64: make one with 'openssl rand -base64 32'",
				len(all)+1)
		}
		if err := k.check(); err != nil {
			return KeyRing{}, err
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		return KeyRing{}, errors.New("encrypt: there are no keys: write ID:SECRET, separated by commas, the active one first")
	}
	return KeyRing{Active: all[0], Old: all[1:]}, nil
}

// KeysFromFile reads keys of a file, as ParseKeys does.
func KeysFromFile(path string) (KeyRing, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return KeyRing{}, fmt.Errorf("encrypt: the keys cannot be read: %w", err)
	}
	return ParseKeys(string(text))
}

// KeysFromEnv reads keys of an environment variable, as ParseKeys does, or of the file that the variable with _FILE
// behind its name names.
func KeysFromEnv(name string) (KeyRing, error) {
	text, path := os.Getenv(name), os.Getenv(name+"_FILE")
	switch {
	case text != "" && path != "":
		return KeyRing{}, fmt.Errorf("encrypt: %s and %s_FILE are both set: unset one of them", name, name)
	case path != "":
		return KeysFromFile(path)
	case text == "":
		return KeyRing{}, fmt.Errorf("encrypt: neither %s nor %s_FILE is set: write ID:SECRET, separated by commas, the "+
			"active one first", name, name)
	}
	return ParseKeys(text)
}
