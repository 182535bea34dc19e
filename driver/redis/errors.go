package redis

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// notStarted is the error of a call whose context had ended before.
func notStarted(err error) error {
	return driver.NewError(driver.ErrNotApplied, "the context ended before the call began", "try again", err)
}

func errClosed() error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", nil)
}

func errShape(what string, reply []any) error {
	return driver.NewError(driver.ErrUnknown, fmt.Sprintf("the server's answer to %s makes no sense: %.200v", what, reply),
		"another program may use this connection, or the server runs another version of our scripts", nil)
}
