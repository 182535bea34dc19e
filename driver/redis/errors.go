package redis

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

func errShape(what string, reply []any) error {
	return driver.NewError(driver.ErrUnknown, fmt.Sprintf("the server's answer to %s makes no sense: %.200v", what, reply),
		"another program may use this connection, or the server runs another version of our scripts", nil)
}
