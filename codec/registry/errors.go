package registry

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ferrymq/ferry/codec"
)

// What a registry answers. Everything else, credentials that it does not take included, is codec.ErrUnavailable: it
// says nothing about the message.
var (
	// ErrNotFound: the registry does not have the schema, the subject or the version.
	ErrNotFound = errors.New("not in the registry")
	// ErrIncompatible: the schema breaks the compatibility level of its subject.
	ErrIncompatible = errors.New("incompatible")
	// ErrRefused: the registry says that the schema is not valid.
	ErrRefused = errors.New("refused by the registry")
)

// explain says what was asked, what the registry answered and what helps.
func explain(asked string, err error) error {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return unavailable(asked, err)
	}
	switch {
	case answer.StatusCode == http.StatusNotFound && answer.ErrorCode/100 == http.StatusNotFound:
		// not of a proxy, or a wrong path
		return fmt.Errorf("registry: %s: %w: register the schema first, or see that this is the right registry: %w",
			asked, ErrNotFound, err)
	case answer.StatusCode == http.StatusConflict:
		return fmt.Errorf("registry: %s: %w: give new fields a default and keep the types of old ones, or use another "+
			"topic: %w", asked, ErrIncompatible, err)
	case answer.StatusCode == http.StatusUnprocessableEntity:
		return fmt.Errorf("registry: %s: %w: correct the schema: %w", asked, ErrRefused, err)
	}
	return unavailable(fmt.Sprintf("%s (status %d)", asked, answer.StatusCode), err)
}

func unavailable(asked string, err error) error {
	return fmt.Errorf("registry: %s: %w: see that its URL and credentials are right and that it is up: %w", asked,
		codec.ErrUnavailable, err)
}
