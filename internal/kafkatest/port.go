package kafkatest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports lie below the range of outgoing connections (usually from 32768), which might take one while its broker is
// down, and above those of Redis servers in other tests, which listen at up to 29999 where they form a cluster.
const (
	firstPort = 30000
	portCount = 2768
)

// port is a TCP port reserved among test processes by holding the UDP port of the same number, which Kafka does not
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
		l, err := net.Listen("tcp4", address(n))
		if err == nil {
			return port{n, hold}, l.Close()
		}
		last = err
		_ = hold.Close()
	}
	return port{}, fmt.Errorf("no free port between %d and %d: %w", firstPort, firstPort+portCount-1, last)
}

func (p port) release() { _ = p.hold.Close() }

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
