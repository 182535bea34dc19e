package vendor

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
)

// Book is the robots of a channel by the names that targets use: addresses with keys are in no message.
type Book struct {
	*Client
	robots map[string]notify.Robot
}

// NewBook checks robots. Where the vendor signs, one without a secret must say so.
func NewBook(robots map[string]notify.Robot, h notify.HTTP, signs bool) (*Book, error) {
	b := &Book{Client: New(h), robots: maps.Clone(robots)}
	if len(robots) == 0 {
		return nil, wrong("name at least one", "the channel has no robot")
	}
	for name, r := range robots {
		if r.URL == "" {
			return nil, wrong("give the address that the vendor shows", "robot %q has no URL", name)
		}
		if err := b.CheckURL(r.URL); err != nil {
			return nil, fmt.Errorf("robot %q: %w", name, err)
		}
		if signs && r.Secret == "" && !r.Unsigned {
			return nil, wrong("give the one that the vendor shows, or set Unsigned if it is secured otherwise",
				"robot %q has no secret", name)
		}
	}
	return b, nil
}

func wrong(hint, format string, args ...any) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf(format, args...), hint, nil)
}

// Check says whether there is a robot of this name.
func (b *Book) Check(to string) error {
	_, err := b.Robot(to)
	return err
}

// Destinations are the names of the robots, sorted.
func (b *Book) Destinations() []string { return slices.Sorted(maps.Keys(b.robots)) }

// Robot returns one by name.
func (b *Book) Robot(name string) (notify.Robot, error) {
	r, ok := b.robots[name]
	if !ok {
		return r, &notify.Error{Code: notify.CodeInvalidTarget, Text: fmt.Sprintf("there is no robot %.60q", name),
			Hint: "the channel has " + strings.Join(b.Destinations(), ", "), Cause: ferry.ErrInvalid}
	}
	return r, nil
}

// Post sends JSON to a robot's address, which may differ from its URL by a signature.
func (b *Book) Post(ctx context.Context, r notify.Robot, to string, v any) (safehttp.Answer, error) {
	body, err := JSON(v)
	if err != nil {
		return safehttp.Answer{}, err
	}
	return b.Do(ctx, Call{URL: to, Header: JSONHeader(), Body: body, Secrets: Secrets(r)})
}

// Secrets are what is hidden of a robot.
func Secrets(r notify.Robot) []string {
	secrets := []string{r.Secret, r.URL}
	if u, err := url.Parse(r.URL); err == nil {
		secrets = append(secrets, safehttp.Secrets(u)...)
	}
	return secrets
}

// WithKeyword adds the robot's keyword to a text that lacks it.
func WithKeyword(r notify.Robot, text string) string {
	if r.Keyword == "" || strings.Contains(text, r.Keyword) {
		return text
	}
	return text + "\n" + r.Keyword
}

// List splits a value of Data at commas.
func List(value string) []string {
	var list []string
	for one := range strings.SplitSeq(value, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}
