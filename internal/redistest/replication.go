package redistest

import (
	"fmt"
	"net"
	"strings"
)

// isPrimary complains unless the server itself says so.
func isPrimary(s *Server) error {
	role, err := s.info("replication", "role")
	if err == nil && role != "master" {
		err = fmt.Errorf("%s has the role %s", s, role)
	}
	return err
}

// replicates complains unless a primary has n replicas in the state that counts for WAIT.
func replicates(primary *Server, n int) error {
	reply, err := primary.Command("INFO", "replication")
	if err != nil {
		return err
	}
	if online := strings.Count(reply.Text, "state=online"); online < n {
		return fmt.Errorf("%s has %d replicas online, not %d", primary, online, n)
	}
	return nil
}

// nodeAt finds the node with an address that a server gave.
func nodeAt(nodes []*Server, host, port string) (*Server, error) {
	addr := net.JoinHostPort(host, port)
	for _, n := range nodes {
		if n.Addr() == addr {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s is none of our nodes", addr)
}
