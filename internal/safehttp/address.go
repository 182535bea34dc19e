package safehttp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/ferrymq/ferry/driver"
)

// special are networks that netip does not tell apart and that no public service has.
var special = prefixes(
	"0.0.0.0/8",       // this network
	"100.64.0.0/10",   // carrier-grade NAT; the metadata service of some clouds
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"64:ff9b::/96",    // NAT64: an IPv4 address inside, private ones too
	"64:ff9b:1::/48",  // NAT64 of a local network
	"100::/64",        // discard
	"2001::/32",       // Teredo: an IPv4 address inside
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4: an IPv4 address inside
	"fec0::/10",       // site-local
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// public reports whether an address is one of the open internet.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// may reports whether an address may be called.
func (c *Client) may(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("") // ::ffff:10.0.0.1 is 10.0.0.1
	return public(ip) || slices.ContainsFunc(c.allowed, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// control sees each address that is about to be connected to, after the name was resolved: a second look-up cannot pass
// by it.
func (c *Client) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return driver.NewError(driver.ErrRefused, fmt.Sprintf("the address %q is no IP address", address),
			"use http or https", err)
	}
	if !c.may(at.Addr()) {
		return private(at.Addr().String())
	}
	return nil
}

func private(address string) error {
	return driver.NewError(driver.ErrRefused, address+" is a private address",
		"call a public one, or allow its network by CIDR", nil)
}
