package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// believed is for how many bytes of a body there is memory before they have arrived, if they are announced.
const believed = 64 << 10

// body reads the body of a request.
func (g *Gateway) body(r *http.Request) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(min(max(r.ContentLength, 0), believed)) + bytes.MinRead) // which ReadFrom wants to find at the end
	_, err := data.ReadFrom(io.LimitReader(r.Body, g.MaxBody()+1))
	if err == nil && int64(data.Len()) > g.MaxBody() {
		return nil, errBodyTooLarge()
	}
	return data.Bytes(), bodyError(err)
}

// readFrame reads the body of a request that is a frame, and nothing besides.
func (g *Gateway) readFrame(r *http.Request, v frame.Value) error {
	if err := frame.Read(r.Body, frame.Bounds{Most: g.o.MaxFrame}, v); err != nil {
		return bodyError(err)
	}
	switch _, err := io.ReadFull(r.Body, make([]byte, 1)); {
	case err == nil:
		return invalid("something follows the frame", "send one frame in a request", nil)
	case !errors.Is(err, io.EOF):
		return bodyError(err)
	}
	return nil
}

// bodyError is the error of reading a body: its own, if it is one of ours.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	var ours *driver.Error
	switch {
	case err == nil || errors.As(err, &ours):
		return err
	case errors.As(err, &tooLarge):
		return errBodyTooLarge()
	}
	return invalid("the body of the request cannot be read", "send it whole", err)
}

func errBodyTooLarge() error {
	return driver.NewError(driver.ErrTooLarge, "the body of the request is too large", "send less at once", nil)
}
