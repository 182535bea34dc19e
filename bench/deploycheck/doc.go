// Package deploycheck holds what is deployed beside Ferry, dashboards and rules, against Ferry as it is: every
// expression parses, and every metric in it exists. It is a module of its own, so that users of the library never meet
// the parsers.
package deploycheck
