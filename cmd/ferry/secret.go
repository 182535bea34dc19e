package main

import (
	"errors"
	"io"
	"os"
)

// maxSecret bounds what is read of a file that a variable names.
const maxSecret = 64 << 10

// readSecret reads the file that a NAME_FILE variable names, unless others can read it or have planted it.
func readSecret(path string) (_ string, err error) {
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

// errShared is a secret that is none.
type errShared struct{ text, hint string }

func (e *errShared) Error() string { return e.text }
