package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports lie below the range of outgoing connections (usually from 32768), which might take one while its server is
// down. A cluster node also listens on its port plus busOffset: that must lie below it too.
const (
	firstPort = 10000
	portCount = 10000
	busOffset = 10000
)

// port is a TCP port reserved among test processes by holding the UDP port of the same number, which servers do not
// use.
type port struct {
	number int
	hold   *net.UDPConn
}

func reservePort() (port, error) {
	var last error
	for range 100 {
		n := firstPort + rand.IntN(portCount)
		hold, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n})
		if err != nil {
			last = err
			continue
		}
		if last = errors.Join(vacant(n), vacant(n+busOffset)); last == nil {
			return port{n, hold}, nil
		}
		_ = hold.Close()
	}
	return port{}, fmt.Errorf("no free port between %d and %d: %w", firstPort, firstPort+portCount-1, last)
}

func (p port) release() {
	_ = p.hold.Close()
}

func vacant(n int) error {
	l, err := net.Listen("tcp4", address(n))
	if err != nil {
		return err
	}
	return l.Close()
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
