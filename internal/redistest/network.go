package redistest

import "github.com/ferrymq/ferry/internal/netns"

// Network is a private network in which every server has a network namespace and an address of its own, so that servers
// can be cut off from each other while their clients reach all of them. It needs Linux, root and the program ip.
type Network struct{ *netns.Network }

// CanPartition says whether a Network can be made here.
func CanPartition() bool { return netns.CanPartition() }

// NewNetwork makes an empty network. Close removes it when its servers are closed.
func NewNetwork() (*Network, error) {
	n, err := netns.New()
	if err != nil {
		return nil, err
	}
	return &Network{n}, nil
}

// Part cuts a server off from all others. Clients still reach it, and it them.
func (n *Network) Part(s *Server) error {
	s.parted.Store(true)
	return n.Network.Part(s.host)
}

// Join ends that.
func (n *Network) Join(s *Server) error {
	s.parted.Store(false)
	return n.Network.Join(s.host)
}
