// Package sms is the channel of text messages: Aliyun, Tencent Cloud, Twilio, and any gateway that takes an HTTP call.
//
// Vendors in China send approved templates: their parameters are made of the notification, as the options say. In
// those {title} and {body} are the notification's, and any other name is one of its Data.
package sms

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

var number = regexp.MustCompile(`^\+?[0-9]{5,20}$`)

// checkNumber refuses what is no telephone number.
func checkNumber(to string) error {
	if number.MatchString(to) {
		return nil
	}
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("%.40q is no telephone number", to),
		"write it as +8613800138000", nil)
}

// wrong is the error of wrong options.
func wrong(hint, format string, args ...any) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf(format, args...), hint, nil)
}

// needed refuses an option that is empty.
func needed(options map[string]string) error {
	for name, value := range options {
		if value == "" {
			return wrong("the vendor's console shows it", "the channel has no %s", name)
		}
		if strings.ContainsAny(value, "\r\n") {
			return wrong("remove it", "%s has a line break", name)
		}
	}
	return nil
}

// limits of vendors that send templates: text alone, which cannot be split.
func limits() notify.Limits {
	return notify.Limits{
		Rates:   []notify.Rate{{Sends: 1, Per: time.Minute}, {Sends: 5, Per: time.Hour}},
		Formats: []notify.Format{notify.Text},
	}
}

// variables are what the templates of parameters may use.
func variables(r notify.Rendered) map[string]any {
	v := map[string]any{}
	for name, value := range r.Data {
		v[name] = value
	}
	maps.Copy(v, map[string]any{"title": r.Heading(), "body": r.Body, "to": r.To, "id": r.ID})
	return v
}

// fill fills in a template; what it lacks is an error that no retry mends.
func fill(t notify.Template, r notify.Rendered) (string, error) {
	text, err := t.Execute(variables(r))
	if err != nil {
		return "", &notify.Error{Code: notify.CodeInvalidMessage, Text: "a parameter cannot be made", Cause: err}
	}
	return text, nil
}
