package privatefile

import (
	"errors"
	"io"
	"os"
)

// maxSecret bounds what is read of a file with a secret.
const maxSecret = 64 << 10

// Shared is the error for a secret that is none: others can read its file, or may have planted it.
type Shared struct{ Text, Hint string }

func (s *Shared) Error() string { return s.Text }

// ReadSecret reads a file with a secret, unless others can read it or have planted it, which is a *Shared.
func ReadSecret(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := private(path, f); err != nil { // of the file that is open: its name may mean another by now
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(content) > maxSecret {
		err = errors.New("it is too long for a secret")
	}
	return string(content), err
}
